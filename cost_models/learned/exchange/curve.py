r"""The time of one kind of collective, for any bytes per rank and any number of ranks.

With ``n`` ranks that hold ``b_1 .. b_n`` bytes each, rank ``r`` takes

.. math:: T_r = \alpha + \beta (n - 1) + \sum_k s_k \log_2(n)^{p_k}
          \left[\mathrm{clip}\Big(\prod_j \phi_{rj}^{w_{kj}}, l_k, h_k\Big) - l_k\right]

- ``phi``: six byte counts (:data:`SCALARS`) that never fall when a rank's bytes grow;
- a *ramp* ``k`` grows between ``l_k`` and ``h_k`` bytes with ``s_k >= 0`` seconds per byte. With one weight of 1 it
  is a piece of a piecewise-linear curve over one count (physics); with several it is a geometric mean of counts (what
  is learned beyond that). A count of less than one byte counts as one;
  ``w >= 0`` and ``s >= 0``, so time never falls with the bytes of any rank;
- ``log2(n)``, where p_k = 1, is what a byte costs more among more ranks. Next to a constant it also stands for the
  share (n-1)/n of the bytes that leave a rank, within a few per cent between measured rank counts.

Ranks that start late wait less: with starts ``u`` counted from the first, ``c_wait (max u - u_r) + c_span max u
- c_ahead (max u - mean u)`` is added. The last term is what early ranks finish before the last has come.

References
----------
Message curves of collectives: Lin et al., arXiv 2404.12674 (all-to-all by the largest message). Sum, largest and own
bytes together are needed where ranks share one memory bus.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, freeze

#: Byte counts that a ramp may weigh: the rank's own, and the mean, largest, second largest, mean of the larger half
#: and root mean square over all ranks.
SCALARS = ("own", "mean", "largest", "second", "larger_half", "root_mean_square")


class CollectiveKind(NamedTuple):
    """What has a curve of its own: an operation, its direction in a training step ("" for any), and its reach."""

    operation: str
    direction: str = ""
    spans_hosts: bool = False

    @property
    def name(self) -> str:
        """``"all_to_all forward"``, ``"all_reduce"``."""
        return f"{self.operation} {self.direction}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeCurve:
    """A fitted collective. Arrays of ramps have shape (num_ramps,); intervals (num_rank_counts, num_bins)."""

    start_seconds: float
    peer_seconds: float
    weights: Floats  # (num_ramps, len(SCALARS)), >= 0, rows sum to 1
    low_bytes: Floats
    high_bytes: Floats  # > low; infinite for the last piece
    log_ranks: Floats  # 0 or 1: the power of log2(n)
    seconds_per_byte: Floats  # >= 0
    skew: Floats  # (3,): c_wait, c_span, c_ahead, all >= 0
    #: Which rank counts were measured, increasing; and up to how many bytes in all.
    rank_counts: NDArray[np.int64]
    least_bytes: float
    most_bytes: float
    #: Factors on the seconds, by rank count and by bins of predicted seconds that end at ``bin_seconds``.
    bin_seconds: Floats  # (num_bins - 1,), increasing
    lower: Floats  # <= 1
    upper: Floats  # >= 1
    num_rows: int  # measured rows behind it

    def __post_init__(self) -> None:
        """Check shapes and signs, and make the arrays read-only."""
        ramps, counts = len(self.seconds_per_byte), len(self.rank_counts)
        shapes = {
            "weights": (ramps, len(SCALARS)),
            "low_bytes": (ramps,),
            "high_bytes": (ramps,),
            "log_ranks": (ramps,),
            "skew": (3,),
            "lower": (counts, len(self.bin_seconds) + 1),
            "upper": (counts, len(self.bin_seconds) + 1),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"Expected {name} of shape {shape}, not {getattr(self, name).shape}.")
        for field in fields(self):
            value = getattr(self, field.name)
            infinite = field.name == "high_bytes"
            if np.any(np.isnan(value)) or (not infinite and not np.all(np.isfinite(value))):
                raise ValueError(f"Expected {field.name} to be finite.")
            if np.any(np.less(value, 0)):
                raise ValueError(f"Expected {field.name} >= 0.")
        if counts < 1 or np.any(self.rank_counts < 2) or np.any(np.diff(self.rank_counts) <= 0):
            raise ValueError("Expected rank_counts to increase, from 2 at least.")
        if np.any(np.abs(self.weights.sum(axis=1) - 1) > 1e-6):
            raise ValueError("Expected the weights of each ramp to sum to 1.")
        if np.any(self.high_bytes <= self.low_bytes):
            raise ValueError("Expected high_bytes > low_bytes.")
        if not np.all(np.isin(self.log_ranks, (0.0, 1.0))):
            raise ValueError("Expected log_ranks to be 0 or 1.")
        if np.any(np.diff(self.bin_seconds) <= 0):
            raise ValueError("Expected bin_seconds to increase.")
        if np.any(self.lower > 1) or np.any(self.upper < 1):
            raise ValueError("Expected lower <= 1 <= upper.")
        freeze(self)

    def rank_seconds(self, held_bytes: Floats, start_seconds: Floats | None = None) -> Floats:
        """Seconds of every rank from its own start, shape (..., num_ranks), >= 0.

        ``held_bytes`` has that shape too: what each rank sends of the tables that it holds (forward) or receives for
        them (backward), its own part included. Nothing is run, and nothing taken, among one rank or without bytes.
        """
        num_ranks = held_bytes.shape[-1]
        if num_ranks < 2:
            return np.zeros(held_bytes.shape)
        filled = ramp_bytes(scalars(held_bytes), self.weights, self.low_bytes, self.high_bytes)
        ramps = filled @ (self.seconds_per_byte * np.log2(num_ranks) ** self.log_ranks)
        seconds = self.start_seconds + self.peer_seconds * (num_ranks - 1) + ramps
        if start_seconds is not None:
            seconds = seconds + skew_terms(start_seconds) @ self.skew
        return np.where(held_bytes.sum(axis=-1, keepdims=True) > 0, np.maximum(seconds, 0.0), 0.0)

    def interval(self, seconds: Floats, num_ranks: int) -> tuple[Floats, Floats]:
        """Limits around predicted ``seconds`` (any shape).

        Between measured rank counts the factors are interpolated in log2(n); beyond them their distance from 1, as a
        logarithm, grows by the number of doublings. That growth is a rule, not a measurement.
        """
        bins = np.searchsorted(self.bin_seconds, seconds, side="right")
        lower, upper = self._at(self.lower, num_ranks)[bins], self._at(self.upper, num_ranks)[bins]
        return seconds * lower, seconds * upper

    def _at(self, factors: Floats, num_ranks: int) -> Floats:
        """Factors of one rank count, shape (num_bins,)."""
        measured, wanted = np.log2(self.rank_counts), np.log2(max(num_ranks, 2))
        logs = np.log(np.maximum(factors, 1e-6))
        near = np.array([np.interp(wanted, measured, column) for column in logs.T])
        doublings = max(measured[0] - wanted, wanted - measured[-1], 0.0)
        widened: Floats = np.exp(near * (1 + doublings))
        return widened


def ramp_bytes(counts: Floats, weights: Floats, low_bytes: Floats, high_bytes: Floats) -> Floats:
    """Filled bytes of ramps over byte counts (..., len(SCALARS)); shape (..., num_ramps)."""
    mixed = np.exp(np.log(np.maximum(counts, 1.0)) @ weights.T)
    filled: Floats = np.clip(mixed, low_bytes, high_bytes) - low_bytes
    return filled


def scalars(held_bytes: Floats) -> Floats:
    """The byte counts of :data:`SCALARS` for every rank; (..., num_ranks) to (..., num_ranks, 6)."""
    num_ranks = held_bytes.shape[-1]
    largest = -np.sort(-held_bytes, axis=-1)
    shared = (
        held_bytes.mean(axis=-1),
        largest[..., 0],
        largest[..., min(1, num_ranks - 1)],
        largest[..., : max(1, num_ranks // 2)].mean(axis=-1),
        np.sqrt(np.square(held_bytes).mean(axis=-1)),
    )
    return np.stack([held_bytes, *(np.broadcast_to(s[..., None], held_bytes.shape) for s in shared)], axis=-1)


def skew_terms(start_seconds: Floats) -> Floats:
    """What starts of the ranks add, per unit of ``skew``; (..., num_ranks) to (..., num_ranks, 3)."""
    late = start_seconds - start_seconds.min(axis=-1, keepdims=True)
    span = np.broadcast_to(late.max(axis=-1, keepdims=True), late.shape)
    ahead = np.broadcast_to(late.mean(axis=-1, keepdims=True), late.shape) - span
    return np.stack([span - late, span, ahead], axis=-1)
