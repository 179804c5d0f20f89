"""Least squares with no coefficient below zero.

All coefficients begin free, or a guess does; whatever is on the wrong side of zero changes sides, all at once: a free
one that is negative stops at zero, one at zero that would make the error smaller is freed. Few rounds do, where taking
them in one by one takes as many as there are coefficients. Where no round leaves fewer on the wrong side, one changes
at a time, which ends.

References
----------
Portugal, Judice, Vicente: A comparison of block pivoting and interior-point algorithms for linear least squares
problems with nonnegative variables, Mathematics of Computation 63, 1994 (the rule and its end).
"""

import numpy as np

from cost_models.arrays import Bools, Floats

_MAX_ROUNDS = 20  # times the coefficients
_PATIENCE = 3  # rounds that leave no fewer on the wrong side, before one changes at a time
_TOLERANCE = 1e-10
_RIDGE = 1e-14  # of columns of length 1: columns that depend on each other still have one answer


def nnls(matrix: Floats, target: Floats, *, start: Bools | None = None) -> Floats:
    """Return the x >= 0, shape (n,), that makes |matrix x - target| least; ``matrix`` has shape (m, n).

    ``start``, shape (n,), says which coefficients may be above zero; the answer is the same, and found sooner.
    Solves normal equations of columns of length 1: for columns whose condition is below about 1e6.
    """
    length = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    length[length == 0] = 1.0
    columns = matrix / length
    normal, wanted = columns.T @ columns + _RIDGE * np.eye(len(length)), columns.T @ target
    free = np.ones(len(length), dtype=np.bool_) if start is None else start.copy()
    small = _TOLERANCE * float(np.linalg.norm(target))
    fewest, patience = len(length) + 1, _PATIENCE
    x = np.zeros(len(length))
    for _ in range(_MAX_ROUNDS * len(length)):
        among = np.flatnonzero(free)
        x = np.zeros(len(length))
        x[among] = np.linalg.solve(normal[among[:, None], among], wanted[among])
        # of a free coefficient itself; of one at zero how much the error grows with it
        wrong = np.flatnonzero(np.where(free, x, normal @ x - wanted) < -small)
        if not len(wrong):
            break
        patience = _PATIENCE if len(wrong) < fewest else patience - 1
        fewest = min(fewest, len(wrong))
        if patience < 0:
            wrong = wrong[-1:]
        free[wrong] = ~free[wrong]
    found: Floats = np.maximum(x, 0.0) / length
    return found
