"""The job that a group of ranks is a part of: how the ranks of the group lie among all ranks."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeJob:
    """All ranks of a job whose groups run the same collectives at the same time.

    ``stride`` is the distance between neighbours of a group: its ranks are every ``stride``-th rank of the job. The
    other ranks of a host belong to other groups, which send as much at the same time. ``pod_size`` are the ranks of a
    pod of hosts; ``None`` for none.
    """

    num_ranks: int
    ranks_per_host: int
    stride: int = 1
    pod_size: int | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.ranks_per_host < 1 or self.num_ranks % self.ranks_per_host:
            raise ValueError("Expected num_ranks to be a multiple of ranks_per_host.")
        if not 1 <= self.stride <= self.num_ranks:
            raise ValueError("Expected stride from 1 to num_ranks.")

    def share_of_host(self, ranks_per_host: int) -> float:
        """Return the share of a host's ranks that a group with so many ranks per host has."""
        return ranks_per_host / self.ranks_per_host
