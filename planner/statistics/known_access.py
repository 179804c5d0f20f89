"""Rates of rows from whatever is known of a table's lookups: the way from each kind to every figure."""

import numpy as np
from numpy.typing import NDArray

from planner.domain.access import AccessCdf, AccessStatistics, MissRatioCurve, ReuseHistogram, ZipfAccess
from planner.statistics.fitting import Footprint, fit_rates
from planner.statistics.footprints import batch_footprint
from planner.statistics.rates import RowRates

Floats = NDArray[np.float64]

_HEAD_ROWS = 512  # hottest rows of a power law that stand for themselves; the others are binned
_TAIL_BINS = 512
_CURVE_CACHES = 200
_LEAST_MISS_RATIO = 1e-6
_CURVE_ERROR = 0.005


def rates_of_access(access: AccessStatistics, num_embeddings: int) -> RowRates:
    """Return the rates of the rows of a table of ``num_embeddings`` rows.

    A reuse histogram is of one batch: rows that it does not look up are left out, and so are those
    beyond the largest cache of a miss-ratio curve.
    """
    match access:
        case ZipfAccess(alpha=alpha):
            return _power_law(alpha, num_embeddings)
        case AccessCdf(points=points):
            return _piecewise(np.array([(0.0, 0.0), *points]), num_embeddings)
        case ReuseHistogram(distinct_rows=distinct_rows):
            rows = np.array(distinct_rows)
            upper = 2.0 ** np.arange(len(rows))
            return fit_rates(batch_footprint(rows, rows * np.where(upper <= 2, upper, upper * 0.75)))
        case MissRatioCurve(points=points):
            return fit_rates(_footprint_of_curve(np.array(points), num_embeddings))


def _grouped(weights: Floats, rows: Floats) -> RowRates:
    """Return the rates of groups of rows with weights, those of one weight together."""
    distinct, group = np.unique(-weights[weights > 0], return_inverse=True)
    counts = np.bincount(group, weights=rows[weights > 0]).astype(np.float64)
    return RowRates(probability=-distinct / float(-distinct @ counts), rows=counts)


def _power_law(alpha: float, num_embeddings: int) -> RowRates:
    head = np.arange(1, min(num_embeddings, _HEAD_ROWS) + 1, dtype=np.float64)
    edges = np.geomspace(_HEAD_ROWS + 0.5, max(num_embeddings, _HEAD_ROWS) + 0.5, _TAIL_BINS + 1)
    used = np.diff(edges) > 0
    middle = np.sqrt(edges[:-1] * edges[1:])[used]
    rows = np.concatenate([np.ones(len(head)), np.diff(edges)[used]])
    return _grouped(np.concatenate([head, middle]) ** -alpha, rows)


def _piecewise(points: Floats, num_embeddings: int) -> RowRates:
    rows = np.diff(points[:, 0]) * num_embeddings
    return _grouped(np.diff(points[:, 1]) / rows, rows)


def _footprint_of_curve(points: Floats, num_embeddings: int) -> Footprint:
    """Return the footprint whose slope the misses are.

    A cache that misses a share m of lookups gains a row in 1 / m of them: n(C) = integral of dC / m(C).
    """
    points = points[points[:, 1] > _LEAST_MISS_RATIO]
    if not len(points) or points[-1, 0] <= 0:
        points = np.append(points, [[1.0, _LEAST_MISS_RATIO]], axis=0)
    fractions = np.concatenate([[0.0], points[points[:, 0] > 0, 0]])
    misses = np.concatenate([[1.0], points[points[:, 0] > 0, 1]])
    largest = fractions[-1] * num_embeddings
    cache_rows = np.geomspace(min(1.0, largest / 2), largest, _CURVE_CACHES)
    missed = np.interp(cache_rows / num_embeddings, fractions, misses)
    steps = np.diff(cache_rows, prepend=0.0) * 0.5 * (1.0 / missed + 1.0 / np.concatenate([[1.0], missed[:-1]]))
    return Footprint(
        lookups=np.cumsum(steps),
        distinct_rows=cache_rows,
        relative_error=np.full(_CURVE_CACHES, _CURVE_ERROR),
    )
