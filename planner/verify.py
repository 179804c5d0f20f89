"""Whether a placement is right: cover, geometry, memory and constraints, told in words."""

from planner.domain.placement import Placement
from planner.domain.problem import Problem
from planner.errors import Issue


def verify(problem: Problem, placement: Placement) -> tuple[Issue, ...]:
    """Return everything that is wrong with a placement; empty means it may be used.

    Pointers are into the plan document (``/tables/3/shards/0``).
    """
    raise NotImplementedError
