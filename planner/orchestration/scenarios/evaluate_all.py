"""Every plan in every scenario: its step there, and whether it may be used there. Counted from shards alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cost_models.arrays import Bools, Floats
from cost_models.protocol import CostModel
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.verification.evaluate_placement import score
from planner.verification.movement import transfer, transfer_seconds
from planner.verification.verify import NO_PARTITION, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Plans in scenarios."""

    seconds: Floats  # (num_plans, S) objective of a step; infinite where the plan is none of the scenario
    is_legal: Bools  # (num_plans, S)
    issues: dict[tuple[int, int], str]  # the first of each plan and scenario where it is not legal

    def with_rows(self, others: Self) -> Self:
        """Return these plans, and then others, in the same scenarios."""
        first = len(self.seconds)
        return type(self)(
            seconds=np.concatenate([self.seconds, others.seconds]),
            is_legal=np.concatenate([self.is_legal, others.is_legal]),
            issues={**self.issues, **{(first + row, column): one for (row, column), one in others.issues.items()}},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What it takes to go from one plan to another."""

    moved_bytes: float
    seconds: float | None  # ``None`` if bytes travel over links whose speed is not known


def evaluate_all(
    scenarios: Sequence[Problem], placements: Sequence[Placement], cost_models: Sequence[CostModel]
) -> Evaluated:
    """Score and verify every placement in every scenario, each with the cost model of the same index."""
    seconds = np.full((len(placements), len(scenarios)), np.inf)
    issues: dict[tuple[int, int], str] = {}
    for column, (problem, cost_model) in enumerate(zip(scenarios, cost_models, strict=True)):
        for row, placement in enumerate(placements):
            found = verify(problem, placement)
            if found:
                issues[row, column] = found[0].message
            if not any(issue.code in NO_PARTITION for issue in found):
                seconds[row, column] = score(problem, placement, cost_model).objective_seconds
    is_legal = np.ones(seconds.shape, dtype=np.bool_)
    for place in issues:
        is_legal[place] = False
    return Evaluated(seconds=seconds, is_legal=is_legal, issues=issues)


def move(problem: Problem, before: Placement, after: Placement) -> Move:
    """Return what moves between two plans of a problem, and how long that takes."""
    moved = transfer(problem.tables, before, after)
    return Move(moved_bytes=moved.moved_bytes, seconds=transfer_seconds(moved.pairs, problem.cluster))
