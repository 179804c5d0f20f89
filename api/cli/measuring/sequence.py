"""Balanced random points: any number of them, from the first on, covers every axis, and every two axes, evenly.

Halton's sequence: the coordinate of point i on an axis is i in the base of the axis (2, 3, 5, ...), mirrored at the
point. A random permutation of the digits at each place, chosen by the seed, keeps the balance, removes the
sequence's patterns in larger bases, and makes runs with other seeds measure other points.

References
----------
.. [1] J. H. Halton, "On the efficiency of certain quasi-random sequences of points in evaluating multi-dimensional
   integrals", Numerische Mathematik 2, 1960.
.. [2] A. B. Owen, "A randomized Halton algorithm in R", arXiv 1706.02808 (permutations place by place).
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

Value = TypeVar("Value")
_BASES = (2, 3, 5, 7, 11, 13)
_LARGEST_INDEX = 2**32


def point(index: int, num_axes: int, seed: int, stream: int) -> tuple[float, ...]:
    """Return point ``index`` of the sequence of a seed and a stream, in [0, 1) on each of at most six axes."""
    coordinates = []
    for axis in range(num_axes):
        base, rest, share = _BASES[axis], index, 0.0
        for place, permutation in enumerate(_permutations(axis, seed, stream)):
            rest, digit = divmod(rest, base)
            share += permutation[digit] * float(base) ** -(place + 1)
        coordinates.append(min(share, 1.0 - 2.0**-53))
    return tuple(coordinates)


@lru_cache(maxsize=1024)
def _permutations(axis: int, seed: int, stream: int) -> tuple[tuple[int, ...], ...]:
    """Permutations of the digits of an axis, place by place, leading zeros of small numbers among them."""
    generator = np.random.default_rng([seed, stream, axis])
    places = math.ceil(math.log(_LARGEST_INDEX, _BASES[axis]))
    return tuple(tuple(generator.permutation(_BASES[axis]).tolist()) for _ in range(places))


def shares(index: int, count: int, seed: int, stream: int) -> tuple[float, ...]:
    """Return random numbers in [0, 1), the same for equal arguments: for what has more axes than points can cover."""
    return tuple(np.random.default_rng([seed, stream, index]).random(count).tolist())


def log_between(share: float, least: float, most: float) -> float:
    """Return the number at a share of the way from ``least`` to ``most`` on a logarithmic scale."""
    return least * math.exp(share * math.log(max(most, least) / least))


def one_of(share: float, values: Sequence[Value]) -> Value:
    """Return the value at a share of the way through a list."""
    return values[int(share * len(values))]
