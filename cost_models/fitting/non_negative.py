"""Least relative deviations with coefficients that are never negative.

Minimises sum |A x / y - 1| over x >= 0: the mean relative error itself, so a share of rows that a busy machine slowed
down does not pull the rest along. Solved by least squares whose weights are the last round's deviations, each round by
an active set on the normal equations.

References
----------
Holland and Welsch, "Robust regression using iteratively reweighted least-squares", 1977. Bro and
de Jong, "A fast non-negativity-constrained least squares algorithm", 1997.
"""

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats

#: Relative deviations below this are all the same: keeps weights finite.
SMALLEST_DEVIATION = 0.005
#: Added to the diagonal of the normal equations of columns scaled to 1: decides among columns that say the same.
RIDGE = 1e-6


def fit_non_negative(columns: Floats, seconds: Floats, *, rounds: int = 15) -> Floats:
    """Coefficients, shape (num_columns,), of ``columns`` (num_rows, num_columns) for ``seconds`` > 0 (num_rows,)."""
    relative = columns / seconds[:, None]
    scale = np.sqrt(np.mean(np.square(relative), axis=0))
    used = scale > 0
    relative = relative[:, used] / scale[used]
    solution = np.zeros(relative.shape[1])
    held = np.zeros(relative.shape[1], dtype=np.bool_)
    weights = np.ones(len(seconds))
    for _ in range(rounds):
        weighted = relative * weights[:, None]
        gram = weighted.T @ relative / len(seconds) + RIDGE * np.eye(relative.shape[1])
        solution, held = _active_set(gram, weighted.mean(axis=0), held)
        weights = 1 / np.maximum(np.abs(relative @ solution - 1), SMALLEST_DEVIATION)
    coefficients = np.zeros(columns.shape[1])
    coefficients[used] = solution / scale[used]
    return coefficients


def _active_set(gram: Floats, target: Floats, held: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_]]:
    """Minimise x G x / 2 - t x over x >= 0; ``held`` says which x may be > 0 at first, and at last.

    Fast non-negative least squares: solve freely for the held ones, step back to where the first of them would turn
    negative and let it go, take on the one whose gradient promises most, until none does.
    """
    held = held.copy()
    solution = np.zeros(len(target))
    tolerance = 1e-9 * float(np.max(np.abs(target)))
    for _ in range(3 * len(target) + 1):
        while np.any(held):
            free = np.zeros(len(target))
            free[held] = np.linalg.solve(gram[np.ix_(held, held)], target[held])
            negative = held & (free <= 0)
            if not np.any(negative):
                solution = free
                break
            step = np.min(solution[negative] / (solution[negative] - free[negative] + np.finfo(np.float64).tiny))
            solution = np.where(held, solution + step * (free - solution), 0.0)
            held &= (solution > 0) & ~(negative & (solution <= 1e-12 * np.max(solution, initial=0.0)))
        gradient = np.where(held, -np.inf, target - gram @ np.where(held, solution, 0.0))
        best = int(np.argmax(gradient))
        if gradient[best] <= tolerance:
            break
        held[best] = True
    return np.where(held, np.maximum(solution, 0.0), 0.0), held
