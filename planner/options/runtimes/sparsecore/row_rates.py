"""Rows of a table by how often they are looked up, in bins of nearly equal rates, for bounds that must hold."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.domain.problem.access import AccessCdf, AccessStatistics, ZipfAccess

_EXACT_ROWS = 512  # hottest rows that are bins of their own
_BIN_RATIO = 1.02  # of the first rows of neighbouring bins after them


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRateBins:
    """Bins of rows, hottest first: how many, and the largest, mean and smallest probability of a row of each."""

    first: Ints  # (num_bins,): rows that are hotter than those of the bin
    count: Ints
    hottest: Floats
    mean: Floats
    coldest: Floats

    @classmethod
    def of(cls, access: AccessStatistics, num_rows: int) -> Self | None:
        """Return the rows of a table; ``None`` where statistics do not say how likely single rows are."""
        if isinstance(access, ZipfAccess):
            return cls._zipf(access.alpha, num_rows)
        if isinstance(access, AccessCdf):
            return cls._piecewise(access, num_rows)
        return None

    @classmethod
    def _zipf(cls, alpha: float, num_rows: int) -> Self:
        first = np.arange(min(_EXACT_ROWS, num_rows), dtype=np.int64)
        if num_rows > _EXACT_ROWS:
            num = int(np.log(num_rows / _EXACT_ROWS) / np.log(_BIN_RATIO)) + 1
            edges = np.geomspace(_EXACT_ROWS, num_rows, num + 1).astype(np.int64)
            first = np.unique(np.concatenate([first, edges[:-1]]))
        count = np.diff(first, append=num_rows)
        hottest, coldest = _power(first + 1, -alpha), _power(first + count, -alpha)
        # A sum of a convex function is at most the integral from half a row before to half a row after.
        mass = np.where(count > 1, _integral(first + count, alpha) - _integral(first, alpha), hottest)
        total, mean = float(mass.sum()), np.clip(mass / count, coldest, hottest)
        return cls(first=first, count=count, hottest=hottest / total, mean=mean / total, coldest=coldest / total)

    @classmethod
    def _piecewise(cls, access: AccessCdf, num_rows: int) -> Self:
        """Rows of one segment are equally likely, as everywhere in this planner; segments of no whole row join."""
        first, count, rates, held, share = [], [], [], 0, 0.0
        for row_fraction, access_fraction in access.points:
            end = min(round(row_fraction * num_rows), num_rows)
            if end > held:
                first.append(held)
                count.append(end - held)
                rates.append((access_fraction - share) / (end - held))
                held, share = end, access_fraction
        rate = np.array(rates)
        return cls(first=np.array(first), count=np.array(count), hottest=rate, mean=rate, coldest=rate)

    @property
    def num_rows(self) -> int:
        """All rows."""
        return int(self.count.sum())

    def by_remainder(self, values: Floats, modulus: int) -> Floats:
        """Return the sum of a value of each row, given by bin, over the rows of each remainder."""
        whole, rest = np.divmod(self.count, modulus)
        start = self.first % modulus
        steps = np.zeros(2 * modulus + 1)
        np.add.at(steps, start, values)
        np.add.at(steps, start + rest, -values)
        one_more = np.cumsum(steps)[: 2 * modulus].reshape(2, modulus).sum(axis=0)
        result: Floats = one_more + float(whole @ values)
        return result


def _power(numbers: Ints, exponent: float) -> Floats:
    result: Floats = numbers.astype(np.float64) ** exponent
    return result


def _integral(rows: Ints, alpha: float) -> Floats:
    """Return the integral of x^-alpha up to half a row after the last of some rows, but for a constant."""
    x = rows.astype(np.float64) + 0.5
    result: Floats = np.asarray(np.log(x) if abs(alpha - 1) < 1e-9 else x ** (1 - alpha) / (1 - alpha), np.float64)
    return result
