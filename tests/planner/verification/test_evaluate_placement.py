"""Scores re-derived from the problem by hand, without the code that makes options."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.collectives.starts import LAUNCH_SECONDS
from cost_models.hardware.hardware import Quantity
from cost_models.intervals.factors import kernel_factors, number_error
from cost_models.vocabulary import STEP_PHASES, Evidence, Kernel, Phase, Scheme, Tier
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shards
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.options.schemes.expand import expand
from planner.options.schemes.geometry import Piece
from planner.orchestration.placement.to_placement import to_placement
from planner.pricing.price_options import price, prune
from planner.solver.evaluate import rank_loads
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Scope
from planner.verification.evaluate_placement import score
from tests.planner.verification.test_verify import Placement, table_wise
from tests.support.planning.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table


def one_table_plan() -> tuple[Problem, Placement]:
    problem = make_problem(make_table(dim=128))
    return problem, Placement(world_size=4, ranks_per_host=4, tables=(table_wise(num_columns=128, rank=2),))


def test_torchrec_s_formula_by_hand() -> None:
    """table_wise, 4 ranks of 64 samples, 4 ids each, 128 columns of fp32; 2e12 B/s memory.

    ids 4 x 64 x 4 = 1,024: 8,192 B; rows 1,024 x 512 = 524,288 B; outputs 4 x 64 x 512 =
    131,072 B. Forward (8,192 + 524,288 + 131,072) / 2e12 s, backward twice that; outputs
    over 3e11 B/s each way.
    """
    problem, placement = one_table_plan()
    loads = score(problem, placement, TORCHREC).ranks[2].seconds
    assert loads[Phase.FORWARD_COMPUTE] == pytest.approx(663_552 / 2e12, rel=1e-9)
    assert loads[Phase.BACKWARD_COMPUTE] == pytest.approx(2 * 663_552 / 2e12, rel=1e-9)
    assert loads[Phase.FORWARD_COMM] == loads[Phase.BACKWARD_COMM] == pytest.approx(131_072 / 3e11, rel=1e-9)


def test_objectives_and_uncounted_phases() -> None:
    problem, placement = one_table_plan()
    evaluation = score(problem, placement, TORCHREC)
    total = 3 * 663_552 / 2e12 + 2 * 131_072 / 3e11
    assert evaluation.step_time_seconds == evaluation.max_rank_time_seconds == pytest.approx(total, rel=1e-9)
    by_phase = {load.phase: load for load in evaluation.phases}
    assert not by_phase[Phase.INPUT_COMM].counted  # TorchRec leaves it out of its total
    assert by_phase[Phase.INPUT_COMM].seconds > 0
    assert by_phase[Phase.FORWARD_COMPUTE].slowest_rank == 2
    assert by_phase[Phase.FORWARD_COMPUTE].mean_seconds == pytest.approx(663_552 / 2e12 / 4, rel=1e-9)
    assert by_phase[Phase.FORWARD_COMPUTE].evidence is Evidence.ESTIMATED


def test_an_analytic_model_gives_limits_of_phases_and_of_the_objective() -> None:
    problem, placement = one_table_plan()
    evaluation = score(problem, placement, ROOFLINE)
    stated = evaluation.prediction
    assert stated is not None
    assert (stated.coverage, stated.learned_share, stated.fallbacks, stated.analytic_phases) == (0.9, 0.0, (), ())
    assert stated.measured_share + stated.analytic_share == pytest.approx(1.0)
    for limit, lies in (("lower_seconds", lambda one, of: one < of), ("upper_seconds", lambda one, of: one > of)):
        phases = {load.phase: getattr(load, limit) for load in evaluation.phases}
        assert getattr(stated, limit) == pytest.approx(sum(phases.values()))
        assert all(lies(phases[load.phase], load.seconds) for load in evaluation.phases if load.seconds > 0)


def test_limits_take_the_speed_of_a_rank_and_hidden_seconds_into_account() -> None:
    problem, placement = one_table_plan()
    fast = score(problem, placement, ROOFLINE)
    slow = replace(problem, cluster=replace(problem.cluster, relative_speed_by_rank=(1.0, 1.0, 0.5, 1.0)))
    by_phase = {load.phase: load for load in fast.phases}
    for load in score(slow, placement, ROOFLINE).phases:
        factor = 2.0 if load.phase in (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE) else 1.0
        assert load.upper_seconds == pytest.approx(factor * (by_phase[load.phase].upper_seconds or 0.0))
    hidden = replace(problem, pipeline="train_sparse_dist", dense=Dense(forward_seconds=1.0, backward_seconds=1.0))
    with_dense = score(hidden, placement, ROOFLINE).prediction
    assert with_dense is not None
    assert fast.prediction is not None
    input_comm = by_phase[Phase.INPUT_COMM].upper_seconds
    assert input_comm is not None
    assert with_dense.upper_seconds == pytest.approx(fast.prediction.upper_seconds - input_comm)


def test_limits_hold_starts_within_limits_of_their_own() -> None:
    problem, placement = one_table_plan()
    launch = Quantity(value=4e-6, unit="seconds", evidence=Evidence.MEASURED, source="a test")
    numbers = {**problem.cluster.hardware.numbers, LAUNCH_SECONDS: launch}
    hardware = replace(problem.cluster.hardware, numbers=numbers)
    problem = replace(problem, cluster=replace(problem.cluster, hardware=hardware), counts_starts=True)
    with_starts = score(problem, placement, ROOFLINE)
    without = score(replace(problem, counts_starts=False), placement, ROOFLINE)
    launches = 9 * 4e-6  # of one kind, backward
    measured = kernel_factors("backward device", 0.0)
    least = launches * min(1 / (1 + number_error()), measured.lower)
    most = launches * max(1 + number_error(), measured.upper)
    one, other = (
        next(load for load in evaluation.phases if load.phase is Phase.BACKWARD_COMPUTE)
        for evaluation in (with_starts, without)
    )
    assert one.seconds - other.seconds == pytest.approx(launches)
    assert (one.lower_seconds or 0.0) - (other.lower_seconds or 0.0) == pytest.approx(least)
    assert (one.upper_seconds or 0.0) - (other.upper_seconds or 0.0) == pytest.approx(most)


def test_torchrec_s_terms_have_no_limits() -> None:
    evaluation = score(*one_table_plan(), TORCHREC)
    assert evaluation.prediction is None
    assert {load.upper_seconds for load in evaluation.phases} == {None}


def test_a_rank_of_half_the_speed_takes_twice_as_long_to_compute() -> None:
    problem, placement = one_table_plan()
    slow = replace(problem, cluster=replace(problem.cluster, relative_speed_by_rank=(1.0, 1.0, 0.5, 1.0)))
    before, after = (score(one, placement, TORCHREC) for one in (problem, slow))
    for phase in STEP_PHASES:
        times = 2 if phase in (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE) else 1
        assert after.ranks[2].seconds[phase] == pytest.approx(times * before.ranks[2].seconds[phase], rel=1e-12)
    total = 2 * 3 * 663_552 / 2e12 + 2 * 131_072 / 3e11
    assert after.step_time_seconds == after.max_rank_time_seconds == pytest.approx(total, rel=1e-9)
    assert np.array_equal(after.shard_bytes, before.shard_bytes)
    # A slow rank that holds nothing costs nothing.
    idle = replace(problem, cluster=replace(problem.cluster, relative_speed_by_rank=(0.5, 1.0, 1.0, 1.0)))
    assert score(idle, placement, TORCHREC).step_time_seconds == before.step_time_seconds


def test_dense_compute_hides_input_communication_of_a_pipeline() -> None:
    dense = Dense(forward_seconds=1.0, backward_seconds=1.0)
    _, placement = one_table_plan()
    exposed, hidden = (
        score(make_problem(make_table(dim=128), dense=dense, pipeline=pipeline), placement, ROOFLINE)
        for pipeline in ("none", "train_sparse_dist")
    )
    ids = {load.phase: load for load in hidden.phases}[Phase.INPUT_COMM]
    assert ids.hidden_seconds == ids.seconds > 0
    assert hidden.step_time_seconds == pytest.approx(exposed.step_time_seconds - ids.seconds, rel=1e-9)


def test_bytes_of_shards_and_ranks() -> None:
    problem, placement = one_table_plan()
    evaluation = score(problem, placement, ROOFLINE)
    want = 512_000 + 8_192 + 131_072  # weights, ids of all ranks, outputs for all ranks
    assert evaluation.shard_bytes.tolist() == [want]
    assert [load.bytes[Tier.HBM] for load in evaluation.ranks] == [0, 0, want, 0]
    assert sum(evaluation.ranks[2].ledger_bytes[Tier.HBM].values()) == want


@pytest.mark.parametrize("model", [ROOFLINE, TORCHREC], ids=lambda model: model.name)
@pytest.mark.parametrize("seed", range(4))
def test_arrays_and_geometry_agree(model: object, seed: int) -> None:
    """The solver problem's loads and the loads of the finished plan are the same numbers."""
    rng = np.random.default_rng(seed)
    tables = [
        make_table(
            f"t{i}",
            int(rng.integers(100, 10**6)),
            int(rng.choice([32, 64, 96, 128, 256])),
            pooling_factor=float(rng.uniform(0, 20)),
            pooling=str(rng.choice(["sum", "mean", "none"])),
            data_type=str(rng.choice(["fp32", "fp16"])),
            optimizer=str(rng.choice(["sgd", "rowwise_adagrad", "adam"])),
        )
        for i in range(12)
    ]
    problem = make_problem(*tables, cluster=make_cluster(2, 4))
    families = enumerate_families(problem)
    priced = prune(price(problem, families, model))  # type: ignore[arg-type]
    assignment = Greedy().solve(priced, SolveLimits()).assignment
    assert assignment is not None
    arrays = rank_loads(priced, assignment).seconds[:, STEP_PHASES]
    evaluation = score(problem, to_placement(problem, families, priced, assignment), model)  # type: ignore[arg-type]
    geometry = np.array([[load.seconds[phase] for phase in STEP_PHASES] for load in evaluation.ranks])
    np.testing.assert_allclose(arrays, geometry, rtol=1e-9, atol=1e-15)


