"""What a job saw, as rows and next to a prediction."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Ints
from cost_models.hardware.hardware import Hardware
from cost_models.measurements.check import check
from cost_models.protocol import RankSeconds, ShardWork
from cost_models.vocabulary import NUM_PHASES, Kernel, Phase
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.output.job_feedback.observations import Drift, Observation, binomial_tail, compared, rows_of
from planner.verification.evaluate_placement import score
from tests.planner.verification.test_verify import table_wise
from tests.support.planning.builders import ROOFLINE, make_problem, make_table
from tests.support.planning.launching_model import SPREAD, LaunchingModel


class AllLearned(LaunchingModel):
    """Whose seconds were all learned, not the launch alone."""

    def predict_ranks(self, work: ShardWork, rank: Ints, hardware: Hardware) -> RankSeconds:
        found = LaunchingModel.predict_ranks(self, work, rank, hardware)
        return replace(found, learned_seconds=found.seconds)


LEARNED = AllLearned(launch_seconds=3e-7)


def one_table_plan(**changes: object) -> tuple[Problem, Placement]:
    """One table of 128 columns on rank 2 of 4; 64 samples of 4 ids for each rank."""
    shards = table_wise(num_columns=128, rank=2)
    return make_problem(make_table(dim=128)), Placement(
        world_size=4, ranks_per_host=4, tables=(replace(shards, **changes),)
    )


def nothing_timed() -> np.ndarray:
    return np.full((4, NUM_PHASES), np.nan)


def seen(seconds: np.ndarray) -> Observation:
    return Observation(
        seconds=seconds,
        steps=100,
        task="job-1",
        device="GPU",
        library="torchrec",
        implementation="fbgemm_tbe",
        communication="nccl",
    )


def test_a_rank_is_one_launch_with_the_work_of_its_shards() -> None:
    """4 x 64 x 4 ids are 1,024 lookups and 256 bags."""
    problem, placement = one_table_plan()
    seconds = nothing_timed()
    seconds[:, [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE]] = 1e-5, 2e-5
    rows, left_out = rows_of(problem, placement, seen(seconds))
    check(rows)
    assert (rows.num_rows, left_out) == (1, ())
    row = {name: column[0] for name, column in rows.columns.items()}
    assert (row["kind"], row["table"], row["task"], row["repeats"]) == ("lookup", "t#0", "job-1", 100)
    assert (row["shard_rows"], row["shard_columns"], row["lookups"], row["outputs"]) == (1000, 128, 1024.0, 256.0)
    assert (row["num_ranks"], row["ranks_per_host"], row["implementation"]) == (4, 4, "fbgemm_tbe")
    assert row["seconds"] == pytest.approx(3e-5)


def test_a_collective_has_the_bytes_that_its_ranks_held() -> None:
    """Rank 2 sends 256 bags of 512 bytes, a quarter of them to each rank; gradients come back; 1,024 ids of 8 bytes."""
    problem, placement = one_table_plan()
    seconds = nothing_timed()
    exchanges = [Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM]
    seconds[:, exchanges] = 1e-5
    rows, left_out = rows_of(problem, placement, seen(seconds))
    check(rows)
    assert left_out == ("lookups: 4 of 4 ranks were not timed both forward and backward",)
    assert rows.num_rows == 12
    assert len(np.unique(rows.counts("launch"))) == 3
    assert set(rows.text("operation")) == {"all_to_all"}
    sent, received = rows.numbers("sent_bytes").reshape(3, 4), rows.numbers("received_bytes").reshape(3, 4)
    assert received[0].tolist() == [0, 0, 8192, 0]
    assert sent[1].tolist() == [0, 0, 131_072, 0]
    assert received[1].tolist() == [32_768] * 4
    assert (sent[2].tolist(), received[2].tolist()) == ([32_768] * 4, [0, 0, 131_072, 0])


def test_what_cannot_be_distinguished_is_left_out_and_stated() -> None:
    problem, placement = one_table_plan(compute_kernel=Kernel.FUSED_UVM)
    seconds = nothing_timed()
    seconds[:, [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE]] = 1e-5
    seconds[1:, Phase.FORWARD_COMM] = 1e-5
    seconds[:, Phase.BACKWARD_COMM] = 0.0
    rows, left_out = rows_of(problem, placement, seen(seconds))
    assert rows.num_rows == 0
    assert left_out == (
        "lookups: no rows, for a time is not that of fused lookups alone, of rank 2: table t is of the kernel "
        "fused_uvm",
        "forward_comm: not all ranks were timed",
        "backward_comm: ranks that took no time",
    )


def test_times_are_put_next_to_the_prediction() -> None:
    problem, placement = one_table_plan()
    seconds = nothing_timed()
    for rank in score(problem, placement, LEARNED).ranks:
        for phase in (Phase.FORWARD_COMPUTE, Phase.FORWARD_COMM):
            seconds[rank.rank, phase] = rank.seconds[phase]
    seconds[2, Phase.FORWARD_COMM] *= 1 + 2 * SPREAD
    found = compared(problem, placement, LEARNED, seconds)
    compute, exchange = found.phases
    assert found.cost_model == "launching@1"
    assert (compute.phase, compute.num_outside, compute.is_inside) == (Phase.FORWARD_COMPUTE, 0, True)
    assert (exchange.phase, exchange.num_outside, exchange.is_inside) == (Phase.FORWARD_COMM, 1, False)
    assert exchange.observed_seconds == pytest.approx(1.2 * exchange.predicted_seconds)
    assert found.drift is not None
    assert found.drift.num_outside == 1
    assert found.drift.num_compared == 2  # a rank without work has no interval
    assert compared(problem, placement, ROOFLINE, seconds).drift is None


def test_times_that_the_analytic_model_predicted_are_no_drift() -> None:
    problem, placement = one_table_plan()
    seconds = nothing_timed()
    seconds[2, Phase.FORWARD_COMM] = 1.0
    found = compared(problem, placement, LaunchingModel(launch_seconds=3e-7), seconds)
    assert found.drift is not None
    assert (found.drift.num_compared, found.drift.num_outside) == (0, 0)
    assert found.phases[0].is_inside is None


def test_a_rank_that_took_no_time_in_one_direction_is_left_out_and_stated() -> None:
    problem, placement = one_table_plan()
    seconds = nothing_timed()
    seconds[:, Phase.FORWARD_COMPUTE], seconds[:, Phase.BACKWARD_COMPUTE] = 0.0, 2e-5
    rows, left_out = rows_of(problem, placement, seen(seconds))
    assert rows.num_rows == 0
    assert left_out == ("lookups: 4 of 4 ranks took no time in one direction",)


def test_weighted_shards_give_no_rows() -> None:
    problem, placement = one_table_plan()
    weighted = replace(problem, tables=(replace(problem.tables[0], is_weighted=True),))
    seconds = nothing_timed()
    seconds[:, [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE]] = 1e-5
    rows, left_out = rows_of(weighted, placement, seen(seconds))
    assert rows.num_rows == 0
    assert "weighted" in left_out[0]


def test_binomial_tail_agrees_with_sums_by_hand() -> None:
    assert binomial_tail(10, 0, 0.1) == 1.0
    assert binomial_tail(2, 2, 0.1) == pytest.approx(0.01)
    assert binomial_tail(3, 1, 0.1) == pytest.approx(1 - 0.9**3)
    by_hand = sum(math.comb(40, k) * 0.1**k * 0.9 ** (40 - k) for k in range(9, 41))
    assert binomial_tail(40, 9, 0.1) == pytest.approx(by_hand)
    assert 0 < binomial_tail(20_000, 2_300, 0.1) < 1e-5


def test_drift_is_more_than_chance() -> None:
    assert not Drift(num_compared=20, num_outside=2, coverage=0.9).drifted
    assert not Drift(num_compared=20, num_outside=6, coverage=0.9).drifted
    assert Drift(num_compared=20, num_outside=8, coverage=0.9).drifted
    assert not Drift(num_compared=0, num_outside=0, coverage=0.9).drifted
