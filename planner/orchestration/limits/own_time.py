"""Limits that a plan's own time decides, and that searches therefore know nothing of.

Host memory and block storage are busy for no longer than a step of the plan takes
(:mod:`planner.orchestration.limits.tier_bandwidth`), and requests come no faster than the plan sustains
(:mod:`planner.pricing.serving`). Most searches never meet either. If the plan that a search ends with breaks one, the
problem gets more columns of bytes, in seconds: for how long a piece keeps a tier busy, with a fixed step as the
capacity, and what it adds to a request, with the longest request that sustains the rate. The second column is exact. A
plan within the first may have a step that is shorter than the fixed one, and break its own limit: so several fixed
steps are tried, each between the longest that left no plan and the shortest in which a plan was too fast.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cost_models.arrays import Floats
from cost_models.vocabulary import STEP_PHASES
from planner.domain.plan.plan import Evaluation
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.orchestration.limits.tier_bandwidth import overloaded
from planner.pricing.serving import latency_without_shards, longest_request_seconds, overrun
from planner.pricing.step.index_dedup import exposed_in_step
from planner.solver.evaluate import busy_seconds, keeps_own_step, step_seconds_of
from planner.solver.problem import Assignment, OwnStep, SolverProblem

#: The unit of busy seconds in columns of bytes: searches distinguish whole bytes.
_UNITS_PER_SECOND = 1e12
_ROUNDING = 1e-9
#: Fixed steps that are tried, at most, and the ratio of two below which no other one is between them.
_MOST_STEPS, _CLOSE = 6, 1.02


def broken_limits(evaluation: Evaluation) -> Iterator[Issue]:
    """Yield what keeps a legal plan from being an answer: tiers that are too slow for it, requests that come too fast.

    Incumbents and final plans are asked alike.
    """
    return itertools.chain(overloaded(evaluation), overrun(evaluation))


def keeps_limits(problem: Problem, priced: SolverProblem, assignment: Assignment) -> bool:
    """Whether a valid assignment keeps them, from its pieces alone: searches report more plans than can be scored."""
    most_seconds = _longest_request(problem)
    if most_seconds < np.inf and step_seconds_of(priced, assignment) > most_seconds:
        return False
    return priced.shape_busy_seconds is None or keeps_own_step(priced, assignment, _own_step(problem, priced))


def _own_step(problem: Problem, priced: SolverProblem) -> OwnStep:
    weight = np.zeros(priced.num_phases)
    weight[list(STEP_PHASES)] = priced.phase_weight[list(STEP_PHASES)]
    rest_seconds = problem.dense.window_seconds + latency_without_shards(problem, 1.0) + exposed_in_step(problem)
    return OwnStep(
        phase_weight=weight, phase_window_seconds=priced.phase_window_seconds.copy(), rest_seconds=rest_seconds
    )


def _longest_request(problem: Problem) -> float:
    """Return what the shards of the slowest card may take of each request, seconds; infinite without a rate."""
    if problem.serving is None:
        return np.inf
    return longest_request_seconds(problem.serving) - latency_without_shards(problem, 1.0)


def with_limits(priced: SolverProblem, problem: Problem, *, step_seconds: float | None) -> SolverProblem:
    """Return the problem with the limits as capacities: tiers that are read are busy for ``step_seconds`` at most.

    With ``None`` that is the step of each plan itself, which integer programs can express; the capacities then leave
    room for any choice of pieces.
    """
    columns, rooms, own_step = [], [], None
    if priced.shape_busy_seconds is not None:
        most = _most_busy_seconds(priced) if step_seconds is None else step_seconds
        columns.append(priced.shape_busy_seconds)
        rooms.append(np.full((priced.num_ranks, priced.shape_busy_seconds.shape[1]), most))
        own_step = _own_step(problem, priced) if step_seconds is None else None
    longest = _longest_request(problem)
    if longest < np.inf:
        columns.append((priced.shape_seconds @ priced.phase_weight)[:, None])
        rooms.append(max(longest, 0.0) / priced.rank_slowdown.max(axis=1)[:, None])
    more = np.concatenate(columns, axis=1) * _UNITS_PER_SECOND
    room = np.concatenate(rooms, axis=1) * (1 + _ROUNDING) * _UNITS_PER_SECOND
    return replace(
        priced,
        shape_bytes=np.concatenate([priced.shape_bytes, more], axis=1),
        shape_total_bytes=np.concatenate([priced.shape_total_bytes, more * priced.shape_ranks[:, None]], axis=1),
        capacity_bytes=np.concatenate([priced.capacity_bytes, room], axis=1),
        own_step=own_step,
    )


def _most_busy_seconds(priced: SolverProblem) -> float:
    """Return for how long all tables together may keep a tier of one rank busy, at most."""
    assert priced.shape_busy_seconds is not None
    widest = np.zeros(priced.num_tables)
    np.maximum.at(widest, priced.shape_table, priced.shape_busy_seconds.max(axis=1) / priced.shape_columns)
    return float(widest @ priced.table_columns)


class StepsToTry:
    """Fixed steps, one after the other: the shortest there can be, then ever closer to where plans keep their own."""

    def __init__(self, priced: SolverProblem, shortest_seconds: float, found: Evaluation) -> None:
        """``found`` breaks a limit; no plan has a step, or keeps tiers busy, for less than ``shortest_seconds``."""
        self._without_plan = max(shortest_seconds, _least_busy_seconds(priced))
        self._too_long = max(_busiest_seconds(found), self._without_plan)
        self.step_seconds = self._without_plan
        self._left = _MOST_STEPS if priced.shape_busy_seconds is not None else 1

    def learn(self, found: Evaluation | None) -> bool:
        """Take what a search within the step found, and return whether another step is worth a try."""
        if found is None:
            self._without_plan = self.step_seconds
        else:
            self._too_long = min(self.step_seconds, max(_busiest_seconds(found), self._without_plan))
        self._left -= 1
        self.step_seconds = float(np.sqrt(self._without_plan * self._too_long))
        return self._left > 0 and self._too_long > _CLOSE * self._without_plan


def _busiest_seconds(found: Evaluation) -> float:
    return max((load.busy_seconds for load in found.tiers), default=0.0)


def _least_busy_seconds(priced: SolverProblem) -> float:
    """Return for how long any plan keeps some tier busy: the pins together, and each table under its best option."""
    if priced.shape_busy_seconds is None:
        return 0.0
    pinned = Assignment(piece_shape=priced.pinned_shape, piece_site=priced.pinned_site)
    of_option = _largest(priced.shape_busy_seconds.max(axis=1)[priced.unit_shape], priced.unit_option)
    least = np.full(priced.num_tables, np.inf)
    np.minimum.at(least, priced.option_table, of_option)
    return max(float(np.max(busy_seconds(priced, pinned), initial=0.0)), float(least.max()))


def _largest(values: Floats, of: np.ndarray) -> Floats:
    largest = np.zeros(int(of[-1]) + 1)
    np.maximum.at(largest, of, values)
    return largest
