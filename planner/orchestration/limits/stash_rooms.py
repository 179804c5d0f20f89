"""Searches that count on less room from stashed weights, until whole tables make that room.

Whether they do shows only in a plan. So short searches come first, with most room and then with less, and the rest of
the time goes to the first room for which tables could be stashed. All of them together take the time of the limits.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace

from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import Stash
from planner.orchestration.answers.finish_plan import relative_gap_of
from planner.orchestration.placement.stash import NoStash
from planner.pricing.memory.stash import room_bytes
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import Reason

#: What one search after the other counts on: a part of the room, and whether shards larger than that make some of it.
#: The last needs no stash at all.
_ATTEMPTS = ((1.0, True), (0.75, True), (0.75, False), (0.4, False), (0.0, False))
_SHORT = 0.1  # of time and work, for every search that shows whether tables make the room
_LEAST_SECONDS = 1e-3  # of a search
_LIMIT = "stash"
_DETAIL = "whole tables do not make all the room that hidden copies allow; the bound counts on all of it"

#: Plans a problem within limits; the last argument says whether those who wait hear of plans on the way.
Solve = Callable[[Problem, SolveLimits, bool], PlanResult]


def solve_with_stash(problem: Problem, limits: SolveLimits, solve: Solve) -> PlanResult:
    """Solve a problem with the most room for which tables can be stashed; the bound is that of the most room of all."""
    if problem.stash is None:
        return solve(problem, limits, True)
    began_seconds, bound_seconds = time.monotonic(), 0.0
    short = _part(limits, _SHORT * limits.time_limit_seconds, _SHORT)
    for number, (share, counts_all) in enumerate(_ATTEMPTS):
        tried = _with_room(problem, problem.stash, share, counts_all=counts_all)
        try:
            found = solve(tried, short, False)
        except NoStash as error:
            bound_seconds = error.bound_seconds if number == 0 else bound_seconds
            continue
        if found.reason not in (Reason.OPTIMAL, Reason.INFEASIBLE):
            left_seconds = limits.time_limit_seconds - (time.monotonic() - began_seconds)
            try:
                longer = solve(tried, _part(limits, left_seconds, 1 - (number + 1) * _SHORT), True)
            except NoStash as error:
                bound_seconds = max(found.lower_bound_seconds, error.bound_seconds) if number == 0 else bound_seconds
                if found.plan is None:
                    continue
                return _within(found, bound_seconds, limits.relative_gap)
            found = longer
        return found if number == 0 else _within(found, bound_seconds, limits.relative_gap)
    raise AssertionError("a search without room needs no stash")


def _with_room(problem: Problem, stash: Stash, share: float, *, counts_all: bool) -> Problem:
    """Return a problem that counts on a part of the room, and on shards larger than that only if asked to."""
    largest = math.inf if counts_all else share * room_bytes(problem)
    return replace(problem, stash=replace(stash, room_share=share * stash.room_share, largest_shard_bytes=largest))


def _part(limits: SolveLimits, time_seconds: float, work: float) -> SolveLimits:
    """Return limits of so much time, and of a part of the work."""
    return replace(
        limits,
        time_limit_seconds=max(time_seconds, _LEAST_SECONDS),
        work_limit_seconds=work * limits.work_seconds,
    )


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
