"""Collectives as one platform runs them, learned from measured rows: one model for any number of ranks.

Holds a curve (:mod:`cost_models.learned.exchange.curve`) for every operation, direction of the training step, and
reach (one host, or several) that was measured. What was not measured is not guessed: ``unmeasured`` says why, and
``rank_seconds`` raises ``KeyError``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from cost_models.arrays import Floats
from cost_models.learned.exchange.curve import CollectiveKind, ExchangeCurve
from cost_models.learned.lookups.fitted import REACH_PER_DOUBLING

#: How far beyond the measured rank counts a curve is still used.
REACH = 2.0
#: Relative step of the slope that :meth:`LearnedExchange.seconds_per_byte` takes.
STEP = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedExchange:
    """Seconds of collectives by rank, with intervals that hold each with the probability ``coverage``."""

    curves: Mapping[CollectiveKind, ExchangeCurve]
    coverage: float

    def __post_init__(self) -> None:
        """Check the coverage and make the mapping read-only."""
        if not 0 < self.coverage < 1:
            raise ValueError("Expected coverage in (0, 1).")
        object.__setattr__(self, "curves", MappingProxyType(dict(self.curves)))

    def unmeasured(self, kind: CollectiveKind, num_ranks: int) -> str:
        """Say why a collective has no learned time; ``""`` if it has one.

        Rank counts may lie up to a factor :data:`REACH` beyond what was measured. Bytes may lie anywhere: the last
        straight piece of a curve goes on for ever, and a cheaper price beyond some size would be one to exploit.
        """
        curve = self._curve(kind)
        what = f"{kind.name} {'over several hosts' if kind.spans_hosts else 'inside one host'}"
        if curve is None:
            return f"{what} was not measured"
        least, most = int(curve.rank_counts[0]), int(curve.rank_counts[-1])
        if not least / REACH <= num_ranks <= most * REACH:
            return f"{what} was measured with {least} to {most} ranks, not with {num_ranks}"
        return ""

    def rank_seconds(
        self, kind: CollectiveKind, sent_bytes: Floats, received_bytes: Floats, start_seconds: Floats | None = None
    ) -> tuple[Floats, Floats, Floats]:
        """Seconds of every rank from its own start, and the limits of their intervals.

        Arrays have shape (..., num_ranks), with any leading axes; so have the results. Bytes include a rank's own
        part. ``start_seconds`` are the starts of the ranks where they are known; without them all start together.

        Raises
        ------
        KeyError
            The collective was not measured; see :meth:`unmeasured`.
        """
        curve = self._required(kind)
        held = held_bytes(kind if kind in self.curves else CollectiveKind(kind.operation), sent_bytes, received_bytes)
        seconds = curve.rank_seconds(held, start_seconds)
        lower, upper = curve.interval(seconds, held.shape[-1])
        wider = np.exp(REACH_PER_DOUBLING * _doublings(held.sum(axis=-1, keepdims=True), curve.most_bytes))
        return seconds, lower / wider, upper * wider

    def is_beyond(self, kind: CollectiveKind, total_bytes: float) -> bool:
        """Return whether all ranks together hold more than was measured."""
        return total_bytes > self._required(kind).most_bytes

    def shard_seconds(self, kind: CollectiveKind, shard_bytes: Floats, *, num_ranks: int, total_bytes: float) -> Floats:
        """Additive price of each shard's bytes, shape (num_shards,): its share of an evenly loaded rank's time.

        The rate is that of ``total_bytes`` spread evenly over the ranks, less the start, which is paid once per
        collective whatever the plan is.
        """
        curve = self._required(kind)
        if num_ranks < 2 or total_bytes <= 0:
            return np.zeros(shard_bytes.shape)
        even = np.full(num_ranks, total_bytes / num_ranks)
        start = self.start_seconds(kind, num_ranks)
        rate = max(float(curve.rank_seconds(even)[0]) - start, 0.0) / float(even[0])
        return shard_bytes * rate

    def start_seconds(self, kind: CollectiveKind, num_ranks: int) -> float:
        """Return what a collective takes before its first byte moves."""
        curve = self._required(kind)
        return curve.start_seconds + curve.peer_seconds * (num_ranks - 1)

    def seconds_per_byte(self, kind: CollectiveKind, held_bytes: Floats) -> float:
        """Return what the slowest rank's time changes by per byte, near the bytes (num_ranks,) that the ranks hold.

        Bytes move from all others to the rank that holds most: a search moves bytes, it does not add any. The change is
        at least the rate of an even load, times 1/100, so that no byte is free.
        """
        curve = self._required(kind)
        num_ranks = held_bytes.shape[-1]
        total = float(held_bytes.sum())
        if num_ranks < 2 or total <= 0:
            return 0.0
        busiest = int(np.argmax(held_bytes))
        moved = max(STEP * float(held_bytes[busiest]), 1.0)
        others = total - float(held_bytes[busiest])
        share = held_bytes / others if others > 0 else np.zeros(num_ranks)
        more = held_bytes - min(moved, others) * share
        more[busiest] = held_bytes[busiest] + moved
        now, then = (float(curve.rank_seconds(held).max()) for held in (held_bytes, more))
        even = self.shard_seconds(kind, np.ones(1), num_ranks=num_ranks, total_bytes=total)[0]
        return max((then - now) / moved, 0.01 * float(even))

    def _curve(self, kind: CollectiveKind) -> ExchangeCurve | None:
        """The curve of this direction, or the one measured outside a training step."""
        return self.curves.get(kind) or self.curves.get(kind._replace(direction=""))

    def _required(self, kind: CollectiveKind) -> ExchangeCurve:
        found = self._curve(kind)
        if found is None:
            raise KeyError(kind.name)
        return found


def _doublings(total_bytes: Floats, most_bytes: float) -> Floats:
    """Return how many doublings bytes lie beyond the most that was measured."""
    beyond: Floats = np.log2(np.maximum(total_bytes / max(most_bytes, 1.0), 1.0))
    return beyond


def held_bytes(kind: CollectiveKind, sent_bytes: Floats, received_bytes: Floats) -> Floats:
    """The side of a collective that depends on who holds which tables, any shape.

    An all-to-all sends what a rank holds (forward) and brings its gradients back (backward). The others have one
    buffer size for all ranks: the input of a reduce-scatter, the output of an all-gather. Where an all-to-all has no
    direction, the busier side counts.
    """
    if kind.operation == "all_to_all" and kind.direction == "forward":
        return sent_bytes
    if kind.operation == "all_to_all" and kind.direction == "backward":
        return received_bytes
    return np.maximum(sent_bytes, received_bytes)
