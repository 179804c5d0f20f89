r"""The turn of one goal: searches for the plan that is best at it and keeps what the goals before it allow.

Limits of goals other than ``step_time`` are capacities and budgets of the problem: searches and bounds know them. With
``v`` the value of the goal, ``s`` the step time and ``S`` its limit, a turn with such a limit goes in two steps.

1. One search minimises ``v + w s``. If every plan has ``v + w s >= b``, then every plan within the limit has

   .. math:: v \ge b - w S

2. Searches minimise ``s`` with ``v`` limited to values between that bound and the best value so far, which they halve.
   A plan with ``s <= S`` is the best one so far. If every plan that keeps ``v <= c`` has ``s > S``, then every plan
   within the limit has ``v >= c``. A search that shows neither leaves the half below ``c`` to no other search.

A turn without a limit of step time is one search.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.domain.plan.goals import TradePoint
from planner.domain.problem.goals import MOVED_BYTES, STEP_TIME, Goal
from planner.orchestration.answers.conclude import Explored
from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.explore import explore
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.family_set import transferred
from planner.orchestration.goals.goal_columns import GoalColumns
from planner.orchestration.limits.own_time import keeps_limits
from planner.solver.evaluate import violations
from planner.solver.partitioners.base import Incumbent, Partitioner
from planner.solver.problem import Assignment, Reason, SolverProblem

_SEARCHES = 6  # of a turn with a limit of step time
_WEIGHT = 4.0  # of the first: parts of the limit of step time for one part of the goal
_EQUAL = 1e-9  # relative: values that differ by less are equal
_CLOSE = 1e-3  # relative: a goal so close to its bound, or to what no search reached, is searched no more
_CLOCK = "time"


@dataclass(slots=True, kw_only=True)
class Turn:
    """The best plan of a goal so far, and what is proven of all plans that keep the limits."""

    context: SolveContext
    columns: GoalColumns
    goal: Goal
    limits: Mapping[str, float]  # of the goals before, by name
    best: Assignment
    values: dict[str, float]  # of the best plan, by goal
    step_bound_seconds: float  # that no plan's step is shorter than
    lower_bound: float = 0.0
    points: list[TradePoint] = field(default_factory=list)
    is_cut_by_clock: bool = False

    def look(self, priced: SolverProblem, found: Assignment) -> None:
        """Take a plan of a weighted problem if it keeps every limit and is better."""
        base = self.columns.priced
        assignment = transferred(found, priced, base)
        if assignment is None:
            return
        values = self.columns.values(assignment)
        if any(values[name] > limit * (1 + _EQUAL) for name, limit in self.limits.items()):
            return
        if not self._is_better(values) or violations(base, assignment):
            return
        if keeps_limits(self.context.problem, base, assignment):
            self.best, self.values = assignment, values

    def _is_better(self, values: Mapping[str, float]) -> bool:
        """Whether values are better at the goal, or equal and better at the first goal that differs."""
        for name in (self.goal.name, *self.limits):
            if not math.isclose(values[name], self.values[name], rel_tol=_EQUAL):
                return values[name] < self.values[name]
        return False

    def search(self, partitioner: Partitioner, deadline: Deadline, work_seconds: float) -> None:
        """Search until the deadline; ``work_seconds`` is what reproducible searches may spend in all."""
        scale = self.values[STEP_TIME] or 1.0  # of a step, so that weighted sums are about as long as one
        weights = {self.goal.name: scale / (self.values[self.goal.name] or 1.0)}
        num_searches = 1
        if STEP_TIME in self.limits:
            weights[STEP_TIME] = _WEIGHT * scale / (self.limits[STEP_TIME] or 1.0)
            num_searches = _SEARCHES
        floor = 0.0  # below which no search found a plan
        for index in range(num_searches):
            value = self.values[self.goal.name]
            if deadline.is_over() or value <= max(floor, self.lower_bound) * (1 + _CLOSE):
                break
            share = num_searches - index
            parts = deadline.left_seconds / share, work_seconds / num_searches
            if index == 0:
                least = self._explore(partitioner, weights, self.limits, *parts)
                of_limits = weights.get(STEP_TIME, 0.0) * self.limits.get(STEP_TIME, 0.0)
                self.lower_bound = max(self.lower_bound, (least - of_limits) / weights[self.goal.name])
                continue
            # Bounds know nothing of moves: whether any are needed is asked first.
            is_first_of_moves = self.goal.name == MOVED_BYTES and index == 1
            limit = 0.0 if is_first_of_moves else (max(floor, self.lower_bound) + value) / 2
            least = self._explore(partitioner, {STEP_TIME: 1.0}, {**self.limits, self.goal.name: limit}, *parts)
            if least > self.limits[STEP_TIME] * (1 + _EQUAL):
                self.lower_bound = max(self.lower_bound, limit)
            elif self.values[self.goal.name] > limit * (1 + _EQUAL):
                floor = limit

    def _explore(
        self,
        partitioner: Partitioner,
        weights: Mapping[str, float],
        limits: Mapping[str, float],
        limit_seconds: float,
        work_seconds: float,
    ) -> float:
        """Search for the least weighted sum within limits; return what it is at least, infinite if there is no plan."""
        began, columns = time.monotonic(), self.columns
        context = replace(
            self.context,
            limits=replace(
                self.context.limits,
                time_limit_seconds=max(limit_seconds, 1e-3),
                work_limit_seconds=work_seconds if self.context.limits.reproducible else None,
                relative_gap=0.0,
                cutoff_seconds=None,  # of the objective, and this is a weighted sum
            ),
            began_seconds=began,
            listed_seconds=0.0,
        )
        reporter = _TurnReporter(context, self)
        searched = columns.limited(columns.weighted(weights), limits)
        explored = explore(context, searched, partitioner, reporter, (columns.priced, self.best))
        assert isinstance(explored, Explored), "the rules of modules left a plan before"
        least = explored.bound(reporter.bound) + weights.get(STEP_TIME, 0.0) * columns.fixed_seconds
        if weights.keys() == {STEP_TIME}:
            least = max(least, weights[STEP_TIME] * self.step_bound_seconds)
        solved = [one for one in explored.searched if one.outcome.assignment is not None]
        self.is_cut_by_clock |= any(one.outcome.limit == _CLOCK for one in explored.searched)
        found = None
        for one in sorted(solved, key=lambda one: one.seconds):
            assert one.outcome.assignment is not None
            self.look(one.priced, one.outcome.assignment)
            found = found or transferred(one.outcome.assignment, one.priced, columns.priced)
        values = None if found is None else columns.values(found)
        limit = self.limits.get(STEP_TIME, math.inf)
        shown = min(least, limit) if values is None else least  # bounds of no plan at all rise without end
        self.points.append(TradePoint(weights=weights, limits=limits, values=values, least_sum=shown))
        is_refuted = explored.is_exhaustive and all(
            one.outcome.reason is Reason.INFEASIBLE for one in explored.holding_all
        )
        return math.inf if is_refuted else least


class _TurnReporter(IncumbentReporter):
    """Shows a turn every plan that searches of a weighted problem meet; nothing is streamed."""

    def __init__(self, context: SolveContext, turn: Turn) -> None:
        super().__init__(context, None)
        self._turn = turn

    def report(self, family_set: SolverProblem, found: Incumbent) -> None:
        """Show the turn a plan, whatever its weighted sum."""
        self._turn.look(family_set, found.assignment)
        super().report(family_set, found)

    def _is_best(self, family_set: SolverProblem, found: Incumbent) -> bool:
        """The limits of a plan are the turn's matter: seconds of a weighted problem are none."""
        return found.objective_seconds < self.best_seconds
