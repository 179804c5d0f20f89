"""Distinct rows: how many different rows a number of lookups is expected to touch.

The expectation for independent lookups is

.. math:: D(n) = \\sum_i 1 - (1 - p_i)^n

with p_i the probability of row i and n the lookups. It dominates the time of the backward
pass, which reads and writes each distinct row and its optimizer state once.
"""

from collections.abc import Sequence

import numpy as np

from cost_models.arrays import Floats
from planner.domain.problem.access import AccessCdf, AccessStatistics, ReuseHistogram, ZipfAccess

# Hottest rows that are summed one by one, and log-spaced bins for the rest: with 512 of each the
# sum errs by less than 3e-5 against 4096 and 2048, over exponents 0-2 and up to 5e8 rows.
_EXACT_ROWS = 512
_BINS = 512
_BATCH = 256  # tables whose rows are in memory at once


def expected_distinct_rows(
    accesses: Sequence[AccessStatistics | None], num_rows: Sequence[int], num_lookups: Floats
) -> Floats:
    """Return the expected distinct rows among each number of lookups; NaN where nothing is known.

    Parameters
    ----------
    accesses
        What is known of each table. A miss-ratio curve describes a long trace, not one
        batch, so that it says nothing here.
    num_rows
        Rows of each table.
    num_lookups
        Lookups of one step, shape (tables, columns); so is the result.
    """
    rows = np.array(num_rows, dtype=np.float64)
    distinct = np.full(num_lookups.shape, np.nan)
    zipf = np.array([i for i, access in enumerate(accesses) if isinstance(access, ZipfAccess)], dtype=np.int64)
    alpha = np.array([access.alpha for access in accesses if isinstance(access, ZipfAccess)])
    for start in range(0, len(zipf), _BATCH):
        some = zipf[start : start + _BATCH]
        distinct[some] = _zipf(alpha[start : start + _BATCH], rows[some], num_lookups[some])
    for i, access in enumerate(accesses):
        for j, lookups in enumerate(num_lookups[i].tolist()):
            if isinstance(access, AccessCdf):
                distinct[i, j] = _cdf(access, num_rows[i], lookups)
            elif isinstance(access, ReuseHistogram) and lookups > 0:
                distinct[i, j] = _histogram(access, lookups)
    at_most: Floats = np.minimum(distinct, np.minimum(num_lookups, rows[:, None]))
    return np.where(num_lookups <= 0, 0.0, at_most)


def seen(probability: Floats, num_lookups: float) -> Floats:
    """Return 1 - (1 - p)^n, the chance that some lookup is of a row, without cancellation for tiny p."""
    with np.errstate(divide="ignore"):
        chance: Floats = -np.expm1(num_lookups * np.log1p(-np.minimum(probability, 1.0)))
    return chance if num_lookups > 0 else np.zeros_like(probability)


def _zipf(alpha: Floats, num_rows: Floats, num_lookups: Floats) -> Floats:
    """Zipf: the hottest rows one by one, the tail in log-spaced bins at their mid row.

    ``alpha`` and ``num_rows`` have shape (tables,), ``num_lookups`` and the result (tables, columns).
    """
    head = np.arange(1, _EXACT_ROWS + 1, dtype=np.float64)
    first, last = np.log(_EXACT_ROWS + 0.5), np.log(np.maximum(num_rows, _EXACT_ROWS) + 0.5)
    edges = np.exp(first + (last - first)[:, None] * np.linspace(0.0, 1.0, _BINS + 1))
    rows = np.concatenate(
        [np.broadcast_to(head, (len(alpha), _EXACT_ROWS)), np.sqrt(edges[:, :-1] * edges[:, 1:])], axis=1
    )
    counts = np.concatenate([(head <= num_rows[:, None]).astype(np.float64), np.diff(edges, axis=1)], axis=1)
    weight = rows ** -alpha[:, None]
    probability = np.minimum(weight / np.sum(weight * counts, axis=1, keepdims=True), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        unseen = np.log1p(-probability)  # -inf for a row that every lookup hits
        columns = [np.sum(counts * -np.expm1(lookups[:, None] * unseen), axis=1) for lookups in num_lookups.T]
    result: Floats = np.stack(columns, axis=1)
    return result


def _cdf(access: AccessCdf, num_rows: int, num_lookups: float) -> float:
    """Access CDF: what was counted where it was counted.

    Between two counts, the logarithm of the distinct rows is linear in that of the lookups. Beyond the first and the
    last, the curve of independent lookups goes on from there.
    """
    counted = access.counted
    if not counted or num_lookups <= 0:
        return _piecewise(access, num_rows, num_lookups)
    nearest = min(max(num_lookups, counted[0][0]), counted[-1][0])
    lookups, rows = np.log(np.array(counted)).T
    distinct = float(np.exp(np.interp(np.log(nearest), lookups, rows)))
    if nearest == num_lookups:
        return distinct
    return distinct * _piecewise(access, num_rows, num_lookups) / _piecewise(access, num_rows, nearest)


def _piecewise(access: AccessCdf, num_rows: int, num_lookups: float) -> float:
    """Access CDF: rows of one segment are equally likely."""
    points = np.array([(0.0, 0.0), *access.points])
    rows = np.diff(points[:, 0]) * num_rows
    share = np.diff(points[:, 1])
    return float(np.sum(rows * seen(share / np.maximum(rows, 1.0), num_lookups)))


def _histogram(access: ReuseHistogram, num_lookups: float) -> float:
    """Reuse histogram of one batch, rescaled to another number of lookups.

    Fewer lookups are a random part s of the measured ones: a row seen c times is still seen
    with probability 1 - (1 - s)^c. More lookups follow a power law through the measured
    point whose slope is the chance that the next lookup is of a new row, which is the share
    of rows seen once (I. J. Good, Biometrika 40, 1953).
    """
    rows = np.array(access.distinct_rows)
    upper = 2.0 ** np.arange(len(rows))
    count = np.where(upper <= 2, upper, upper * 0.75)  # 1, 2, 3 of (2,4], 6 of (4,8], ...
    part = num_lookups / float(np.sum(rows * count))
    if part <= 1:
        return float(np.sum(rows * (1 - (1 - part) ** count)))
    measured = float(np.sum(rows))
    return float(measured * part ** (float(rows[0]) / measured))
