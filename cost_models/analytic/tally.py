"""Adds up seconds per shard and phase while remembering the weakest number behind each entry."""

import numpy as np

from cost_models.arrays import Codes, Floats, Ints
from cost_models.protocol import ShardSeconds
from cost_models.vocabulary import NUM_PHASES, Evidence, Phase


class Tally:
    """Sums that become a :class:`ShardSeconds`; lives inside one ``predict``."""

    def __init__(self, num_shards: int) -> None:
        self._seconds = np.zeros((num_shards, NUM_PHASES))
        self._evidence = np.full((num_shards, NUM_PHASES), Evidence.MEASURED, dtype=np.int8)

    def add(self, phase: Phase, seconds: Floats, evidence: Evidence | Codes) -> None:
        """Add seconds, shape (num_shards,); only shards that take time take on the evidence, one or (num_shards,)."""
        self._seconds[:, phase] += seconds
        weaker = np.maximum(self._evidence[:, phase], np.asarray(evidence, dtype=np.int8))
        self._evidence[:, phase] = np.where(seconds > 0, weaker, self._evidence[:, phase])

    def put(self, shards: Ints, found: ShardSeconds) -> None:
        """Take over what was found of some shards, which had nothing yet; one entry of ``shards`` for each."""
        self._seconds[shards], self._evidence[shards] = found.seconds, found.evidence

    def result(self) -> ShardSeconds:
        """Return the sums."""
        return ShardSeconds(seconds=self._seconds, evidence=self._evidence)
