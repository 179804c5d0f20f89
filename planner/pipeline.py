"""The whole way from a problem to a plan. Read this first.

    problem -> options -> priced arrays -> partitioner -> assignment -> placement
            -> independent score and checks -> plan

Nothing leaves this module that :mod:`planner.verify` rejects.
"""

from collections.abc import Callable

from cost_models.protocol import CostModel
from planner.domain.plan import PlanResult
from planner.domain.problem import Problem
from planner.partitioners.base import Partitioner, SolveLimits


def plan(
    problem: Problem,
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    on_result: Callable[[PlanResult], None] | None = None,
) -> PlanResult:
    """Plan a problem.

    Parameters
    ----------
    problem, cost_model, partitioner, limits
        What to plan, how to price it, who searches, and when to stop.
    on_result
        Called with every verified plan that improves on the one before, as it is found.

    Returns
    -------
    PlanResult
        The best plan with its bound, or the reason why there is none.
    """
    raise NotImplementedError
