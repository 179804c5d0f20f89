"""Adds up seconds by rank and phase, with their limits, while remembering the weakest number behind each."""

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Codes, Floats, Ints
from cost_models.protocol import RankSeconds
from cost_models.vocabulary import NUM_PHASES, STEP_PHASES, Evidence, Phase

#: Between which factors of an analytic prediction a measured time is expected to lie: an assumption, since nothing was
#: measured there.
ANALYTIC_FACTOR = 2.0


def by_rank(values: Floats | NDArray[np.float32], rank: Ints, num_ranks: int) -> Floats:
    """Return the sums of shards' values (num_shards,) over the shards of each rank, (num_ranks,)."""
    sums: Floats = np.bincount(rank, values, num_ranks).astype(np.float64)
    return sums


class RankTally:
    """Seconds of every rank and phase, and their limits, as they add up."""

    def __init__(self, num_ranks: int) -> None:
        self.num_ranks = num_ranks
        shape = (num_ranks, NUM_PHASES)
        self._seconds, self._lower, self._upper, self._learned = (np.zeros(shape) for _ in range(4))
        self._evidence = np.full(shape, Evidence.MEASURED, dtype=np.int8)

    def add(self, phase: Phase, seconds: Floats, lower: Floats, upper: Floats, evidence: Codes) -> None:
        """Add learned seconds of one phase, all (num_ranks,)."""
        self._seconds[:, phase] += seconds
        self._learned[:, phase] += seconds
        self._lower[:, phase] += lower
        self._upper[:, phase] += upper
        self._note(phase, evidence, seconds > 0)

    def add_analytic(self, shard_seconds: Floats, shard_evidence: Codes, rank: Ints) -> None:
        """Add the analytic seconds of shards, (num_shards, NUM_PHASES)."""
        for phase in STEP_PHASES:
            seconds = by_rank(shard_seconds[:, phase], rank, self.num_ranks)
            self._seconds[:, phase] += seconds
            self._lower[:, phase] += seconds / ANALYTIC_FACTOR
            self._upper[:, phase] += seconds * ANALYTIC_FACTOR
            weakest = np.zeros(self.num_ranks, dtype=np.int8)
            takes_time = shard_seconds[:, phase] > 0
            np.maximum.at(weakest, rank[takes_time], shard_evidence[takes_time, phase])
            self._note(phase, weakest, seconds > 0)

    def _note(self, phase: int, evidence: Codes, takes_time: Bools) -> None:
        weaker = np.maximum(self._evidence[:, phase], evidence)
        self._evidence[:, phase] = np.where(takes_time, weaker, self._evidence[:, phase])

    def result(self) -> RankSeconds:
        """Return the sums."""
        return RankSeconds(
            seconds=self._seconds,
            # Rounding of sums must not put a limit on the wrong side.
            lower_seconds=np.minimum(self._lower, self._seconds),
            upper_seconds=np.maximum(self._upper, self._seconds),
            learned_seconds=self._learned,
            evidence=self._evidence,
        )
