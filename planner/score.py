"""What a placement costs, computed from its geometry alone, whoever made it."""

from cost_models.protocol import CostModel
from planner.domain.placement import Placement
from planner.domain.plan import Evaluation
from planner.domain.problem import Problem


def score(problem: Problem, placement: Placement, cost_model: CostModel) -> Evaluation:
    """Price every shard of ``placement`` and add up ranks, phases and bytes.

    The placement must name exactly the tables of the problem and only ranks that exist
    (``verify`` says whether it does); it may come from anywhere.
    """
    raise NotImplementedError
