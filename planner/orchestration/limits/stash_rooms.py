"""Searches that count on room from stashed weights, and end with plans that can be stashed.

Whether whole tables make the room shows only in a plan. A short search that counts on all the room has the bound of all
plans. Another one is held to what can be stashed if all tables are that may be: each of its plans can be. A longer one
of that kind follows if it finds a plan, or if neither does. Where copies of all tables take too long, a longer search
counts on all the room, and if tables cannot be stashed under its plan, on less and less. The best of all plans is the
result.
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

#: What searches count on where not all tables can be stashed: a part of the room, and whether shards larger than that
#: make some of it. The last needs no stash at all.
_LESS_ROOM = ((0.75, True), (0.75, False), (0.4, False), (0.0, False))
_SHORT = 0.1  # of the time and the work that are left, for every search that shows whether tables make the room
_LONG = 0.7  # of what is left then, for the search that follows: it may end with a plan that cannot be stashed
_LEAST_SECONDS = 1e-3  # of a search
_LIMIT = "stash"
_DETAIL = "searches had more limits than whole tables have; the bound counts on all the room that hidden copies allow"

#: Plans a problem within limits; the last argument says whether those who wait hear of plans on the way.
Solve = Callable[[Problem, SolveLimits, bool], PlanResult]


def solve_with_stash(problem: Problem, limits: SolveLimits, solve: Solve) -> PlanResult:
    """Solve a problem with room from stashed tables; the bound is that of the most room of all."""
    stash = problem.stash
    if stash is None:
        return solve(problem, limits, True)
    searches = _Searches(limits, solve)
    relaxed, whole = problem, replace(problem, stash=replace(stash, stashes_all=True))
    first = searches.found(relaxed, _SHORT, is_bound=True)
    if first is not None and _is_ended(first):
        return first
    of_all = searches.found(whole, _SHORT)
    if of_all is not None and of_all.plan is not None:
        if of_all.limit != CUTOFF:
            searches.found(whole, 1.0, is_long=True)
        return searches.result()
    if of_all is not None and of_all.reason is not Reason.INFEASIBLE and (first is None or first.plan is None):
        longer = searches.found(whole, _LONG, is_long=True)
        if longer is not None and longer.plan is not None:
            return searches.result()
    if first is not None and searches.found(relaxed, _LONG, is_long=True, is_bound=True) is not None:
        return searches.result()
    for number, (share, counts_all) in enumerate(_LESS_ROOM):
        tried, is_last = _with_room(problem, stash, share, counts_all=counts_all), number == len(_LESS_ROOM) - 1
        shown = searches.found(tried, _SHORT)
        if shown is None:
            continue
        if _is_ended(shown):
            break
        if searches.found(tried, 1.0 if is_last else _LONG, is_long=True) is not None:
            break
    return searches.result()


def _is_ended(found: PlanResult) -> bool:
    """Whether a longer search of the same plans could find nothing else."""
    return found.reason in (Reason.OPTIMAL, Reason.INFEASIBLE) or found.limit == CUTOFF


class _Searches:
    """Searches one after the other within the same limits, and the best plan of them that can be stashed."""

    def __init__(self, limits: SolveLimits, solve: Solve) -> None:
        self._limits, self._solve = limits, solve
        self._ends_seconds = time.monotonic() + limits.time_limit_seconds
        self._work = 1.0  # that is left
        self._best: PlanResult | None = None
        self._is_best_of_bound = False  # whether the best plan is of a long search that counts on all the room
        self._bound_seconds = 0.0

    def found(self, tried: Problem, part: float, *, is_long: bool = False, is_bound: bool = False) -> PlanResult | None:
        """Search with a part of what is left; ``None`` if no set of whole tables makes the room under its plan.

        The bound of a search that counts on all the room is that of all plans: ``is_bound``.
        """
        left_seconds = self._ends_seconds - time.monotonic()
        if is_long and left_seconds <= 0 and self._best is not None:
            return self._best
        limits = self._limits
        if not is_bound and not limits.is_cut_off(self._bound_seconds):  # the bound of all plans is the published one
            limits = replace(limits, cutoff_seconds=None)
        within = replace(
            limits,
            time_limit_seconds=max(part * left_seconds, _LEAST_SECONDS),
            work_limit_seconds=part * self._work * self._limits.work_seconds,
        )
        self._work *= 1 - part
        try:
            found = self._solve(tried, within, is_long)
        except NoStash as error:
            self._raise_bound(error.bound_seconds, is_bound)
            return None
        self._raise_bound(found.lower_bound_seconds, is_bound)
        best = _better(self._best, found)
        if best is found:
            self._best, self._is_best_of_bound = found, is_bound and is_long
        return found

    def _raise_bound(self, bound_seconds: float, is_bound: bool) -> None:
        if is_bound:
            self._bound_seconds = max(self._bound_seconds, bound_seconds)

    def result(self) -> PlanResult:
        """Return the best plan, with the bound on all plans."""
        assert self._best is not None, "a search without room needs no stash"
        if self._is_best_of_bound and self._best.lower_bound_seconds >= self._bound_seconds:
            return self._best
        return _within(self._best, self._bound_seconds, self._limits.relative_gap)


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
