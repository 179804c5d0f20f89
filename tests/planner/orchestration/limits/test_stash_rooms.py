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

LIMITS = SolveLimits(time_limit_seconds=8.0, work_limit_seconds=4.0)


class Searches:
    """Fails in some searches by their number, else finds a plan."""

    def __init__(self, *failures: int, reason: str = "FEASIBLE", seconds: tuple[float, ...] = ()) -> None:
        self._seconds = seconds  # of the plans, by search; 1 s where not given
        self.rooms: list[float] = []  # of each search
        self.largest: list[float] = []  # shards that each counted on
        self.stashes_all: list[bool] = []
        self.limits: list[SolveLimits] = []
        self.reported: list[bool] = []
        self._failures, self._reason = failures, reason

    def __call__(self, problem: Problem, limits: SolveLimits, is_reported: bool) -> PlanResult:
        self.rooms.append(-1.0 if problem.stash is None else problem.stash.room_share)
        self.largest.append(0.0 if problem.stash is None else problem.stash.largest_shard_bytes)
        self.stashes_all.append(problem.stash is not None and problem.stash.stashes_all)
        self.limits.append(limits)
        self.reported.append(is_reported)
        number = len(self.rooms)
        if number in self._failures:
            raise NoStash(0.5 + number / 10)
        bound = 0.9 + number / 100
        if self._reason in ("INFEASIBLE", "NO_SOLUTION_FOUND"):
            return PlanResult(plan=None, reason=self._reason, limit=None, detail="", lower_bound_seconds=0.0)
        seconds = self._seconds[number - 1] if self._seconds else 1.0
        evaluation = replace(whole_plan().evaluation, objective_seconds=seconds)
        plan = replace(whole_plan(), evaluation=evaluation, lower_bound_seconds=bound, reason=self._reason, limit=None)
        return PlanResult(plan=plan, reason=self._reason, limit=None, detail="", lower_bound_seconds=bound)

    @property
    def work(self) -> list[float]:
        return [round(limits.work_seconds, 9) for limits in self.limits]


def solved(searches: Searches, stash: Stash | None) -> PlanResult:
    return solve_with_stash(make_problem(stash=stash), LIMITS, searches)


def test_problems_without_a_stash_are_solved_once() -> None:
    searches = Searches()
    assert solved(searches, None).lower_bound_seconds == 0.91
    assert (searches.rooms, searches.limits, searches.reported) == ([-1.0], [LIMITS], [True])


def test_a_search_that_can_stash_all_tables_is_followed_by_a_longer_one() -> None:
    """A tenth of 4 s of work for the bound, a tenth of the rest, then all; those who wait hear of the last alone."""
    searches = Searches()
    result = solved(searches, Stash())
    assert (result.reason, result.limit, result.lower_bound_seconds) == ("FEASIBLE", "stash", 0.91)
    assert searches.stashes_all == [False, True, True]
    assert searches.rooms == [ROOM_SHARE] * 3
    assert searches.work == pytest.approx([0.4, 0.36, 3.24])
    assert searches.reported == [False, False, True]
    assert searches.limits[0].time_limit_seconds == pytest.approx(0.8, rel=0.01)
    assert 7.6 < searches.limits[2].time_limit_seconds <= 8.0  # the short ones took no time here


def test_the_better_plan_of_a_search_that_stashes_all_has_the_bound_of_all_plans() -> None:
    result = solved(Searches(seconds=(1.0, 0.98, 0.95)), Stash())
    assert result.plan is not None
    assert result.plan.evaluation.objective_seconds == 0.95
    assert (result.limit, result.plan.lower_bound_seconds) == ("stash", 0.91)


@pytest.mark.parametrize("reason", ["OPTIMAL", "INFEASIBLE"])
def test_what_a_short_search_proves_needs_no_other(reason: str) -> None:
    searches = Searches(reason=reason)
    assert solved(searches, Stash()).reason == reason
    assert len(searches.rooms) == 1


@pytest.mark.parametrize("failures", [2, 5])
def test_less_room_is_tried_and_the_bound_is_that_of_the_most_room(failures: int) -> None:
    searches = Searches(*range(1, failures + 1))
    result = solved(searches, Stash())
    assert searches.rooms == sorted(searches.rooms, reverse=True)
    assert searches.largest[:3] == [math.inf, math.inf, math.inf]
    left = 4.0 * 0.9 ** (failures + 1)
    short = [0.4 * 0.9**number for number in range(failures + 1)]
    assert searches.work == pytest.approx([*short, left if failures == 5 else 0.7 * left])
    assert result.plan is not None
    assert (result.lower_bound_seconds, result.plan.lower_bound_seconds) == (0.6, 0.6)
    assert (result.reason, result.limit) == ("FEASIBLE", "stash")
    assert result.plan.relative_gap == pytest.approx(1 / 0.6 - 1)
    assert result.plan.gap_parts is None


@pytest.mark.parametrize(
    "failures", [(), (1,), (1, 2, 3, 4), (2,), (2, 4), (2, 4, 6), (2, 4, 6, 8), (1, 3, 5, 7), (2, 3, 5, 6)]
)
def test_all_searches_together_have_no_more_than_the_limits(failures: tuple[int, ...]) -> None:
    """Whichever fail, the short ones or the long ones."""
    searches = Searches(*failures)
    assert solved(searches, Stash()).plan is not None
    assert 0.5 * LIMITS.work_seconds <= sum(searches.work) <= LIMITS.work_seconds * (1 + 1e-9)
    assert searches.rooms == sorted(searches.rooms, reverse=True)


def test_a_longer_search_that_cannot_be_stashed_leaves_the_plan_of_the_short_one() -> None:
    """The next room has what is left; the bound is the better of both with the most room."""
    searches = Searches(2, 3, seconds=(1.0, 1.0, 1.0, 2.0, 3.0))
    result = solved(searches, Stash())
    assert result.plan is not None
    assert result.plan.evaluation.objective_seconds == 1.0
    assert (result.limit, result.lower_bound_seconds) == ("stash", 0.91)
    assert len(searches.rooms) == 5
    better = solved(Searches(2, 3, seconds=(1.0, 1.0, 1.0, 2.0, 0.95)), Stash())
    assert better.plan is not None
    assert better.plan.evaluation.objective_seconds == 0.95
    assert better.lower_bound_seconds == 0.91
    assert solved(Searches(1, 3), Stash()).lower_bound_seconds == 0.6


def test_too_little_room_proves_nothing() -> None:
    searches = Searches(1, 2, 3, reason="INFEASIBLE")
    result = solved(searches, Stash())
    assert searches.rooms[-1] < ROOM_SHARE
    assert searches.largest[3] < math.inf
    assert (result.plan, result.reason, result.limit) == (None, "NO_SOLUTION_FOUND", "stash")


def test_where_short_searches_find_nothing_a_longer_one_stashes_all() -> None:
    """Tight memory takes longer: the third search is the first long one, and has most of the work that is left."""
    searches = Searches(1, reason="NO_SOLUTION_FOUND")
    assert solved(searches, Stash()).plan is None
    assert searches.stashes_all[:3] == [False, True, True]
    assert searches.work[2] == pytest.approx(0.7 * 4.0 * 0.81)
