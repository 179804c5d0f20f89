"""The ordered goals of a problem in its arrays: their values, their weighted sums, and the limits of those before.

``fullest_rank`` and ``checkpoint_upload`` are the largest of any rank, as a phase is: each becomes one more column of
what pieces add to their ranks. As limits they are capacities, and ``moved_bytes`` is a budget: searches and bounds know
both. ``step_time`` has no such form, so that a limit of it is a weight (:mod:`planner.orchestration.goals.turn`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats
from planner.domain.problem.goals import CHECKPOINT_UPLOAD, FULLEST_RANK, MOVED_BYTES, STEP_TIME
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.pricing.goal_amounts import RANK_GOALS, amounts_of_shards, rank_factors
from planner.pricing.price_options import shape_work
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.evaluate import rank_amounts, step_seconds_of
from planner.solver.movement import moved_bytes
from planner.solver.problem import Assignment, SolverProblem

_ROUNDING = 1e-9  # relative, of sums of what pieces add to a rank
_ROUNDING_BYTES = 0.5  # of what moves: bytes are whole


@dataclass(frozen=True, kw_only=True)
class GoalColumns:
    """A solver problem and what its pieces add to the goals of ranks."""

    priced: SolverProblem
    names: tuple[str, ...]  # of the G goals of ranks
    amounts: Floats  # (S, G) bytes that a piece of each shape adds to its ranks
    factors: Floats  # (R, G) from the bytes of a rank to the unit of the goal
    device_tier: int
    moves_are_a_goal: bool  # so that moving has no price in addition to its weight
    fixed_seconds: float  # of a step, whatever lies where: no column has them

    @classmethod
    def of(cls, problem: Problem, families: Families, priced: SolverProblem) -> "GoalColumns":
        """Count what pieces add, for the goals of a problem; ``priced`` has all of its families."""
        names = tuple(goal.name for goal in problem.goals if goal.name in RANK_GOALS)
        amounts, factors = np.zeros((priced.num_shapes, len(names))), np.ones((priced.num_ranks, len(names)))
        if names:
            work = shape_work(problem, families)
            for column, name in enumerate(names):
                amounts[:, column] = amounts_of_shards(problem, name, work, table=priced.shape_table)
                factors[:, column] = rank_factors(problem, name)
        return cls(
            priced=priced,
            names=names,
            amounts=amounts,
            factors=factors,
            device_tier=int(problem.cluster.device_tier),
            moves_are_a_goal=any(goal.name == MOVED_BYTES for goal in problem.goals),
            fixed_seconds=seconds_without_shards(problem, 0.0),
        )

    def values(self, assignment: Assignment) -> dict[str, float]:
        """Return the value of every goal of the problem under an assignment, each in its unit."""
        found = {STEP_TIME: step_seconds_of(self.priced, assignment) + self.fixed_seconds}
        if self.names:
            of_ranks = rank_amounts(self.priced, assignment, self.amounts) * self.factors
            found |= zip(self.names, of_ranks.max(axis=0).tolist(), strict=True)
        if self.priced.move is not None:
            found[MOVED_BYTES] = moved_bytes(self.priced, assignment)
        return found

    def weighted(self, weights: Mapping[str, float]) -> SolverProblem:
        """Return the problem whose objective is the weighted sum of the goals; goals without a weight count nothing.

        The weighted columns are what the goals add, so that a phase is still counted once or not at all.
        """
        priced, of_step = self.priced, weights.get(STEP_TIME, 0.0)
        of_ranks = np.array([weights.get(name, 0.0) for name in self.names])
        no_windows = np.zeros(len(self.names))
        move = priced.move
        if move is not None:
            prices = weights.get(MOVED_BYTES, 0.0), 0.0
            if not self.moves_are_a_goal:
                prices = move.seconds_per_byte * of_step, move.any_seconds * of_step
            move = replace(move, seconds_per_byte=prices[0], any_seconds=prices[1])
        return replace(
            priced,
            shape_seconds=np.concatenate([priced.shape_seconds * of_step, self.amounts * of_ranks], axis=1),
            rank_slowdown=np.concatenate([priced.rank_slowdown, self.factors], axis=1),
            phase_weight=np.concatenate([priced.phase_weight, np.ones(len(self.names))]),
            phase_window_seconds=np.concatenate([priced.phase_window_seconds * of_step, no_windows]),
            kind_start_seconds=np.concatenate(
                [priced.kind_start_seconds * of_step, np.zeros((priced.num_kinds, len(self.names)))], axis=1
            ),
            move=move,
        )

    def limited(self, priced: SolverProblem, limits: Mapping[str, float]) -> SolverProblem:
        """Return a weighted problem whose plans keep limits of goals before, but for that of ``step_time``."""
        if FULLEST_RANK in limits:
            capacity = priced.capacity_bytes.copy()
            of_goal = limits[FULLEST_RANK] * (1 + _ROUNDING) / self.factors[:, self.names.index(FULLEST_RANK)]
            capacity[:, self.device_tier] = np.minimum(capacity[:, self.device_tier], of_goal)
            priced = replace(priced, capacity_bytes=capacity)
        if CHECKPOINT_UPLOAD in limits:
            stored = self.amounts[:, [self.names.index(CHECKPOINT_UPLOAD)]]
            most = np.full((priced.num_ranks, 1), limits[CHECKPOINT_UPLOAD] * (1 + _ROUNDING))
            priced = replace(
                priced,
                shape_bytes=np.concatenate([priced.shape_bytes, stored], axis=1),
                shape_total_bytes=np.concatenate(
                    [priced.shape_total_bytes, stored * priced.shape_ranks[:, None]], axis=1
                ),
                capacity_bytes=np.concatenate([priced.capacity_bytes, most], axis=1),
            )
        if MOVED_BYTES in limits:
            assert priced.move is not None
            most_bytes = min(priced.move.max_bytes, math.floor(limits[MOVED_BYTES]) + _ROUNDING_BYTES)
            priced = replace(priced, move=replace(priced.move, max_bytes=most_bytes))
        return priced
