"""What the ranks of an assignment take, and what they would take once a few shards have moved.

A rank's seconds are a function of sums over its shards, so a move changes the sums of two ranks: only these are asked
for again, many moves in one go.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats, Ints
from cost_models.learned.exchange.collectives import Collective
from cost_models.learned.lookups.compute import sum_by_rank
from cost_models.vocabulary import NUM_PHASES

#: Seconds (N, NUM_PHASES) of ranks whose shards' parts add up to (N, num_parts).
RankLaw = Callable[[Floats], Floats]
#: Seconds (..., num_ranks) of a collective of which the ranks hold bytes (..., num_ranks).
CollectiveLaw = Callable[[Collective, Floats], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedAssignment:
    """Shards on ranks; see ``cost_models.protocol.Assigned``."""

    parts: Floats  # (num_shards, num_parts): what the law of ranks adds up
    law: RankLaw
    collectives: Sequence[Collective]
    collective_law: CollectiveLaw
    rank: Ints  # (num_shards,)
    sums: Floats  # (num_ranks, num_parts)
    held: Floats  # (num_collectives, num_ranks): bytes

    @classmethod
    def of(
        cls,
        *,
        parts: Floats,
        law: RankLaw,
        collectives: Sequence[Collective],
        collective_law: CollectiveLaw,
        rank: Ints,
        num_ranks: int,
    ) -> "LearnedAssignment":
        """Add up what the shards of each rank have."""
        held = np.zeros((len(collectives), num_ranks))
        for i, one in enumerate(collectives):
            held[i] = np.bincount(rank, one.shard_bytes, num_ranks)
        return cls(
            parts=parts,
            law=law,
            collectives=collectives,
            collective_law=collective_law,
            rank=rank,
            sums=sum_by_rank(parts, rank, num_ranks),
            held=held,
        )

    @property
    def seconds(self) -> Floats:
        """Seconds of every rank and phase, (num_ranks, NUM_PHASES)."""
        seconds = self.law(self.sums)
        for one, held in zip(self.collectives, self.held, strict=True):
            seconds[:, one.phase] += self.collective_law(one, held)
        return seconds

    def after(self, shards: Ints, ranks: Ints) -> Floats:
        """Return the seconds after each of several changes; see ``cost_models.protocol.Assigned``."""
        from_ranks, changes = self.rank[shards], np.arange(len(shards))
        touched = np.concatenate([from_ranks, ranks], axis=1)  # (K, 2M), some of them twice
        gained = touched[:, :, None] == ranks[:, None, :]
        lost = touched[:, :, None] == from_ranks[:, None, :]
        sign = gained.astype(np.float64) - lost
        sums = self.sums[touched] + np.einsum("ktm,kmp->ktp", sign, self.parts[shards])
        np.maximum(sums, 0.0, out=sums)  # what float64 leaves of the last shard of a rank
        seconds = np.broadcast_to(self.law(self.sums), (len(shards), len(self.sums), NUM_PHASES)).copy()
        seconds[changes[:, None], touched] = self.law(sums.reshape(-1, sums.shape[2])).reshape(
            *touched.shape, NUM_PHASES
        )
        for one, held in zip(self.collectives, self.held, strict=True):
            moved = np.broadcast_to(held, (len(shards), len(held))).copy()
            for place in range(shards.shape[1]):
                moved[changes, from_ranks[:, place]] -= one.shard_bytes[shards[:, place]]
                moved[changes, ranks[:, place]] += one.shard_bytes[shards[:, place]]
            seconds[:, :, one.phase] += self.collective_law(one, np.maximum(moved, 0.0))
        return seconds

    def moved(self, shards: Ints, ranks: Ints) -> "LearnedAssignment":
        """Return the assignment after one change; the ranks that it touches are added up again."""
        rank, sums, held = self.rank.copy(), self.sums.copy(), self.held.copy()
        rank[shards] = ranks
        for touched in np.unique(np.concatenate([self.rank[shards], ranks])).tolist():
            there = np.flatnonzero(rank == touched)
            sums[touched] = self.parts[there].sum(axis=0)
            held[:, touched] = [one.shard_bytes[there].sum() for one in self.collectives]
        return replace(self, rank=rank, sums=sums, held=held)
