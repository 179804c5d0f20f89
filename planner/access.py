"""Distinct rows: how many different rows a number of lookups is expected to touch.

The expectation for independent lookups is

.. math:: D(n) = \\sum_i 1 - (1 - p_i)^n

with p_i the probability of row i and n the lookups. It dominates the time of the backward
pass, which reads and writes each distinct row and its optimizer state once.
"""

import numpy as np
from numpy.typing import NDArray

from planner.domain.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess

Floats = NDArray[np.float64]

_EXACT_ROWS = 4096  # hottest rows that are summed one by one
_BINS = 2048  # log-spaced bins for the rest


def expected_distinct_rows(access: AccessStatistics | None, num_rows: int, num_lookups: float) -> float:
    """Return the expected distinct rows among ``num_lookups``; NaN where nothing is known.

    Parameters
    ----------
    access
        What is known of the table. A miss-ratio curve describes a long trace, not one
        batch, so that it says nothing here.
    num_rows
        Rows of the table.
    num_lookups
        Lookups of one step.
    """
    if num_lookups <= 0:
        return 0.0
    if access is None or isinstance(access, MissRatioCurve):
        return float("nan")
    if isinstance(access, ZipfAccess):
        distinct = _zipf(access.alpha, num_rows, num_lookups)
    elif isinstance(access, AccessCdf):
        distinct = _piecewise(access, num_rows, num_lookups)
    else:
        distinct = _histogram(access, num_lookups)
    return float(min(distinct, num_lookups, num_rows))


def _seen(probability: Floats, num_lookups: float) -> Floats:
    """1 - (1 - p)^n, without cancellation for tiny p."""
    with np.errstate(divide="ignore"):
        seen: Floats = -np.expm1(num_lookups * np.log1p(-np.minimum(probability, 1.0)))
    return seen


def _zipf(alpha: float, num_rows: int, num_lookups: float) -> float:
    """Zipf: the hottest rows one by one, the tail in log-spaced bins at their mid row."""
    head = np.arange(1, min(num_rows, _EXACT_ROWS) + 1, dtype=np.float64)
    rows, counts = head, np.ones_like(head)
    if num_rows > _EXACT_ROWS:
        edges = np.geomspace(_EXACT_ROWS + 0.5, num_rows + 0.5, _BINS + 1)
        rows = np.concatenate([head, np.sqrt(edges[:-1] * edges[1:])])
        counts = np.concatenate([counts, np.diff(edges)])
    weight = rows**-alpha
    probability = weight / np.sum(weight * counts)
    return float(np.sum(counts * _seen(probability, num_lookups)))


def _piecewise(access: AccessCdf, num_rows: int, num_lookups: float) -> float:
    """Access CDF: rows of one segment are equally likely."""
    points = np.array([(0.0, 0.0), *access.points])
    rows = np.diff(points[:, 0]) * num_rows
    share = np.diff(points[:, 1])
    return float(np.sum(rows * _seen(share / np.maximum(rows, 1.0), num_lookups)))


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
