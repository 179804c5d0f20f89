"""A plan that runs already, and what moving away from it takes."""

import math
from dataclasses import dataclass

from cost_models.vocabulary import Evidence
from planner.domain.expect import expect
from planner.domain.plan.placement import Placement

#: Steps over which a move must pay for itself, unless the user says how long the job still runs.
DEFAULT_REMAINING_STEPS = 1_000
#: Over so many, what moves costs nothing: those of a job that has not begun.
MAX_REMAINING_STEPS = 10**12
#: Part of the previous plan's objective that a plan must save before anything moves at all.
DEFAULT_MIN_RELATIVE_GAIN = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousPlan:
    """The plan to stay close to, and what a move may cost."""

    placement: Placement
    digest: str | None = None
    remaining_steps: int = DEFAULT_REMAINING_STEPS
    max_moved_bytes: float | None = None
    min_relative_gain: float = DEFAULT_MIN_RELATIVE_GAIN

    def __post_init__(self) -> None:
        expect(self.remaining_steps >= 1, "remaining_steps >= 1")
        expect(self.max_moved_bytes is None or 0 <= self.max_moved_bytes < math.inf, "max_moved_bytes >= 0")
        expect(0 <= self.min_relative_gain <= 1, "min_relative_gain in [0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPair:
    """Bytes that one rank sends another."""

    source: int
    target: int
    bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """What moves from the previous plan to a new one, counted cell by cell; weights and optimizer state.

    ``moved_bytes`` lie on other ranks before, or are further copies; ``kept_bytes`` are where they were;
    ``new_bytes`` are those of tables that the previous plan lacks or has in another shape.
    """

    previous_digest: str | None
    moved_bytes: float
    kept_bytes: float
    new_bytes: float
    pairs: tuple[RankPair, ...]  # by source, then target
    sent_bytes: tuple[float, ...]  # by rank of the larger cluster
    received_bytes: tuple[float, ...]
    #: the busiest rank's, every rank sending and receiving at once; None where the hardware states no link
    seconds: float | None
    link_evidence: Evidence | None  # of the weakest link speed behind ``seconds``
    previous_seconds: float | None  # its objective under the new statistics; None where it is no longer legal
    previous_issue: str  # why not
    saved_seconds_per_step: float | None
    break_even_steps: int | None  # None where nothing is saved
    #: between which limits the saved seconds lie; None where the cost model knows none
    saved_lower_seconds: float | None = None
    saved_upper_seconds: float | None = None
    charged_seconds: float  # what the search added to the objective of one step
    remaining_steps: int
    max_moved_bytes: float | None
