r"""A network over the set of shards of a rank whose answer never falls when a shard grows or joins.

With ``x_i`` the scaled features of shard i, ``w`` the contention of the host and ``p`` the seconds that physics gives
the rank, forward and backward,

.. math:: e_i = \exp(A(x_i, w)),\quad z = \sum_i e_i,\quad T = \exp(H(\ln z, w, \ln p))

``A`` and ``H`` have non-negative weights (but for free features) and two kinds of units, max(0, v) and min(0, v), so
that they bend either way and still never fall. Sums forget order, so any number of shards in any order is one rank.

References
----------
Zaheer et al., "Deep Sets" (arXiv 1703.06114); Runje and Shankaranarayana, "Constrained monotonic neural networks"
(arXiv 2205.11775): units of both curvatures under non-negative weights.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Singles, arrays_of, freeze

#: Parts of z below this are nothing: keeps logarithms finite for ranks without work.
NOTHING = 1e-9
#: Bounds of the exponent of a part: far outside of what is measured, and far from where float32 overflows or becomes
#: denormal, which processors add up slowly.
EXPONENTS = (-40.0, 40.0)
#: Shards at a time: what lies between two layers stays in the processor's cache, and is not fetched from the system.
BLOCK_SHARDS = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class MonotoneNetwork:
    """Weights of A (``shard_*``) and H (``rank_*``), float32; a hidden layer each and a straight way past it."""

    shard_hidden: Singles  # (num_features + 1, num_hidden)
    shard_hidden_bias: Singles
    shard_out: Singles  # (num_hidden, num_parts)
    shard_past: Singles  # (num_features + 1, num_parts)
    shard_bias: Singles
    rank_hidden: Singles  # (num_parts + 1 + num_targets, num_rank_hidden)
    rank_hidden_bias: Singles
    rank_out: Singles  # (num_rank_hidden, num_targets)
    rank_past: Singles  # (num_parts + 1 + num_targets, num_targets)
    rank_bias: Singles

    def __post_init__(self) -> None:
        """Check shapes, and make the arrays read-only."""
        inputs, hidden = self.shard_hidden.shape
        parts, rank_hidden = self.shard_out.shape[1], self.rank_hidden.shape[1]
        targets = self.rank_out.shape[1]
        shapes = {
            "shard_hidden": (inputs, hidden),
            "shard_hidden_bias": (hidden,),
            "shard_out": (hidden, parts),
            "shard_past": (inputs, parts),
            "shard_bias": (parts,),
            "rank_hidden": (parts + 1 + targets, rank_hidden),
            "rank_hidden_bias": (rank_hidden,),
            "rank_out": (rank_hidden, targets),
            "rank_past": (parts + 1 + targets, targets),
            "rank_bias": (targets,),
        }
        for name, weights in arrays_of(self):
            if weights.shape != shapes[name]:
                raise ValueError(f"Expected {name} of shape {shapes[name]}, not {weights.shape}.")
        freeze(self)

    @property
    def num_features(self) -> int:
        """Features of a shard."""
        return int(self.shard_hidden.shape[0]) - 1

    @property
    def num_parts(self) -> int:
        """Length of z."""
        return int(self.shard_out.shape[1])

    @property
    def num_targets(self) -> int:
        """Number of times that the network predicts for each rank."""
        return int(self.rank_out.shape[1])

    def check_signs(self, free: NDArray[np.bool_]) -> None:
        """Raise ``ValueError`` if a weight would let seconds fall; ``free`` (num_features,) may."""
        bound = np.append(~free, True)
        for name in ("shard_out", "rank_hidden", "rank_out", "rank_past"):
            if np.any(getattr(self, name) < 0):
                raise ValueError(f"Expected {name} >= 0.")
        for name in ("shard_hidden", "shard_past"):
            if np.any(getattr(self, name)[bound] < 0):
                raise ValueError(f"Expected {name} >= 0 but for features that are free.")

    def parts(self, features: Singles, contention: float) -> Singles:
        """Return e, shape (num_shards, num_parts), of scaled features (num_shards, num_features)."""
        # Contention is the same for all shards of a rank: it moves biases and saves a column.
        bias = self.shard_hidden_bias + np.float32(contention) * self.shard_hidden[-1]
        past_bias = self.shard_bias + np.float32(contention) * self.shard_past[-1]
        result = np.empty((len(features), self.num_parts), dtype=np.float32)
        for start in range(0, len(features), BLOCK_SHARDS):
            some = features[start : start + BLOCK_SHARDS]
            hidden = some @ self.shard_hidden[:-1]
            hidden += bias
            bend(hidden)
            parts = hidden @ self.shard_out
            parts += some @ self.shard_past[:-1]
            parts += past_bias
            np.clip(parts, *EXPONENTS, out=parts)
            np.exp(parts, out=result[start : start + BLOCK_SHARDS])
        return result

    def log_seconds(self, sums: Floats, contention: float, log_physics: Floats) -> Floats:
        """Return ln T, (num_ranks, num_targets), of z (num_ranks, num_parts) and ln p (num_ranks, num_targets)."""
        inputs = self._inputs(sums, contention, log_physics)
        hidden = inputs @ self.rank_hidden + self.rank_hidden_bias
        bend(hidden)
        result: Floats = hidden @ self.rank_out + inputs @ self.rank_past + self.rank_bias
        return result

    def slopes(self, sums: Floats, contention: float, log_physics: Floats) -> Floats:
        """Return the derivatives of ln T by z and by ln p, (num_ranks, num_parts + num_targets, num_targets)."""
        inputs = self._inputs(sums, contention, log_physics)
        hidden = inputs @ self.rank_hidden + self.rank_hidden_bias
        half = hidden.shape[1] // 2
        passes = np.concatenate([hidden[:, :half] > 0, hidden[:, half:] < 0], axis=1)
        by_input = np.einsum("ih,rh,ht->rit", self.rank_hidden, passes, self.rank_out) + self.rank_past
        by_parts = by_input[:, : self.num_parts] / (sums + NOTHING)[:, :, None]
        return np.concatenate([by_parts, by_input[:, self.num_parts + 1 :]], axis=1)

    def _inputs(self, sums: Floats, contention: float, log_physics: Floats) -> Floats:
        around = np.full((len(sums), 1), contention)
        return np.concatenate([np.log(sums + NOTHING), around, log_physics], axis=1)


def bend(values: NDArray[np.floating]) -> None:
    """Apply max(0, v) to the first half of the units and min(0, v) to the others, in place."""
    half = values.shape[1] // 2
    np.maximum(values[:, :half], 0, out=values[:, :half])
    np.minimum(values[:, half:], 0, out=values[:, half:])
