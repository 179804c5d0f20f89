"""Plans that running searches find: the best that keeps every limit is kept, and all of them may be streamed out.

The same incumbents are kept whether anyone listens or not. What is streamed is among them: an answer is never worse
than what was streamed before, and there is an answer wherever a plan was streamed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from planner.domain.plan.plan import Plan, PlanResult
from planner.orchestration.answers.finish_plan import SolveContext, finish, relative_gap_of, result_of
from planner.orchestration.limits.own_time import keeps_limits
from planner.orchestration.placement.stash import NoStash
from planner.orchestration.refine.faster_tier import move_rows_to_faster_tier
from planner.solver.partitioners.base import Incumbent
from planner.solver.partitioners.valid_start import within_move_budget
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem

OnResult = Callable[[PlanResult], None]

WORTH_REPORTING = 1e-3  # relative improvement of an incumbent that is streamed out
_REST = 6.0  # times as long as an incumbent took to verify, until the next one is


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalIncumbent:
    """The best incumbent so far that keeps every limit."""

    family_set: SolverProblem
    found: Incumbent
    found_at_seconds: float  # monotonic clock


class IncumbentReporter:
    """Keeps the best of the plans that searches report, and streams verified plans out of a running search."""

    def __init__(self, context: SolveContext, on_result: OnResult | None) -> None:
        self._context, self._on_result = context, on_result
        self.best: LegalIncumbent | None = None
        self.bound = 0.0  # over all plans, seconds
        self._is_bound_final = False
        #: what it took to finish a plan, the longest time: what is found at the end must be finished, too
        self.finish_seconds = 0.0
        #: monotonic clock; what could not be finished by then is not reported: the search ends, and its best plan is
        self.until_seconds = float("inf")
        self._reported_seconds = float("inf")
        self._course: list[tuple[float, float]] = []  # monotonic clock and objective of each plan that was the best
        self._last: Plan | None = None
        self._rest_until_seconds = 0.0  # monotonic clock

    @property
    def is_streaming(self) -> bool:
        """Whether plans are passed on while searches run."""
        return self._on_result is not None

    @property
    def best_seconds(self) -> float:
        """What a search minimises, of the best plan that is kept; infinite before there is one."""
        return float("inf") if self.best is None else self.best.found.objective_seconds

    def best_at(self, seconds: float) -> float | None:
        """Return the objective of the best plan that was known at a time of the monotonic clock, if any was."""
        return next((found for at, found in reversed(self._course) if at <= seconds), None)

    def report(self, family_set: SolverProblem, found: Incumbent) -> None:
        """Keep a plan if it is the best that keeps every limit.

        It is also finished and passed on, unless it is hardly better or finishing plans takes too much of the search.
        """
        began = time.monotonic()
        if not self._is_best(family_set, found):
            return
        self.best = LegalIncumbent(family_set=family_set, found=found, found_at_seconds=began)
        self._course.append((began, found.objective_seconds))
        if (
            self._on_result is None
            or found.objective_seconds > self._reported_seconds * (1 - WORTH_REPORTING)
            or began < self._rest_until_seconds
            or began + self.finish_seconds > self.until_seconds
        ):
            return
        outcome = Outcome(
            assignment=found.assignment,
            reason=Reason.FEASIBLE,
            detail="the search is still running",
            partitioner=found.partitioner,
        )
        try:
            self._last = finish(self._context, family_set, outcome, self.bound)
        except NoStash:  # a later one may be finished
            return
        self._reported_seconds = found.objective_seconds
        self._on_result(result_of(self._last))
        now = time.monotonic()
        self.finish_seconds = max(self.finish_seconds, now - began)
        self._rest_until_seconds = now + _REST * (now - began)

    def _is_best(self, family_set: SolverProblem, found: Incumbent) -> bool:
        return (
            found.objective_seconds < self.best_seconds
            and within_move_budget(family_set, found.assignment)  # which exact searches know nothing of
            and keeps_limits(self._context.problem, family_set, found.assignment)
        )

    def finished_best(self, limit: str) -> Plan:
        """Finish the plan that is kept, whose search ``limit`` ended; its bound is that over all plans."""
        assert self.best is not None
        family_set, found = self.best.family_set, self.best.found
        outcome = Outcome(
            assignment=with_nearer_rows(self._context, family_set, found.assignment),
            reason=Reason.FEASIBLE,
            limit=limit,
            partitioner=found.partitioner,
            found_at_seconds=self.best.found_at_seconds,
        )
        return finish(self._context, family_set, outcome, self.bound)

    def raise_bound(self, bound: float) -> None:
        """Take a better bound over all plans, and pass the last plan on again with it."""
        if self._is_bound_final:
            return
        more, self.bound = bound - self.bound, max(bound, self.bound)
        last = self._last
        if self._on_result is None or last is None or more <= WORTH_REPORTING * self.bound:
            return
        found = last.evaluation.objective_seconds
        proven = min(last.lower_bound_seconds + more, found)
        self._last = replace(last, lower_bound_seconds=proven, relative_gap=relative_gap_of(found, proven))
        self._on_result(result_of(self._last))

    def fix_bound(self) -> None:
        """Take no other bound: searches that follow see a part of all plans."""
        self._is_bound_final = True


def with_nearer_rows(context: SolveContext, family_set: SolverProblem, assignment: Assignment) -> Assignment:
    """Return the assignment with rows moved to memory that is free, if it keeps every limit then as before.

    A plan whose step becomes shorter leaves tiers less time.
    """
    nearer = move_rows_to_faster_tier(family_set, assignment)
    breaks = not keeps_limits(context.problem, family_set, nearer)
    return assignment if breaks and keeps_limits(context.problem, family_set, assignment) else nearer
