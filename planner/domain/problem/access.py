"""Access statistics of a table: which of its rows a batch touches, and where these are in the range of rows."""

import itertools
import math
from dataclasses import dataclass
from typing import Literal

from planner.domain.expect import expect

#: Bins of a reuse histogram: rows looked up 1, 2, 3-4, 5-8, ... 16385-32768, more times in
#: one batch (as in Meta's ``dlrm_datasets``: (0,1], (1,2], (2,4], ..., (32768, inf)).
NUM_REUSE_BINS = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class ZipfAccess:
    """Row i of the table (hottest first) is looked up with probability ~ i ** -alpha."""

    alpha: float

    def __post_init__(self) -> None:
        expect(0 <= self.alpha <= 10, "zipf_alpha in [0, 10]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReuseHistogram:
    """Distinct rows by how often one batch looks them up."""

    distinct_rows: tuple[float, ...]  # (NUM_REUSE_BINS,)

    def __post_init__(self) -> None:
        expect(len(self.distinct_rows) == NUM_REUSE_BINS, f"{NUM_REUSE_BINS} bins")
        expect(all(0 <= count < math.inf for count in self.distinct_rows), "finite bins >= 0")
        expect(any(self.distinct_rows), "at least one bin > 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessCdf:
    """Share of lookups that go to the hottest share of the rows, piecewise linear."""

    points: tuple[tuple[float, float], ...]  # (row_fraction, access_fraction), to (1, 1)
    counted: tuple[tuple[float, float], ...] = ()  # (lookups, distinct rows) that were counted

    def __post_init__(self) -> None:
        """Check that the points are a concave CDF that ends at (1, 1), and that more lookups saw as many rows."""
        previous = (0.0, 0.0)
        slope = math.inf
        for row_fraction, access_fraction in self.points:
            expect(0 < row_fraction <= 1 and 0 <= access_fraction <= 1, "fractions in (0, 1]")
            is_beyond = row_fraction > previous[0] and access_fraction >= previous[1]
            expect(is_beyond, "points that increase in both fractions")
            steepness = (access_fraction - previous[1]) / (row_fraction - previous[0])
            is_flatter = steepness <= slope * (1 + 1e-9)
            expect(is_flatter, "hottest rows first: each segment at most as steep as the one before")
            previous, slope = (row_fraction, access_fraction), steepness
        expect(previous == (1.0, 1.0), "a last point (1, 1)")
        before = (0.0, 0.0)
        for lookups, rows in self.counted:
            expect(0 < rows <= lookups < math.inf, "counted distinct rows above 0, and at most their lookups")
            expect(lookups > before[0] and rows >= before[1], "increasing lookups, and distinct rows that never fall")
            before = (lookups, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class MissRatioCurve:
    """Share of lookups that an LRU cache of a share of the rows misses."""

    points: tuple[tuple[float, float], ...]  # (cache_fraction, miss_ratio), decreasing misses

    def __post_init__(self) -> None:
        """Check that a larger cache never misses more."""
        expect(len(self.points) > 0, "at least one point")
        previous = (-1.0, 1.0)
        for cache_fraction, miss_ratio in self.points:
            expect(0 <= cache_fraction <= 1 and 0 <= miss_ratio <= 1, "fractions in [0, 1]")
            is_beyond = cache_fraction > previous[0] and miss_ratio <= previous[1]
            expect(is_beyond, "increasing cache fractions and miss ratios that never increase")
            previous = (cache_fraction, miss_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCdf:
    """Shares of lookups, and of the distinct rows of a step, that go to the first share of the rows, by row number."""

    lookups: tuple[tuple[float, float], ...]  # (row_fraction, lookup_fraction), to (1, 1)
    distinct: tuple[tuple[float, float], ...] | None = None  # (row_fraction, distinct_fraction); None: as the lookups

    def __post_init__(self) -> None:
        """Check that both are CDFs that end at (1, 1)."""
        for points in (self.lookups, self.distinct):
            if points is None:
                continue
            expect(len(points) > 0, "at least one point")
            are_shares = all(0 < rows <= 1 and 0 <= share <= 1 for rows, share in points)
            expect(are_shares, "row fractions in (0, 1] and fractions in [0, 1]")
            are_beyond = all(low[0] < high[0] and low[1] <= high[1] for low, high in itertools.pairwise(points))
            expect(are_beyond, "increasing row fractions, and fractions that never fall")
            expect(points[-1] == (1.0, 1.0), "a last point (1, 1)")


AccessStatistics = ZipfAccess | ReuseHistogram | AccessCdf | MissRatioCurve
#: How rows are numbered: in no relation to how often they are looked up, the hottest first, or unknown.
IdOrder = Literal["hashed", "frequency_sorted", "unknown"]
