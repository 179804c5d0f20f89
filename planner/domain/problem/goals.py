"""Ordered goals: what a plan is to be good at, one after the other, and how much each may worsen those before it."""

import math
from dataclasses import dataclass

from planner.domain.expect import expect

STEP_TIME, FULLEST_RANK = "step_time", "fullest_rank"
CHECKPOINT_UPLOAD, MOVED_BYTES = "checkpoint_upload", "moved_bytes"
#: What each goal makes small, and the unit of its value.
#:
#: ``step_time``: the objective of that name. ``fullest_rank``: the largest share of its capacity of device memory that
#: any rank has in use by tables. ``checkpoint_upload``: the most bytes of a full checkpoint that any rank stores.
#: ``moved_bytes``: what moves from the previous plan. In the second and the third, row blocks count as full blocks and
#: caches by themselves, as searches have them.
GOALS = {STEP_TIME: "seconds", FULLEST_RANK: "share", CHECKPOINT_UPLOAD: "bytes", MOVED_BYTES: "bytes"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How much a goal may worsen those before it: each by a part of itself, or by an amount of its unit."""

    relative: float = 0.0
    seconds: float = 0.0
    bytes: float = 0.0

    def __post_init__(self) -> None:
        for name in ("relative", "seconds", "bytes"):
            expect(0 <= getattr(self, name) < math.inf, f"{name} >= 0")

    def limit(self, value: float, unit: str) -> float:
        """Return the largest value that an earlier goal of ``unit`` may have, which has ``value`` so far."""
        amount = {"seconds": self.seconds, "bytes": self.bytes}.get(unit, 0.0)
        return value * (1 + self.relative) + amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One of the ordered goals of a problem."""

    name: str
    tolerance: Tolerance = Tolerance()

    def __post_init__(self) -> None:
        expect(self.name in GOALS, f"the name of a goal to be one of {', '.join(GOALS)}")

    @property
    def unit(self) -> str:
        """Unit of the value: seconds, bytes, or a share."""
        return GOALS[self.name]
