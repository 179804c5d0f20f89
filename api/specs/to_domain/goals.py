"""The ordered objectives of a spec as goals of the domain."""

from collections.abc import Sequence

from api.schemas.objectives import OrderedObjectiveSpec
from planner.domain.problem.goals import Goal, Tolerance


def goals_of(objectives: Sequence[OrderedObjectiveSpec]) -> tuple[Goal, ...]:
    """Return the goals in their order."""
    return tuple(
        Goal(
            name=one.name,
            tolerance=Tolerance(relative=one.tolerance, seconds=one.tolerance_seconds, bytes=one.tolerance_bytes),
        )
        for one in objectives
    )
