"""How many ids one SparseCore asks another for in a step: bounds that hold at a stated probability.

The library allocates, for every pair of SparseCores, room for ``max_ids_per_partition`` ids and for
``max_unique_ids_per_partition`` different ones; ids beyond are dropped. Both are bounded here from what is known of the
accesses of the tables of a stack.

    Data        n_t: expected lookups of table t by one SparseCore in a step; p_ti: probability that one is of row i
                S: SparseCores, each of which asks and is asked; d: probability of a drop in a step; h: of an unlucky
                assignment of rows, once for a run
    Hashed ids  row i is on a certain SparseCore with probability 1/S (indicator Z_ti).
                Expected ids: L = sum n_t p_ti Z_ti, so P(L >= l) <= exp(-a l) prod (1 + (exp(a n_t p_ti) - 1) / S);
                l is such that some SparseCore exceeds it with probability h, over its S.
                Ids, given L <= l: P(X >= x) <= exp(l (e^a - 1) - a x), over all S^2 pairs; or, with no such l,
                P(X >= x) <= exp(-a x) prod (1 + (exp((e^a - 1) n_t p_ti) - 1) / S): better where no row is hot.
                Unique ids: a row is among them if it is there and looked up, q_ti = 1 - (1 - p_ti)^n_t, so that
                P(U >= u) <= exp(-a u) prod (1 + (e^a - 1) q_ti / S).
    Sorted ids  row i is the i-th hottest, on SparseCore (i + rotation of t) mod S: L is known, and so are the q_ti
                there; the rest is the same, summed over SparseCores.

Each a > 0 gives a bound, and the smallest is taken; of hashed and sorted ids, the larger. What is assumed: lookups are
independent of each other, with the frequencies that the spec states; the number of ids of a sample is always the same,
or Poisson. Then lookups of rows are negatively associated, and so are rows that are dealt out at random, so that the
products above bound the moments. The library counts an id that a sample has twice once; here it counts twice.

References
----------
Joag-Dev, Proschan: Negative association of random variables, Annals of Statistics 11, 1983.
Dubhashi, Ranjan: Balls and bins: a study in negative dependence, Random Structures and Algorithms 13, 1998.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log

import numpy as np

from cost_models.arrays import Floats
from planner.access.distinct_rows import seen
from planner.options.runtimes.sparsecore.row_rates import RowRateBins

_SLOPES = np.geomspace(1e-5, 40.0, 120)  # a, of counts: 13% apart, within 1% of the best bound
_STEEP = 60  # of slopes where all SparseCores are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """Lookups of one table by one SparseCore in a step."""

    rows: RowRateBins
    expected: float
    rotation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Room for the ids of a partition."""

    max_ids: int
    max_unique_ids: int


def limits_of(
    tables: Sequence[Lookups], num_cores: int, *, drop_probability: float, placement_probability: float
) -> Limits:
    """Return limits of a stack that a step exceeds with at most ``drop_probability``, either of them in any partition.

    Once for a run, with ``placement_probability``, hashing may put hot rows together so that they do not hold.
    """
    drops = log(2 * num_cores / drop_probability)  # two limits, for each SparseCore that asks
    load = _hashed_load(tables, num_cores, placement_probability)
    by_core = _sorted_loads(tables, num_cores)
    growth = np.expm1(_SLOPES)
    hashed = np.minimum(load * growth, _hashed_moments(tables, num_cores, growth))
    most_ids = max(
        _least(hashed + drops + log(num_cores), _SLOPES),
        _least(_log_sum(np.multiply.outer(growth, by_core)) + drops, _SLOPES),
    )
    most_unique = max(
        _least(_hashed_seen(tables, num_cores) + drops + log(num_cores), _SLOPES),
        _least(_sorted_seen(tables, num_cores) + drops, _SLOPES[-_STEEP:]),
    )
    held = sum(ceil(one.rows.num_rows / num_cores) for one in tables)
    max_ids = _count(most_ids)
    return Limits(max_ids=max_ids, max_unique_ids=max(min(_count(most_unique), max_ids, held), 1))


