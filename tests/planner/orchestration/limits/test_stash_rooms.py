"""Searches with less and less room for stashed weights: which are tried, and what their bound is."""

import math
from dataclasses import replace

import pytest

from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.stash import ROOM_SHARE, Stash
from planner.orchestration.limits.stash_rooms import solve_with_stash
from planner.orchestration.placement.stash import NoStash
from planner.solver.partitioners.base import SolveLimits
from tests.support.planning.builders import make_problem
from tests.support.planning.whole_plan import whole_plan

LIMITS = SolveLimits(time_limit_seconds=8.0)


class Searches:
    """Fails until so many were made, then finds a plan of 1 s."""

    def __init__(self, failures: int, *, is_feasible: bool = True) -> None:
        self.tried: list[tuple[float, float]] = []  # room and time limit of each
        self.largest: list[float] = []  # shards that each counted on
        self._failures, self._is_feasible = failures, is_feasible

    def __call__(self, problem: Problem, limits: SolveLimits) -> PlanResult:
        room = -1.0 if problem.stash is None else problem.stash.room_share
        self.tried.append((room, limits.time_limit_seconds))
        self.largest.append(0.0 if problem.stash is None else problem.stash.largest_shard_bytes)
        if len(self.tried) <= self._failures:
            raise NoStash(0.5 + len(self.tried) / 10)
        plan = replace(whole_plan(), lower_bound_seconds=0.95, reason="OPTIMAL", limit=None)
        if not self._is_feasible:
            return PlanResult(plan=None, reason="INFEASIBLE", limit=None, detail="", lower_bound_seconds=0.0)
        return PlanResult(plan=plan, reason="OPTIMAL", limit=None, detail="", lower_bound_seconds=0.95)


def solved(searches: Searches, stash: Stash | None) -> PlanResult:
    return solve_with_stash(make_problem(stash=stash), LIMITS, searches)


def test_problems_without_a_stash_are_solved_once() -> None:
    searches = Searches(0)
    assert solved(searches, None).lower_bound_seconds == 0.95
    assert searches.tried == [(-1.0, 8.0)]


def test_a_first_search_that_can_be_stashed_is_the_result() -> None:
    searches = Searches(0)
    assert solved(searches, Stash()).reason == "OPTIMAL"
    assert searches.tried == [(ROOM_SHARE, 8.0)]


@pytest.mark.parametrize("failures", [1, 4])
def test_less_room_is_tried_and_the_bound_is_that_of_the_most_room(failures: int) -> None:
    searches = Searches(failures)
    result = solved(searches, Stash())
    rooms, limits = zip(*searches.tried, strict=True)
    assert list(rooms) == sorted(rooms, reverse=True)
    assert searches.largest[:2] == [math.inf, math.inf]
    assert set(limits[1:]) == {4.0}
    assert result.plan is not None
    assert (result.lower_bound_seconds, result.plan.lower_bound_seconds) == (0.6, 0.6)
    assert (result.reason, result.limit) == ("FEASIBLE", "stash")
    assert result.plan.relative_gap == pytest.approx(1 / 0.6 - 1)
    assert result.plan.gap_parts is None


def test_too_little_room_proves_nothing() -> None:
    searches = Searches(2, is_feasible=False)
    result = solved(searches, Stash())
    assert [room for room, _ in searches.tried][-1] == 0.0
    assert searches.largest[2] < math.inf
    assert (result.plan, result.reason, result.limit) == (None, "NO_SOLUTION_FOUND", "stash")
