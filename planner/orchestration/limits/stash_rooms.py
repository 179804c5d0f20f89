"""Searches that count on less room from stashed weights, until whole tables make that room."""

import math
from collections.abc import Callable
from dataclasses import replace

from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.orchestration.answers.finish_plan import relative_gap_of
from planner.orchestration.placement.stash import NoStash
from planner.pricing.memory.stash import room_bytes
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import Reason

#: What one search after the other counts on: a part of the room, and whether shards larger than that make some of it.
#: The last needs no stash at all.
_ATTEMPTS = ((1.0, True), (0.75, True), (0.75, False), (0.4, False), (0.0, False))
_LATER = 0.5  # of the time limit, for every search but the first
_LIMIT = "stash"
_DETAIL = "whole tables do not make all the room that hidden copies allow; the bound counts on all of it"

Solve = Callable[[Problem, SolveLimits], PlanResult]


def solve_with_stash(problem: Problem, limits: SolveLimits, solve: Solve) -> PlanResult:
    """Solve a problem with the most room for which tables can be stashed; the bound is that of the most room of all."""
    if problem.stash is None:
        return solve(problem, limits)
    least: NoStash | None = None
    found: PlanResult | None = None
    for share, counts_all in _ATTEMPTS:
        largest = math.inf if counts_all else share * room_bytes(problem)
        stash = replace(problem.stash, room_share=share * problem.stash.room_share, largest_shard_bytes=largest)
        tried = replace(problem, stash=stash)
        later = replace(limits, time_limit_seconds=_LATER * limits.time_limit_seconds, work_limit_seconds=None)
        try:
            found = solve(tried, limits if least is None else later)
        except NoStash as error:
            least = least or error
            continue
        if least is None:
            return found
        if found.plan is not None:
            break
    assert found is not None, "a search without room needs no stash"
    assert least is not None
    return _within(found, least.bound_seconds, limits.relative_gap)


def _within(result: PlanResult, bound_seconds: float, relative_gap: float) -> PlanResult:
    """Return a result that was found with a part of the room, with the bound on all plans."""
    if result.plan is None:
        return replace(
            result,
            reason=Reason.NO_SOLUTION_FOUND,
            limit=_LIMIT,
            detail=_DETAIL,
            lower_bound_seconds=min(bound_seconds, result.lower_bound_seconds),
        )
    found = result.plan.evaluation.objective_seconds
    bound = min(bound_seconds, found)
    gap = relative_gap_of(found, bound)
    is_close = gap is not None and gap <= relative_gap
    reason = Reason.OPTIMAL if is_close else Reason.FEASIBLE
    limit = result.limit if is_close else _LIMIT
    plan = replace(
        result.plan,
        lower_bound_seconds=bound,
        relative_gap=gap,
        reason=reason,
        limit=limit,
        detail=_DETAIL,
        gap_parts=None,
        late_gain_seconds=None,
    )
    return replace(result, plan=plan, reason=reason, limit=limit, detail=_DETAIL, lower_bound_seconds=bound)
