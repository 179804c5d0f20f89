"""The plan under which the checkpoint was written that a job starts from, and what of it a new plan may not lose."""

from dataclasses import dataclass
from typing import Literal

from planner.domain.expect import expect
from planner.domain.plan.placement import Placement

#: Optimizer state alone, or the sharding type of every table, too.
Keep = Literal["state", "schemes"]
KEEPS: tuple[Keep, ...] = ("state", "schemes")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """Where the rows of a checkpoint lie: on a cluster of any size, whose ranks need not be those of the new plan."""

    placement: Placement
    keep: Keep = "state"

    def __post_init__(self) -> None:
        expect(self.keep in KEEPS, f"keep to be one of {', '.join(KEEPS)}")