def test_the_order_of_shards_changes_nothing_but_the_order_of_their_bytes() -> None:
    """Row blocks with a shorter last one; equal neighbours are priced as one, and others apart."""
    problem = make_problem(make_table("a", rows=1003), make_table("b", rows=1003))
    cluster, tier = problem.cluster, problem.cluster.device_tier
    shards = expand(problem.tables[0], Piece(scope=Scope.WORLD, column_offset=0, num_columns=64), 0, cluster, tier)
    tables = [
        TablePlacement(name=name, sharding_type=Scheme.ROW_WISE, compute_kernel=Kernel.FUSED, shards=shards)
        for name in "ab"
    ]
    turned = replace(tables[1], shards=Shards.of(shards[i] for i in (3, 0, 2, 1)))
    found, other = (
        score(problem, Placement(world_size=4, ranks_per_host=4, tables=placed), ROOFLINE)
        for placed in (tuple(tables), (tables[0], turned))
    )
    assert found.shard_bytes.shape == (8,)
    assert len(set(found.shard_bytes.tolist())) == 2
    assert other.shard_bytes.tolist() == found.shard_bytes[[0, 1, 2, 3, 7, 4, 6, 5]].tolist()
    assert [load.bytes for load in other.ranks] == [load.bytes for load in found.ranks]
    assert other.objective_seconds == found.objective_seconds
    of_ranks = found.shard_bytes[:4] + found.shard_bytes[4:]
    assert [sum(load.bytes.values()) for load in found.ranks] == of_ranks.tolist()
