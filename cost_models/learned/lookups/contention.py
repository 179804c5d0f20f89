"""Ranks that share a host share its memory: how much of that a model was measured with."""

from dataclasses import dataclass
from math import log2

#: As many doublings beyond the measured numbers of ranks per host are still answered, with the contention of the
#: nearest that was measured: memory that is full cannot get fuller, and no measurement says how it would.
DOUBLINGS_BEYOND = 1.0


@dataclass(frozen=True, slots=True)
class Contention:
    """The numbers of ranks per host that were measured."""

    fewest: int
    most: int

    def __post_init__(self) -> None:
        """Reject what is no range."""
        if not 1 <= self.fewest <= self.most:
            raise ValueError(f"Expected 1 <= fewest <= most ranks per host, not {self.fewest} and {self.most}.")

    def of(self, ranks_per_host: int) -> float:
        """Return the doublings of ranks beyond the fewest that were measured, no more than were measured."""
        return log2(min(max(ranks_per_host, self.fewest), self.most) / self.fewest)

    def doublings_beyond(self, ranks_per_host: int) -> float:
        """Return how far a number of ranks lies outside; 0 inside.

        A model of one number of ranks shows nothing of contention and is taken at its word for any: memory of
        accelerators is not shared.
        """
        if self.fewest == self.most:
            return 0.0
        return max(log2(self.fewest / ranks_per_host), log2(ranks_per_host / self.most), 0.0)

    def holds(self, ranks_per_host: int) -> bool:
        """Return whether this number of ranks is answered."""
        return self.doublings_beyond(ranks_per_host) <= DOUBLINGS_BEYOND

    def text(self) -> str:
        """Say the range."""
        return str(self.fewest) if self.fewest == self.most else f"{self.fewest} to {self.most}"
