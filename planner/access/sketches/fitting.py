"""From distinct rows at some numbers of lookups to the rates of rows.

D(n) is a sum of saturating exponentials, one for each rate of rows (see :mod:`rates`): the
shares of lookups at rates on a fixed grid are fitted to it, none below zero, and as smooth
over the grid as the errors of the points allow.

    Data        (n_j, D_j, e_j): lookups, distinct rows, relative error
    Variables   a_k >= 0: share of lookups that goes to rows of probability p_k
    Objective   least sum over j of ((sum_k a_k (1 - exp(-p_k n_j)) / p_k - D_j) / (D_j e_j))^2
                + smoothing x sum over k of (a_(k-1) - 2 a_k + a_(k+1))^2
    where       sum_k a_k = 1
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from planner.access.sketches.nnls import nnls
from planner.access.sketches.rates import RowRates

_RATES_PER_OCTAVE = 1
_COLDEST_LOOKUPS = 0.25  # expected lookups of the coldest rows among all that were seen
#: Of shares, per rate of the grid: errors of 1% in the points then make errors of 1% in misses; ten
#: times more blurs tables whose rows are all alike, none makes spikes of smooth tables.
_SMOOTHING = 0.05
_SUM_WEIGHT = 1e3
_LEAST_SHARE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Distinct rows at some numbers of lookups, and how well they are known."""

    lookups: Floats  # (num_points,)
    distinct_rows: Floats  # (num_points,), > 0
    relative_error: Floats  # (num_points,), > 0


def fit_rates(footprint: Footprint, *, like: RowRates | None = None) -> RowRates:
    """Return the rates of rows that explain a footprint; found sooner where they are like some that are known."""
    lookups, distinct = footprint.lookups, footprint.distinct_rows
    octaves = np.log2(float(lookups.max()) / _COLDEST_LOOKUPS)
    probability = 2.0 ** -np.arange(0.0, octaves + 1 / _RATES_PER_OCTAVE, 1 / _RATES_PER_OCTAVE)
    num = len(probability)
    weight = 1.0 / (distinct * footprint.relative_error)
    seen = -np.expm1(-np.multiply.outer(lookups, probability)) / probability * weight[:, None]
    bends = _SMOOTHING * num * np.diff(np.eye(num), n=2, axis=0)
    matrix = np.concatenate([seen, np.full((1, num), _SUM_WEIGHT), bends])
    target = np.concatenate([distinct * weight, [_SUM_WEIGHT], np.zeros(len(bends))])
    share = nnls(matrix, target, start=None if like is None else np.isin(probability, like.probability))
    used = share > _LEAST_SHARE
    return RowRates(probability=probability[used], rows=share[used] / share.sum() / probability[used])
