"""Searches that count on less room from stashed weights, until whole tables make that room.

Whether they do shows only in a plan. So a short search comes first for every room, from the most to less, and a longer
one follows where tables could be stashed. If they cannot be under its plan, the next room is tried with what is left of
the time, and the better of all plans that can be stashed is the result.
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
from planner.solver.partitioners.base import CUTOFF, SolveLimits
from planner.solver.problem import Reason

#: What one search after the other counts on: a part of the room, and whether shards larger than that make some of it.
#: The last needs no stash at all.
_ATTEMPTS = ((1.0, True), (0.75, True), (0.75, False), (0.4, False), (0.0, False))
_SHORT = 0.1  # of the time and the work that are left, for every search that shows whether tables make the room
_LONG = 0.7  # of what is left then, for the search that follows: it may end with a plan that cannot be stashed
_LEAST_SECONDS = 1e-3  # of a search
_LIMIT = "stash"
_DETAIL = "whole tables do not make all the room that hidden copies allow; the bound counts on all of it"

#: Plans a problem within limits; the last argument says whether those who wait hear of plans on the way.
Solve = Callable[[Problem, SolveLimits, bool], PlanResult]


def solve_with_stash(problem: Problem, limits: SolveLimits, solve: Solve) -> PlanResult:
    """Solve a problem with the most room for which tables can be stashed; the bound is that of the most room of all."""
    if problem.stash is None:
        return solve(problem, limits, True)
    ends_seconds, bound_seconds, work, spare = time.monotonic() + limits.time_limit_seconds, 0.0, 1.0, None
    for number, (share, counts_all) in enumerate(_ATTEMPTS):
        tried = _with_room(problem, problem.stash, share, counts_all=counts_all)
        if number > 0 and not limits.is_cut_off(bound_seconds):  # the bound of the most room is the published one
            limits = replace(limits, cutoff_seconds=None)
        within, work = _part(limits, _SHORT * (ends_seconds - time.monotonic()), _SHORT * work), (1 - _SHORT) * work
        try:
            found = solve(tried, within, False)
        except NoStash as error:
            bound_seconds = error.bound_seconds if number == 0 else bound_seconds
            continue
        left_seconds = ends_seconds - time.monotonic()
        is_ended = found.reason in (Reason.OPTIMAL, Reason.INFEASIBLE) or found.limit == CUTOFF
        if not is_ended and (spare is None or left_seconds > 0):
            part = 1.0 if number == len(_ATTEMPTS) - 1 else _LONG
            try:
                longer = solve(tried, _part(limits, part * left_seconds, part * work), True)
            except NoStash as error:
                bound_seconds = max(found.lower_bound_seconds, error.bound_seconds) if number == 0 else bound_seconds
                spare, work = _better(spare, found), (1 - part) * work
                continue
            found = longer
        return found if number == 0 else _within(_better(spare, found), bound_seconds, limits.relative_gap)
    raise AssertionError("a search without room needs no stash")


def _better(one: PlanResult | None, other: PlanResult) -> PlanResult:
    """Return the result with the better plan."""
    if one is None or one.plan is None:
        return other
    if other.plan is None or one.plan.evaluation.objective_seconds <= other.plan.evaluation.objective_seconds:
        return one
    return other


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
    limit, detail = (result.limit if is_close else _LIMIT), _DETAIL
    if result.limit == CUTOFF and not is_close:
        limit, detail = CUTOFF, f"{result.detail}; {_DETAIL}"
    plan = replace(
        result.plan,
        lower_bound_seconds=bound,
        relative_gap=gap,
        reason=reason,
        limit=limit,
        detail=detail,
        gap_parts=None,
        late_gain_seconds=None,
    )
    return replace(result, plan=plan, reason=reason, limit=limit, detail=detail, lower_bound_seconds=bound)
