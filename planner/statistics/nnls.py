"""Least squares with no coefficient below zero.

References
----------
Lawson, Hanson: Solving least squares problems, 1974, chapter 23 (the algorithm NNLS).
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MAX_ROUNDS = 10  # times the coefficients
_TOLERANCE = 1e-10


def nnls(matrix: Floats, target: Floats) -> Floats:
    """Return the x >= 0, shape (n,), that makes |matrix x - target| least; ``matrix`` has shape (m, n)."""
    num = matrix.shape[1]
    x, free = np.zeros(num), np.zeros(num, dtype=np.bool_)
    for _ in range(_MAX_ROUNDS * num):
        pull = matrix.T @ (target - matrix @ x)
        pull[free] = -np.inf
        best = int(np.argmax(pull))
        if pull[best] <= _TOLERANCE * float(np.linalg.norm(target)):
            break
        free[best] = True
        x = _settled(matrix, target, x, free)
    return x


def _settled(matrix: Floats, target: Floats, x: Floats, free: NDArray[np.bool_]) -> Floats:
    """Solve for the free coefficients; those that want to be negative stop at zero and are free no longer."""
    while True:
        wanted = np.zeros(len(x))
        wanted[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
        negative = free & (wanted <= 0)
        if not negative.any():
            return wanted
        step = np.min(x[negative] / np.maximum(x[negative] - wanted[negative], np.finfo(np.float64).tiny))
        x = np.maximum(x + step * (wanted - x), 0.0)
        stopped = negative & (x <= _TOLERANCE * x.max(initial=0.0))
        if not stopped.any():
            stopped = negative
        x[stopped] = 0.0
        free &= ~stopped
        if not free.any():
            return np.zeros(len(x))
