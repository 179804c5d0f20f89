"""What every kind of study is: a rule that turns points that have ended into the next ones, and in the end an answer.

A study has no state of its own. Its runner keeps the points and what became of them, and asks for the next points
again after each round. So a study that was cut off goes on where it was, and ends as it would have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from api.services.studies.rules.comparison import Compared, Comparison
from api.services.studies.rules.figures import Figures, Machines

WAITING = "waiting"
PLANNED, COMPARED, INFEASIBLE, NO_PLAN, INVALID, FAILED, CANCELLED = ENDED = (
    "planned",
    "compared",
    "infeasible",
    "no_plan",
    "invalid",
    "failed",
    "cancelled",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A spec to be planned, or plans to be compared."""

    key: str  # names the point in its study
    labels: Mapping[str, str]  # value of every axis, as text
    spec: Mapping[str, Any] | None  # None if it cannot be made, and of a comparison
    machines: Machines | None  # of the spec
    issue: str = ""  # why there is no spec
    comparison: Comparison | None = None  # in place of a solve


@dataclass(frozen=True, slots=True, kw_only=True)
class PointOutcome:
    """What became of a point."""

    state: str  # one of ENDED
    plan_digest: str | None = None
    objective_seconds: float | None = None
    lower_bound_seconds: float | None = None
    relative_gap: float | None = None
    limit: str | None = None
    figures: Figures | None = None  # of its plan
    at_best: Figures | None = None  # what no plan of the point is better than
    issues: Sequence[Mapping[str, str]] = field(default_factory=tuple)
    compared: Compared | None = None  # what a comparison came to


Outcomes = Mapping[str, PointOutcome]


class Study(Protocol):
    """One study. Deterministic: equal outcomes lead to equal points."""

    def next_points(self, ended: Outcomes) -> Sequence[Point]:
        """Return the points of the round after these, of which none has ended; none if the study is over."""
        ...

    def answer(self, ended: Outcomes) -> dict[str, Any]:
        """Return what the study found, as JSON."""
        ...
