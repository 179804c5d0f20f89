"""A compute model with all that says how far it may be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from cost_models.learned.lookups.compute import LearnedCompute
from cost_models.learned.lookups.contention import Contention
from cost_models.learned.reach.intervals import Interval
from cost_models.learned.reach.ranges import CHECKED, CHECKED_OF_RANK, Range

#: What every doubling outside of the measured range adds to the logarithm of an interval's reach: an assumption, in
#: place of knowledge.
REACH_PER_DOUBLING = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCompute:
    """Prices, their intervals, and the ranges of what they were fitted to."""

    compute: LearnedCompute
    contention: Contention
    ranges: Mapping[str, Range]  # of shards, by the names of CHECKED
    rank_ranges: Mapping[str, Range]  # of ranks, by CHECKED_OF_RANK
    intervals: tuple[Interval, ...]  # one per target

    def __post_init__(self) -> None:
        """Check that the pieces fit."""
        if self.ranges.keys() != CHECKED.keys():
            raise ValueError(f"Expected ranges of {', '.join(CHECKED)}.")
        if self.rank_ranges.keys() != set(CHECKED_OF_RANK):
            raise ValueError(f"Expected rank_ranges of {', '.join(CHECKED_OF_RANK)}.")
        if len(self.intervals) != len(self.compute.targets):
            raise ValueError(f"Expected {len(self.compute.targets)} intervals.")

    def reach(
        self, seconds: Floats, rank_sums: Mapping[str, Floats], contention: float | Floats, doublings: float | Floats
    ) -> Floats:
        """Return the logarithm of upper limit over prediction, (num_ranks, num_targets).

        Parameters
        ----------
        seconds
            What was predicted, (num_ranks, num_targets).
        rank_sums
            What each rank holds, as :func:`~cost_models.learned.reach.ranges.rank_sums` adds it up.
        contention
            That of the ranks' host, or of each rank's.
        doublings
            How far the number of ranks per host lies beyond those that were measured.
        """
        columns = [
            interval.reach(seconds[:, target], rank_sums["shards"], contention)
            for target, interval in enumerate(self.intervals)
        ]
        beyond = doublings + self.excess(rank_sums)
        result: Floats = np.stack(columns, axis=1) + np.reshape(REACH_PER_DOUBLING * beyond, (-1, 1))
        return result

    def excess(self, rank_sums: Mapping[str, Floats]) -> Floats:
        """Return by how many doublings each rank holds more than any that was measured, (num_ranks,)."""
        found: Floats = np.max([self.rank_ranges[name].excess(rank_sums[name]) for name in CHECKED_OF_RANK], axis=0)
        return found
