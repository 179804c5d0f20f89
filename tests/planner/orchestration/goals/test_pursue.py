"""Ordered goals when time is short: what was not searched is said, and nothing is proven by silence."""

import pytest

from planner.domain.problem.goals import FULLEST_RANK, STEP_TIME, Goal, Tolerance
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.pipeline import plan
from planner.pricing.replicas.sync import sync_start_seconds
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Reason
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

GOALS = (Goal(name=STEP_TIME), Goal(name=FULLEST_RANK, tolerance=Tolerance(relative=1.0)))


def test_goals_without_a_search_are_named() -> None:
    problem = make_problem(*[make_table(f"t{i}", 10_000 * (i + 1)) for i in range(6)], goals=GOALS)
    limits = SolveLimits(time_limit_seconds=1e-3)
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits)
    assert found.plan is not None
    assert (found.reason, found.limit) == (Reason.FEASIBLE, "time")
    assert found.detail == "no time was left to search for fullest_rank"
    step, fullest = found.plan.goals
    assert step.lower_bound == found.lower_bound_seconds > 0
    assert fullest.points == ()


def test_a_proven_step_alone_is_no_proven_plan() -> None:
    problem = make_problem(*[make_table(f"t{i}", 10_000 * (i + 1)) for i in range(6)], goals=GOALS)
    limits = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.5, relative_gap=0.0)
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits)
    assert found.plan is not None
    is_proven = all(goal.value_at_turn <= goal.lower_bound * (1 + 1e-4) for goal in found.plan.goals)
    assert (found.reason is Reason.OPTIMAL) == is_proven


def test_goals_of_sharding_groups_count_what_averages_start() -> None:
    """Starts of averages lie in no column of the search, and a limit of the step is of all that a step takes."""
    hardware = {"intra_host_latency_seconds": 1.0, "inter_host_latency_seconds": 1.0}
    groups = ReplicaGroups(job=make_cluster(2, 4, **hardware), sizes=(4,))
    goals = (Goal(name=STEP_TIME), Goal(name=FULLEST_RANK, tolerance=Tolerance(relative=0.1)))
    problem = make_problem(
        *[make_table(f"t{i}", 200_000 * (i + 1), optimizer="sgd") for i in range(4)],
        cluster=groups.cluster_of(4),
        replica_groups=groups,
        goals=goals,
        counts_starts=False,  # those of sharding types
    )
    starts, _ = sync_start_seconds(problem, problem.cluster.hardware)
    assert starts >= 1.0
    limits = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.5, relative_gap=0.0)
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=limits)
    assert found.plan is not None
    step, fullest = found.plan.goals
    assert step.value == pytest.approx(found.plan.evaluation.objective_seconds)
    assert starts < step.lower_bound <= step.value_at_turn
    for point in fullest.points:
        if point.values is not None and point.weights.keys() == {STEP_TIME}:
            assert point.values[STEP_TIME] > starts
        if STEP_TIME in point.weights:
            assert point.least_sum > point.weights[STEP_TIME] * starts
