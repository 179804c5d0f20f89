"""Values of ordered goals, computed from the geometry of a plan alone."""

import numpy as np

from planner.domain.plan.movement import Movement
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Evaluation
from planner.domain.problem.goals import MOVED_BYTES, STEP_TIME
from planner.domain.problem.problem import Problem
from planner.pricing.goal_amounts import RANK_GOALS, amounts_of_shards, rank_factors
from planner.pricing.placed_work import PlacedWork


def goal_values(
    problem: Problem, placement: Placement, evaluation: Evaluation, movement: Movement | None
) -> dict[str, float]:
    """Return the value of each goal of a problem under a plan, each in its unit.

    ``evaluation`` and ``movement`` are those of the placement.
    """
    placed = PlacedWork.of(problem, placement)
    found = {}
    for goal in problem.goals:
        if goal.name in RANK_GOALS:
            of_kind = amounts_of_shards(problem, goal.name, placed.work, table=placed.table)
            of_ranks = placed.by_rank(problem, of_kind[:, np.newaxis])[:, 0]
            found[goal.name] = float(np.max(of_ranks * rank_factors(problem, goal.name)))
        elif goal.name == STEP_TIME:
            found[STEP_TIME] = evaluation.objective_seconds
        elif movement is not None:
            found[MOVED_BYTES] = movement.moved_bytes
    return found
