"""What a plan stashes while the dense part of a step runs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StashLoad:
    """Weights that leave the device between the lookups of a step and their backward pass, of the busiest rank."""

    num_tables: int
    busiest_rank: int  # with the most stashed bytes
    stashed_bytes: float  # of that rank
    all_ranks_bytes: float
    host_bytes: float  # of pinned buffers on that rank, at most
    to_host_seconds: float  # of that rank's copies
    to_device_seconds: float
    #: that dense compute waits for copies, of the rank where that is longest
    forward_wait_seconds: float
    backward_wait_seconds: float

    @property
    def wait_seconds(self) -> float:
        """Seconds that a step is longer."""
        return self.forward_wait_seconds + self.backward_wait_seconds
