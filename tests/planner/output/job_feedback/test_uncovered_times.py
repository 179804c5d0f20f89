"""Which times of a job have no interval or no rows, and why."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Phase, Scheme
from planner.domain.plan.placement import Placement, Shards, TablePlacement
from planner.domain.problem.problem import Problem
from planner.output.job_feedback.observations import compared, rows_of
from planner.output.job_feedback.uncovered_times import uncovered_times
from planner.pricing.placed_work import PlacedWork
from tests.planner.output.job_feedback.test_observations import LEARNED, nothing_timed, seen
from tests.planner.verification.test_verify import WHOLE, table_wise
from tests.support.planning.builders import ROOFLINE, make_problem, make_table
from tests.support.planning.launching_model import LaunchingModel

MODEL = LaunchingModel(launch_seconds=3e-7)
COMPUTE = [Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE]


def data_parallel(name: str, *, num_ranks: int) -> TablePlacement:
    return TablePlacement(
        name=name,
        sharding_type=Scheme.DATA_PARALLEL,
        compute_kernel=Kernel.DENSE,
        shards=Shards.of([replace(WHOLE, num_columns=128, rank=rank) for rank in range(num_ranks)]),
    )


def fused_and_replicated() -> tuple[Problem, Placement]:
    """A fused table on rank 2 of 4, and a small one on all of them."""
    problem = make_problem(make_table("t", dim=128), make_table("small", dim=128))
    whole = table_wise(num_columns=128, rank=2)
    return problem, Placement(world_size=4, ranks_per_host=4, tables=(whole, data_parallel("small", num_ranks=4)))


def reported(problem: Problem, placement: Placement, phase: Phase, ranks: list[int], **model: object) -> list[str]:
    placed = PlacedWork.of(problem, placement).shards()
    return uncovered_times(problem, placed, replace(MODEL, **model), phase, np.array(ranks, dtype=np.int64))


def test_ranks_of_replicated_tables_are_named_with_them() -> None:
    problem, placement = fused_and_replicated()
    (reason,) = reported(problem, placement, Phase.FORWARD_COMPUTE, [0, 1, 2, 3])
    assert reason.startswith("ranks 0-3: table small is replicated (kernel dense); the analytic model priced that")
    assert "no interval of known probability" in reason


def test_their_total_is_compared_all_the_same_and_the_answer_says_what_is_not_rated() -> None:
    problem, placement = fused_and_replicated()
    seconds = nothing_timed()
    seconds[:, COMPUTE] = 1e-5
    forward, backward = compared(problem, placement, MODEL, seconds).phases
    for one in (forward, backward):
        assert (one.num_ranks, one.num_with_interval, one.is_inside) == (4, 0, None)
        assert one.predicted_seconds > 0
        assert [words.partition(";")[0] for words in one.uncovered_times] == [
            "ranks 0-3: table small is replicated (kernel dense)"
        ]
    assert all(one.uncovered_times == () for one in compared(problem, placement, LEARNED, seconds).phases)
    assert all(one.uncovered_times == () for one in compared(problem, placement, ROOFLINE, seconds).phases)


def test_rows_that_were_not_made_are_stated_in_the_same_words() -> None:
    problem, placement = fused_and_replicated()
    seconds = nothing_timed()
    seconds[:, COMPUTE] = 1e-5
    rows, left_out = rows_of(problem, placement, seen(seconds))
    assert rows.num_rows == 0
    assert left_out == (
        "lookups: no rows, for a time is not that of fused lookups alone, of ranks 0-3: "
        "table small is replicated (kernel dense)",
    )


def test_ranks_without_shards_had_nothing_predicted() -> None:
    problem = make_problem(make_table("t", dim=128))
    placement = Placement(world_size=4, ranks_per_host=4, tables=(table_wise(num_columns=128, rank=2),))
    assert reported(problem, placement, Phase.FORWARD_COMPUTE, [0, 1, 3]) == [
        "ranks 0, 1, 3: the plan has no shards there, so nothing was predicted"
    ]
    assert reported(problem, placement, Phase.FORWARD_COMPUTE, []) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"compute_kernel": Kernel.FUSED_UVM}, "of the kernel fused_uvm"),
        ({"is_weighted": True}, "weighted"),
    ],
)
def test_other_lookups_than_fused_are_named(change: dict[str, object], reason: str) -> None:
    whole = table_wise(num_columns=128, rank=2)
    table = make_table("t", dim=128)
    if "is_weighted" in change:
        table = replace(table, is_weighted=True)
    else:
        whole = replace(whole, **change)
    placement = Placement(world_size=4, ranks_per_host=4, tables=(whole,))
    (words,) = reported(make_problem(table), placement, Phase.BACKWARD_COMPUTE, [2])
    assert words.startswith(f"rank 2: table t is {reason};")


def test_tables_outside_of_what_was_measured_are_counted_after_five() -> None:
    names = [f"t{i}" for i in range(7)]
    problem = make_problem(*(make_table(name, dim=128) for name in names))
    tables = tuple(replace(table_wise(num_columns=128, rank=2), name=name) for name in names)
    placement = Placement(world_size=4, ranks_per_host=4, tables=tables)
    (words,) = reported(problem, placement, Phase.FORWARD_COMPUTE, [2], most_lookups=1.0)
    assert words.startswith("rank 2: tables t0, t1, t2, t3, t4 and 2 others are outside of what was measured;")


def test_collectives_have_the_reason_of_the_model() -> None:
    problem, placement = fused_and_replicated()
    words = reported(problem, placement, Phase.FORWARD_COMM, [0, 3])
    assert [one.partition(";")[0] for one in words] == ["ranks 0, 3: all_to_all is not priced"]
    assert reported(problem, placement, Phase.PREFETCH, [1])[0].startswith(
        "rank 1: not all of this phase was measured;"
    )
