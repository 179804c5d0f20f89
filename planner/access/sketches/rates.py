"""Rows by how often they are looked up, and what follows: distinct rows, misses of a cache, access CDF.

With p_i the probability that a lookup is of row i, independent of the lookups before,

.. math:: D(n) = \\sum_i 1 - e^{-p_i n}, \\qquad M(C) = \\sum_i p_i e^{-p_i n} \\text{ where } D(n) = C

are the distinct rows of n lookups, and the share of lookups that an LRU cache of C rows
misses: it holds the rows of the last n lookups, as many as fit (Che's approximation). M is the
slope of D.

References
----------
Che, Tung, Wang: Hierarchical web caching systems, IEEE JSAC 20(7), 2002 (the approximation).
Fricker, Robert, Roberts: A versatile and accurate approximation for LRU cache performance, ITC 2012 (why it holds).
Xiang, Ding, Luo, Bao: HOTL, ASPLOS 2013 (the miss ratio as the slope of the footprint).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats
from planner.domain.expect import expect
from planner.domain.problem.access import AccessCdf

_MOST_STEPS = 100  # of Newton's method: a dozen in practice
_NEARLY = 1e-13  # relative
_DIGITS = 9  # of fractions in points: their slopes differ by far more


@dataclass(frozen=True, kw_only=True)
class RowRates:
    """Groups of rows that are looked up equally often, hottest first."""

    probability: Floats  # (num_groups,): that a lookup is of one certain row of the group; falling
    rows: Floats  # (num_groups,): rows of the group, not whole

    def __post_init__(self) -> None:
        is_some = len(self.probability) > 0 and self.probability.shape == self.rows.shape
        expect(is_some, "at least one group of rows")
        is_falling = np.all(self.rows > 0) and np.all(self.probability > 0) and np.all(np.diff(self.probability) < 0)
        expect(bool(is_falling), "rows > 0 and falling probabilities > 0")

    @property
    def shares(self) -> Floats:
        """Share of lookups that each group gets, shape (num_groups,)."""
        shares = self.probability * self.rows
        result: Floats = shares / shares.sum()
        return result

    @property
    def cdf(self) -> tuple[Floats, Floats]:
        """The hottest rows and the share of lookups that they get, both (num_groups + 1,) and from 0."""
        rows, shares = (np.concatenate([[0.0], np.cumsum(part)]) for part in (self.rows, self.shares))
        return rows, shares

    @property
    def num_rows(self) -> float:
        """Rows that are looked up at all."""
        return float(self.rows.sum())

    def distinct_rows(self, num_lookups: Floats) -> Floats:
        """Return the expected distinct rows of each number of lookups; the rows modified in that many."""
        seen = -np.expm1(-np.multiply.outer(num_lookups, self.probability))
        result: Floats = seen @ self.rows
        return result

    def miss_ratio(self, cache_rows: Floats) -> Floats:
        """Return the share of lookups that an LRU cache of each number of rows misses once it is full."""
        held = np.where(cache_rows >= self.num_rows, 0.5 * self.num_rows, cache_rows)  # any that has an answer
        misses = np.exp(-np.multiply.outer(self._lookups_held(held), self.probability)) @ self.shares
        result: Floats = np.where(cache_rows >= self.num_rows, 0.0, np.where(cache_rows < 1, 1.0, misses))
        return result

    def _lookups_held(self, distinct: Floats) -> Floats:
        """Return the lookups n with D(n) = C, for each number C of distinct rows below ``num_rows``.

        Newton's method on -log(R - D(n)) for R rows, which is concave as the logarithm of a sum of exponentials is
        convex: from where all lookups are of different rows, and D is too small, it never overshoots; a single rate is
        met in one step.
        """
        lookups: Floats = distinct / float(self.probability @ self.rows)
        for _ in range(_MOST_STEPS):
            exponents = -np.multiply.outer(lookups, self.probability)
            left = np.exp(exponents) * self.rows
            short = distinct + np.expm1(exponents) @ self.rows
            step = np.log1p(short / (self.num_rows - distinct)) * left.sum(axis=-1) / (left @ self.probability)
            lookups = lookups + step
            if np.all(np.abs(step) <= _NEARLY * lookups):
                break
        return lookups

    def access_cdf(self, num_embeddings: int) -> AccessCdf:
        """Return the access CDF of a table of ``num_embeddings`` rows, one segment for each group."""
        hottest, shares = self.cdf
        rows = hottest / num_embeddings
        if rows[-1] > 1:
            rows, shares = _cut(rows, shares)
        points: list[tuple[float, float]] = []
        slope = np.inf
        for x, y in zip(np.round(rows[1:], _DIGITS + 3).tolist(), shares[1:].tolist(), strict=True):
            before = points[-1] if points else (0.0, 0.0)
            if x <= before[0]:
                continue
            steepness = min((min(y, 1.0) - before[1]) / (x - before[0]), slope)
            points.append((x, min(before[1] + steepness * (x - before[0]), 1.0)))
            slope = steepness
        if points[-1][0] >= 1:
            points.pop()
        return AccessCdf(points=(*points, (1.0, 1.0)))


def _cut(rows: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return the points of a CDF up to all rows of the table; its coldest rows get what is left, evenly.

    Estimated rows may be a few more than there are. As many of the coldest groups as it takes
    become one, so that it is not hotter than those before.
    """
    steepness = np.diff(shares) / np.diff(rows)
    last = max(int(np.searchsorted(rows, 1.0)) - 1, 0)
    while last > 0 and (1.0 - shares[last]) > steepness[last - 1] * (1.0 - rows[last]):
        last -= 1
    return np.append(rows[: last + 1], 1.0), np.append(shares[: last + 1], 1.0)
