"""Ordered goals: from the plan of the shortest step to one that is good at every goal in its turn.

The first search is for the objective alone. Then each goal has its turn (:mod:`planner.orchestration.goals.turn`), in
order, with the plan so far as its start. It may worsen the goals before it by its tolerance, each from the value that
it has then. The plan that all turns lead to is finished like any other, and the values of its goals are computed again
from its geometry: a value that the searches believed otherwise, or beyond a limit, is a defect and never a plan.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import replace

from cost_models.protocol import CostModel
from planner.domain.plan.goals import GoalResult
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.plan import Assumption, Plan, PlanResult
from planner.domain.problem.goals import STEP_TIME
from planner.domain.problem.problem import Problem
from planner.errors import SolverDefect
from planner.orchestration.answers.finish_plan import SolveContext, finish, result_of
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.goals.goal_columns import GoalColumns
from planner.orchestration.goals.turn import Turn
from planner.orchestration.placement.listed_plan import find_plan
from planner.orchestration.previous_plan import locate_previous_plan, with_move_price
from planner.solver.partitioners.base import RESOLUTION, Partitioner, SolveLimits
from planner.solver.problem import Assignment, Outcome, Reason
from planner.verification.goal_values import goal_values

_AGREEMENT = 1e-9  # relative difference allowed between the search's arithmetic and that of the geometry
_OF_OBJECTIVE = 0.5  # part of the time and the work that the first search has, if goals follow
_CLOCK = "time"
_OBJECTIVES = "objectives"  # what limits a plan that gives way to later goals


def limits_of_first(problem: Problem, limits: SolveLimits) -> SolveLimits:
    """Return the limits of the search for the objective, before the turns of goals."""
    if not _turns(problem):
        return limits
    work_seconds = limits.work_limit_seconds
    return replace(
        limits,
        time_limit_seconds=_OF_OBJECTIVE * limits.time_limit_seconds,
        work_limit_seconds=None if work_seconds is None else _OF_OBJECTIVE * work_seconds,
    )


def _turns(problem: Problem) -> int:
    """Return how many turns follow the first search: a first goal that is the objective had its own."""
    return len(problem.goals) - (len(problem.goals) > 0 and problem.goals[0].name == STEP_TIME)


def pursue_goals(
    result: PlanResult,
    problem: Problem,
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    assumptions: tuple[Assumption, ...],
    previous: PreviousPlan | None,
    began_seconds: float,
) -> PlanResult:
    """Return the plan that the ordered goals of a problem lead to, from the plan of its objective.

    ``limits`` are those of the whole solve, which began at ``began_seconds`` of the monotonic clock.
    """
    first = result.plan
    if first is None or not problem.goals:
        return result
    listing_seconds = time.monotonic()
    listed = find_plan(problem, first.placement, cost_model)
    previous_state, priced = None, listed.priced
    if previous is not None:
        previous_state = locate_previous_plan(listed.problem, listed.families, previous, cost_model)
        priced = with_move_price(priced, listed.problem, listed.families, previous_state)
    context = SolveContext(
        problem=listed.problem,
        families=listed.families,
        cost_model=cost_model,
        limits=limits,
        assumptions=assumptions,
        began_seconds=began_seconds,
        previous_state=previous_state,
        listed_seconds=time.monotonic() - listing_seconds,
    )
    columns = GoalColumns.of(listed.problem, listed.families, priced)
    best, results, is_cut = _take_turns(context, columns, listed.assignment, first, partitioner)
    reached = first
    if best is not listed.assignment:
        outcome = Outcome(assignment=best, reason=Reason.FEASIBLE, partitioner=first.partitioner)
        reached = finish(context, priced, outcome, first.lower_bound_seconds)
    reached = replace(reached, goals=_checked(listed.problem, reached, results))
    return result_of(_with_termination(reached, limits, is_cut=is_cut or first.limit == _CLOCK))


def _with_termination(plan: Plan, limits: SolveLimits, *, is_cut: bool) -> Plan:
    """Say whether every objective is proven, and which had no search: of the whole solve, not of the step alone."""
    most = 1 + limits.relative_gap + RESOLUTION
    open_goals = [goal for goal in plan.goals if goal.value_at_turn > goal.lower_bound * most]
    if not open_goals:
        detail = f"every objective within relative_gap {limits.relative_gap:g} of its bound"
        return replace(plan, reason=Reason.OPTIMAL, limit=_CLOCK if is_cut else None, detail=detail)
    not_searched = [goal.name for goal in open_goals if goal.name != STEP_TIME and not goal.points]
    detail = "the best plan found for the ordered objectives, within the tolerance of each"
    if not_searched:
        is_cut, detail = True, f"no time was left to search for {', '.join(not_searched)}"
    return replace(plan, reason=Reason.FEASIBLE, limit=_CLOCK if is_cut else _OBJECTIVES, detail=detail)


def _take_turns(
    context: SolveContext, columns: GoalColumns, start: Assignment, first: Plan, partitioner: Partitioner
) -> tuple[Assignment, list[GoalResult], bool]:
    """Give each goal its turn; return the plan, what became of the goals, and whether the clock ended any search."""
    goals, best, is_cut = context.problem.goals, start, False
    results: list[GoalResult] = []
    left = _turns(context.problem)
    work_seconds = (1 - _OF_OBJECTIVE) * context.limits.work_seconds / max(left, 1)
    for index, goal in enumerate(goals):
        values = columns.values(best)
        limits = {one.name: goal.tolerance.limit(values[one.name], one.unit) for one in goals[:index]}
        turn = Turn(
            context=context,
            columns=columns,
            goal=goal,
            limits=limits,
            best=best,
            values=dict(values),
            step_bound_seconds=first.lower_bound_seconds,
        )
        if goal.name == STEP_TIME:  # limits leave fewer plans
            turn.lower_bound = first.lower_bound_seconds
        if index > 0 or goal.name != STEP_TIME:
            left_seconds = context.deadline.left_seconds
            turn.search(partitioner, Deadline(time.monotonic() + left_seconds / left), work_seconds)
            left -= 1
        best, is_cut = turn.best, is_cut or turn.is_cut_by_clock
        results.append(
            GoalResult(
                name=goal.name,
                unit=goal.unit,
                value=math.nan,  # which goals that follow may worsen
                value_before=values[goal.name],
                value_at_turn=turn.values[goal.name],
                lower_bound=min(turn.lower_bound, turn.values[goal.name]),
                limits=limits,
                points=tuple(turn.points),
            )
        )
    return best, results, is_cut


def _checked(problem: Problem, plan: Plan, results: list[GoalResult]) -> tuple[GoalResult, ...]:
    """Return the results with the values of the plan's geometry, which the limits of every turn hold for."""
    values = goal_values(problem, plan.placement, plan.evaluation, plan.movement)
    last = results[-1]
    if not math.isclose(values[last.name], last.value_at_turn, rel_tol=_AGREEMENT):
        raise SolverDefect(
            f"the searches believed {last.name} {last.value_at_turn}, the plan's geometry has {values[last.name]}"
        )
    _check_limits(values, last.limits)
    return tuple(replace(one, value=values[one.name]) for one in results)


def _check_limits(values: Mapping[str, float], limits: Mapping[str, float]) -> None:
    for name, limit in limits.items():
        if values[name] > limit * (1 + 2 * _AGREEMENT):
            raise SolverDefect(f"{name} is {values[name]}, and the goals that follow may worsen it to {limit}")