def peak_load(tables: Sequence[Lookups], num_cores: int) -> float:
    """Return the expected ids of the fullest partition where ids are sorted by heat, which rotations decide."""
    return float(_sorted_loads(tables, num_cores).max())


def _count(bound: float) -> int:
    """Return the largest number below a bound that is reached too seldom; 1 at least, as there must be room."""
    return max(ceil(bound) - 1, 1)


def _least(exponents: Floats, slopes: Floats) -> float:
    """Return the smallest bound x with exponent - slope x <= 0."""
    return float(np.min(exponents / slopes))


def _hashed_load(tables: Sequence[Lookups], num_cores: int, probability: float) -> float:
    """Return expected ids that no SparseCore exceeds, but with a probability over where rows are."""
    total = sum(one.expected for one in tables)
    hottest = max(float(one.expected * one.rows.hottest[0]) for one in tables)
    slopes = np.geomspace(1e-3, 1e3, len(_SLOPES)) / max(hottest, total / num_cores, 1.0)
    union = log(num_cores / probability)
    return min(_least(_hashed_moments(tables, num_cores, slopes) + union, slopes), total)


def _hashed_moments(tables: Sequence[Lookups], num_cores: int, slopes: Floats) -> Floats:
    """Return log E exp(slope x expected ids of a SparseCore) over where rows are, at most."""
    exponents = np.zeros(len(slopes))
    here, elsewhere = -log(num_cores), np.log1p(-1 / num_cores)
    for one in tables:
        # Convex in the rate: a bin counts as rows of its hottest and of its coldest rate, with the mean of the bin.
        rows, width = one.rows, one.rows.hottest - one.rows.coldest
        part = np.divide(rows.mean - rows.coldest, width, out=np.ones_like(width), where=width > 0)
        for rate, count in ((rows.hottest, rows.count * part), (rows.coldest, rows.count * (1 - part))):
            some = count > 0
            each = np.logaddexp(elsewhere, np.multiply.outer(slopes, one.expected * rate[some]) + here)
            exponents += each @ count[some]
    return exponents


def _sorted_loads(tables: Sequence[Lookups], num_cores: int) -> Floats:
    """Return the expected ids of each SparseCore where ids are sorted by heat."""
    return _summed(tables, num_cores, lambda one: one.expected * one.rows.hottest)


def _hashed_seen(tables: Sequence[Lookups], num_cores: int) -> Floats:
    exponents = np.zeros(len(_SLOPES))
    growth = np.expm1(_SLOPES)
    for one in tables:
        # Concave in the rate: the mean of a bin stands for all its rows.
        shares = seen(one.rows.mean, one.expected) / num_cores
        exponents += np.log1p(np.multiply.outer(growth, shares)) @ one.rows.count
    return exponents


def _sorted_seen(tables: Sequence[Lookups], num_cores: int) -> Floats:
    def exponent(growth: float) -> Floats:
        return _summed(tables, num_cores, lambda one: np.log1p(growth * seen(one.rows.hottest, one.expected)))

    return np.array([float(_log_sum(exponent(growth))) for growth in np.expm1(_SLOPES[-_STEEP:]).tolist()])


def _summed(tables: Sequence[Lookups], num_cores: int, value: Callable[[Lookups], Floats]) -> Floats:
    """Return the sum of a value of rows over the rows of each SparseCore, where ids are sorted by heat."""
    result = np.zeros(num_cores)
    for one in tables:
        result += np.roll(one.rows.by_remainder(value(one), num_cores), one.rotation)
    return result


def _log_sum(exponents: Floats) -> Floats:
    """Return the logarithm of the sum of exponentials over the last axis."""
    most = exponents.max(axis=-1)
    result: Floats = most + np.log(np.exp(exponents - most[..., None]).sum(axis=-1))
    return result
