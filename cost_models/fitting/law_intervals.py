"""Intervals of fitted laws of collectives: how far rows that a fit has not seen lie from it.

They come from folds of whole message sizes, and of whole groups, by ranges of size. What lies away from the measured
groups is tested by a fit without the largest group.

References
----------
Vovk, "Cross-conformal predictors", 2015.
"""

import math

import numpy as np

from cost_models.arrays import Bools, Floats
from cost_models.fitting.collective_rows import CollectiveRows
from cost_models.fitting.non_negative import fit_non_negative
from cost_models.hardware.laws.intervals import COVERAGE, Intervals, SizeInterval

RANGES = (0.0, 2.0**16, 2.0**20, 2.0**26)
NUM_FOLDS = 3
#: Fewer held-out rows than this in a range of sizes, and it has the interval of all sizes.
ROWS_PER_RANGE = 6
#: Intervals widen by this per doubling away from the measured ranks where one group alone was measured, and at least by
#: the second.
UNKNOWN_BEYOND, LEAST_BEYOND = 1.5, 1.1
#: Network cards of one kind differ by so much between two clusters: 46.8 and 48.6 GB/s of 400 Gb/s.
LEAST_SCATTER = 1.04
#: Intervals widen by this where too few rows were measured to leave some of them out.
UNTESTED = 1.25


def intervals_of(matrix: Floats, rows: CollectiveRows, *, tested: Bools, groups: Floats) -> Intervals:
    """Return the intervals of a fit, from fits that have not seen the rows that they are tested on."""
    ratios, sizes = _unseen_ratios(matrix, rows, tested, groups)
    slack = 1.0
    if not len(ratios):
        # Rows that fit exactly say nothing of others.
        ratios, sizes = (rows.seconds / (matrix @ fit_non_negative(matrix, rows.seconds)))[tested], rows.message_bytes
        sizes, slack = sizes[tested], UNTESTED
    whole = _limits(ratios, sizes)
    by_range = [
        _limits(ratios[here], sizes[here]) if np.sum(here) >= ROWS_PER_RANGE else whole
        for low, high in zip(RANGES, (*RANGES[1:], np.inf), strict=True)
        for here in [(sizes >= low) & (sizes < high)]
    ]
    found = [
        SizeInterval(low, 1 / limit, limit)
        for low, limit, before in zip(RANGES, by_range, (0.0, *by_range), strict=False)
        if limit != before
    ]
    intervals = Intervals(sizes=tuple(found), beyond=_beyond(matrix, rows, groups))
    return intervals.wider(slack)


def _unseen_ratios(matrix: Floats, rows: CollectiveRows, tested: Bools, groups: Floats) -> tuple[Floats, Floats]:
    """Return measured over predicted seconds, and bytes, of rows in folds of whole message sizes and of whole groups.

    The ends of a range are no hold-out: what lies between is asked for. A fold whose fit lacks a part that the rows
    show (a network card, where its only rows are unseen) says nothing of the law.
    """
    sizes, size = np.unique(rows.message_bytes, return_inverse=True)
    folds = [
        (size % NUM_FOLDS == fold) & (size > 0) & (size < len(sizes) - 1) for fold in range(min(NUM_FOLDS, len(sizes)))
    ]
    folds += [groups == group for group in np.unique(groups)[1:-1]]
    held = (matrix / rows.seconds[:, None])[:, fit_non_negative(matrix, rows.seconds) > 0]
    held /= np.linalg.norm(held, axis=0)
    full = np.linalg.matrix_rank(held)
    ratios: list[Floats] = [np.zeros(0)]
    bytes_of: list[Floats] = [np.zeros(0)]
    for unseen in folds:
        asked = unseen & tested
        if not np.any(asked) or np.linalg.matrix_rank(held[~unseen]) < full:
            continue
        here = _ratios(matrix, rows.seconds, unseen)[asked[unseen]]
        ratios.append(here)
        bytes_of.append(rows.message_bytes[asked])
    return np.concatenate(ratios), np.concatenate(bytes_of)


def _limits(ratios: Floats, sizes: Floats) -> float:
    """Return the factor, above or below 1, that holds a share COVERAGE of the ratios at a size that is still to come.

    Where a protocol changes between two sizes, a fit without the one errs upwards and without the other downwards, so
    that both sides have one factor. Rows of one size err alike: the number that the quantile allows for lies between
    those of sizes and of rows.
    """
    num = math.sqrt(len(np.unique(sizes)) * len(ratios))
    factor = np.exp(np.quantile(np.abs(np.log(ratios)), min(1.0, COVERAGE * (num + 1) / num)))
    return float(max(LEAST_SCATTER, factor))


def _beyond(matrix: Floats, rows: CollectiveRows, groups: Floats) -> float:
    """Return what a doubling away from the groups multiplies an interval by: the error of a fit without the largest."""
    measured = np.unique(groups)
    if len(measured) == 1:
        return UNKNOWN_BEYOND
    unseen = groups == measured[-1]
    ratios = np.abs(np.log(_ratios(matrix, rows.seconds, unseen)))
    doublings = math.log2(measured[-1] / measured[-2])
    return float(max(LEAST_BEYOND, np.exp(np.quantile(ratios, COVERAGE) / doublings)))


def _ratios(matrix: Floats, seconds: Floats, unseen: Bools) -> Floats:
    """Return measured over predicted seconds of rows that the fit has not seen."""
    predicted = matrix[unseen] @ fit_non_negative(matrix[~unseen], seconds[~unseen], rounds=10)
    ratios: Floats = seconds[unseen] / np.maximum(predicted, 0.1 * seconds.min())
    return ratios
