"""Hashes of rows and batches: the same everywhere, for merged sketches must agree on them."""

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS = 64
_FLOAT_BITS = 53  # whole numbers that a float64 holds exactly


def mixed(values: Hashes) -> Hashes:
    """Return 64 mixed bits of every value: the output function of SplitMix64.

    References
    ----------
    Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
    """
    state = values + _GOLDEN
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


def row_hashes(rows: NDArray[np.int64], seed: int) -> Hashes:
    """Return the hash of every row under a seed."""
    (salt,) = mixed(np.array([seed], dtype=np.uint64))
    return mixed(rows.astype(np.uint64) ^ salt)


def batch_hash(hashes: Hashes, counts: NDArray[np.int64]) -> int:
    """Return the hash of a batch, from the hashes of its distinct rows and how often it looks each up.

    It does not depend on the order of lookups.
    """
    parts = mixed(hashes ^ (counts.astype(np.uint64) * _GOLDEN))
    return int(mixed(np.array([parts.sum(dtype=np.uint64)], dtype=np.uint64))[0])


def leading_zeros(values: Hashes) -> NDArray[np.int64]:
    """Return how many leading bits of every value are 0; at most 53 of them count."""
    top = (values >> np.uint64(_BITS - _FLOAT_BITS)).astype(np.float64)
    _, bit_length = np.frexp(top)  # 0 has length 0
    return _FLOAT_BITS - bit_length.astype(np.int64)
