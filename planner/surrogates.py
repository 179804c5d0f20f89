"""Additive models near a plan, in place of one that prices ranks as a whole."""

from cost_models.protocol import AssignmentModel, CostModel
from planner.domain.placement import Placement
from planner.domain.problem import Problem
from planner.placed_work import PlacedWork


def additive_near(problem: Problem, placement: Placement, cost_model: CostModel) -> CostModel:
    """Return the additive model that agrees best near a placement: the model itself where it is additive."""
    if not isinstance(cost_model, AssignmentModel):
        return cost_model
    placed = PlacedWork.of(problem, placement).shards()
    return cost_model.around(placed.work.take(placed.kind), placed.rank, problem.cluster.hardware)
