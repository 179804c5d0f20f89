"""The size of sharding groups that a solve chooses is the best of all sizes planned one by one."""

from dataclasses import replace

import pytest

from cost_models.registry import make_cost_model
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.solver.problem import Reason
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.thorough import thorough

ROOFLINE = make_cost_model("roofline")
#: Work ends these solves; a process that compiles the search first takes long.
LIMITS = SolveLimits(time_limit_seconds=900.0, work_limit_seconds=2.0)


def grouped(
    *tables: object, interval: int = 1, num_hosts: int = 4, contiguous: bool = False, **hardware: float
) -> Problem:
    """Tables on hosts of four ranks, in groups of any size."""
    job = make_cluster(num_hosts, 4, **hardware)
    sizes = ReplicaGroups.sizes_of(job, contiguous=contiguous)
    groups = ReplicaGroups(job=job, sizes=sizes, sync_interval_steps=interval, use_inter_host_allreduce=contiguous)
    return make_problem(*tables, cluster=job, replica_groups=groups)


def solved(problem: Problem, limits: SolveLimits = LIMITS, **options: object) -> PlanResult:
    return plan(problem, cost_model=ROOFLINE, partitioner=make_partitioner("portfolio"), limits=limits, **options)


SMALL = make_table("small", 2_000, 64, pooling_factor=8.0)
LARGE = make_table("large", 4_000_000, 128, pooling_factor=30.0, optimizer="rowwise_adagrad")
OTHERS = (make_table("other", 300_000, 64, pooling_factor=3.0), make_table("narrow", 50_000, 32, pooling_factor=10.0))


@pytest.mark.parametrize(
    ("tables", "interval", "contiguous"),
    [
        ((SMALL, *OTHERS), 1, False),
        ((LARGE, SMALL), 1, False),
        pytest.param((LARGE, SMALL), 1000, False, marks=thorough),
        pytest.param((LARGE, *OTHERS), 50, True, marks=thorough),
        ((SMALL,), 10, True),
    ],
)
def test_no_size_alone_is_better(tables: tuple[object, ...], interval: int, contiguous: bool) -> None:
    problem = grouped(*tables, interval=interval, contiguous=contiguous)
    found = solved(problem)
    assert found.plan is not None
    alone = {one.world_size: solved(one) for one in problem.of_each_group()}
    best = min(one.plan.evaluation.objective_seconds for one in alone.values() if one.plan)
    seconds = found.plan.evaluation.objective_seconds
    assert seconds <= best * (1 + LIMITS.relative_gap)
    assert found.lower_bound_seconds <= best
    assert found.lower_bound_seconds <= seconds
    size = found.plan.placement.world_size
    assert verify(problem, found.plan.placement) == ()
    assert [one.sharding_group_size for one in found.plan.group_sizes] == list(problem.replica_groups.sizes)
    for one in found.plan.group_sizes:  # what is said of each size holds of its plan that was made alone
        other = alone[one.sharding_group_size].plan
        assert other is not None
        assert one.lower_bound_seconds <= other.evaluation.objective_seconds * (1 + 1e-9)
        assert one.state in ("planned", "ruled_out")
        assert (one.objective_seconds is None) == (one.state == "ruled_out")
        assert one.num_groups * one.sharding_group_size == 16
        if one.state == "ruled_out":
            assert one.lower_bound_seconds * (1 + LIMITS.relative_gap) >= seconds * (1 - 1e-9)
    assert min(one.lower_bound_seconds for one in found.plan.group_sizes) == pytest.approx(found.lower_bound_seconds)
    chosen = next(one for one in found.plan.group_sizes if one.sharding_group_size == size)
    assert chosen.objective_seconds == seconds


def test_averages_decide_the_size() -> None:
    """A step that averages a large table every time has large groups; one that hardly ever does has small ones."""
    sizes = []
    for interval in (1, 1_000_000):
        found = solved(grouped(LARGE, SMALL, interval=interval)).plan
        assert found is not None
        sizes.append(found.placement.world_size)
    assert sizes[0] > sizes[1]


def test_equal_solves_are_equal() -> None:
    problem = grouped(LARGE, *OTHERS, interval=20)
    first, second = solved(problem).plan, solved(problem).plan
    assert first is not None
    assert second is not None
    assert first.placement == second.placement
    assert first.group_sizes == second.group_sizes
    assert (first.lower_bound_seconds, first.limit) == (second.lower_bound_seconds, second.limit)


def test_sizes_whose_tables_do_not_fit_say_so() -> None:
    """2 GB of weights: two ranks of 0.8 GB hold less."""
    found = solved(grouped(LARGE, interval=10**6, hbm_bytes=8e8, ddr_bytes=0.0)).plan
    assert found is not None
    states = {one.sharding_group_size: one for one in found.group_sizes}
    assert states[2].state == "infeasible"
    assert (states[2].objective_seconds, states[2].lower_bound_seconds) == (None, 0.0)
    assert states[2].detail.startswith("the tables need at least")
    assert found.placement.world_size > 2
    assert found.lower_bound_seconds > 0


def test_sizes_that_cannot_hold_the_weights_need_no_time() -> None:
    """A group of two ranks of 0.8 GB is ruled out before the clock, which leaves no time to look at any other."""
    problem = grouped(LARGE, interval=10**6, hbm_bytes=8e8, ddr_bytes=0.0)
    found = solved(problem, replace(LIMITS, time_limit_seconds=1e-3, work_limit_seconds=None)).plan
    assert found is not None
    states = {one.sharding_group_size: one for one in found.group_sizes}
    assert states[2].state == "infeasible"
    assert states[2].detail == "the tables need at least 2.0 GB of hbm, and a sharding group of 2 ranks has 1.6 GB"
    assert states[8].state == "not_searched"


def test_no_size_has_a_plan() -> None:
    result = solved(grouped(LARGE, hbm_bytes=1e7, ddr_bytes=0.0))
    assert (result.plan, result.reason) == (None, Reason.INFEASIBLE)
    assert result.detail.startswith("no plan with any of 4 sizes of sharding groups; of 16: ")
    assert result.diagnosis is not None
    assert not any(change.pointer == "/hardware/num_hosts" for fix in result.diagnosis.fixes for change in fix.changes)


def test_plans_that_are_streamed_improve_and_have_bounds_over_all_sizes() -> None:
    problem, streamed = grouped(LARGE, *OTHERS, interval=20), []
    found = solved(problem, on_result=lambda result: streamed.append(result.plan))
    assert found.plan is not None
    assert streamed
    seconds = [one.evaluation.objective_seconds for one in streamed]
    assert seconds == sorted(seconds, reverse=True)
    assert found.plan.evaluation.objective_seconds <= seconds[-1]
    best = min(solved(one).plan.evaluation.objective_seconds for one in problem.of_each_group())
    assert all(one.lower_bound_seconds <= best for one in streamed)


def test_time_that_is_over_leaves_sizes_out() -> None:
    found = solved(grouped(LARGE, *OTHERS), replace(LIMITS, time_limit_seconds=1e-3, work_limit_seconds=None)).plan
    assert found is not None
    assert found.limit == "time"
    assert any(one.state == "not_searched" for one in found.group_sizes)
    assert found.lower_bound_seconds <= min(one.lower_bound_seconds for one in found.group_sizes)
