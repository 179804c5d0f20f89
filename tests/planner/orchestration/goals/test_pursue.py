"""Ordered goals when time is short: what was not searched is said, and nothing is proven by silence."""

from planner.domain.problem.goals import FULLEST_RANK, STEP_TIME, Goal, Tolerance
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Reason
from tests.support.planning.builders import ROOFLINE, make_problem, make_table

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
