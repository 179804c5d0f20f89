"""Seeded draws that are the same on every platform and numpy release.

Distributions of ``numpy.random.Generator`` may change between releases (NEP 19) and go
through the platform's ``exp`` and ``log``; its uniform doubles are bits of the PCG64 stream.
So every draw here starts from those, and what is computed from them is rounded by the caller.
"""

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_LEAST = 2.0**-54  # a uniform draw may be 0, whose normal quantile is not finite


def uniforms(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return doubles of (0, 1), shape (count,)."""
    return np.maximum(rng.random(count), _LEAST)


def normals(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """Return standard normal draws, shape (count,), by the inverse of the distribution function."""
    standard = NormalDist()
    return np.array([standard.inv_cdf(share) for share in uniforms(rng, count)])


def choices(rng: np.random.Generator, count: int, shares: Sequence[float]) -> NDArray[np.int64]:
    """Return indices into ``shares`` with those probabilities, shape (count,)."""
    upper = np.cumsum(shares)
    chosen: NDArray[np.int64] = np.searchsorted(upper[:-1], uniforms(rng, count) * upper[-1], side="right")
    return chosen
