"""Plans that stash weights: found where there are none without, no better than their bound, the same without need."""

from dataclasses import replace

from cost_models.vocabulary import DEVICE_KERNELS
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.domain.problem.table import TableConstraints
from planner.pipeline import plan
from planner.pricing.memory.stash import room_bytes
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

#: 30 GB/s of the link: about 0.86 GB of room next to 1 GB of activations.
DENSE = Dense(forward_seconds=0.2, backward_seconds=0.4, activation_bytes=1e9)


def problem(hbm_bytes: float, stash: Stash | None) -> Problem:
    """Twelve tables of 64 to 256 MB, 1.92 GB, on two ranks."""
    only_fused = TableConstraints(compute_kernels=DEVICE_KERNELS)
    tables = [make_table(f"t{i}", 250_000 * (1 + i % 4), 64, constraints=only_fused) for i in range(12)]
    return make_problem(
        *tables,
        cluster=make_cluster(1, 2, hbm_bytes=hbm_bytes),
        dense=DENSE,
        stash=stash,
        pipeline="train_sparse_dist",
    )


def solved(of: Problem) -> PlanResult:
    limits = SolveLimits(time_limit_seconds=2.0)
    return plan(of, cost_model=ROOFLINE, partitioner=make_partitioner("portfolio"), limits=limits)


def test_a_stash_makes_a_plan_where_there_is_none() -> None:
    without, with_it = solved(problem(1.6e9, None)), solved(problem(1.6e9, Stash()))
    assert without.plan is None
    assert with_it.plan is not None
    assert verify(problem(1.6e9, Stash()), with_it.plan.placement) == ()
    stash = with_it.plan.evaluation.stash
    assert stash is not None
    assert stash.num_tables == sum(table.stash_weights for table in with_it.plan.placement.tables) > 0
    assert stash.wait_seconds == 0.0
    assert with_it.plan.lower_bound_seconds <= with_it.plan.evaluation.objective_seconds


def test_the_device_is_never_fuller_than_it_is_large() -> None:
    found = solved(problem(1.6e9, Stash())).plan
    assert found is not None
    for load in found.evaluation.ranks:
        memory = load.step_memory
        assert memory is not None
        for phase, held in memory.phase_bytes.items():
            rows = {"pooled_rows", "received_rows", "sent_rows", "gradients_of_pooled_rows", "gradient_copies"}
            beyond = sum(amount for line, amount in memory.buffer_bytes[phase].items() if line in rows)
            assert held - beyond <= 1.6e9 * (1 + 1e-9), phase


def test_a_stash_without_need_changes_nothing() -> None:
    plain, stashing = solved(problem(20e9, None)).plan, solved(problem(20e9, Stash())).plan
    assert plain is not None
    assert stashing is not None
    assert stashing.placement == plain.placement
    assert stashing.evaluation.stash is not None
    assert stashing.evaluation.stash.num_tables == 0


def test_the_bound_with_room_is_no_higher_than_that_of_as_much_more_memory() -> None:
    """What a stash makes room for is worth no more than memory that is really there."""
    stashing = problem(1.6e9, Stash())
    more = replace(problem(1.6e9 + room_bytes(stashing), None))
    with_it, with_memory = solved(stashing).plan, solved(more).plan
    assert with_it is not None
    assert with_memory is not None
    assert with_memory.lower_bound_seconds <= with_it.evaluation.objective_seconds * (1 + 1e-9)
    assert with_it.lower_bound_seconds <= with_memory.evaluation.objective_seconds * (1 + 1e-9)
