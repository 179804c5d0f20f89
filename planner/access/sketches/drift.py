"""What changed in the lookups of a table from one sketch to another, and whether it is more than chance."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from planner.access.sketches.fitting import fit_rates
from planner.access.sketches.footprints import footprint_of
from planner.access.sketches.rates import RowRates
from planner.access.sketches.sketch import TableSketch

#: Sizes of caches, as shares of the rows that were looked up before.
CACHE_FRACTIONS = (0.01, 0.05, 0.2, 0.5)
# Changes beyond which a table has drifted: three times what two halves of one stream differ by.
MAX_DISTANCE = 0.08  # of access CDFs
MAX_RATIO = 1.1  # of lookups per sample and of distinct rows in as many lookups, up or down
MAX_MISS_CHANGE = 0.04
_CDF_ROWS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class MissChange:
    """What an LRU cache of one size misses."""

    cache_fraction: float
    before: float
    now: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDrift:
    """What changed in the lookups of one table; ``None`` where a sketch has no lookups."""

    table: str
    access_distance: float | None = None
    lookups_per_sample_ratio: float | None = None
    distinct_rows_ratio: float | None = None
    misses: tuple[MissChange, ...] = ()
    reasons: tuple[str, ...]  # what is beyond its threshold

    @property
    def weight(self) -> tuple[int, float]:
        """The larger the more has changed."""
        return len(self.reasons), self.access_distance or 0.0


def rates_of(sketch: TableSketch, *, like: RowRates | None = None) -> RowRates | None:
    """Return the rates of a sketch's rows, ``None`` of a table that is never looked up; ``like``: see ``fit_rates``."""
    footprint = footprint_of(sketch)
    return None if footprint is None else fit_rates(footprint, like=like)


def drift(before: TableSketch, now: TableSketch) -> TableDrift:
    """Return what changed in the lookups of a table."""
    rates_before = rates_of(before)
    rates_now = rates_of(now, like=rates_before)
    if rates_before is None or rates_now is None:
        looked_up = ("looked up", "never looked up")
        both_idle = rates_before is None and rates_now is None
        was, is_now = looked_up[rates_before is None], looked_up[rates_now is None]
        reasons = () if both_idle else (f"was {was} and is {is_now} now",)
        return TableDrift(table=before.table, reasons=reasons)
    cache_rows = np.array(CACHE_FRACTIONS) * before.distinct_rows
    ratios = (rates.miss_ratio(cache_rows).tolist() for rates in (rates_before, rates_now))
    misses = tuple(
        MissChange(cache_fraction=fraction, before=old, now=new)
        for fraction, old, new in zip(CACHE_FRACTIONS, *ratios, strict=True)
    )
    distance = access_distance(rates_before, rates_now)
    lookups = now.lookups_per_sample / before.lookups_per_sample
    batch = np.array(before.lookups_per_batch)
    distinct = float(rates_now.distinct_rows(batch) / rates_before.distinct_rows(batch))
    return TableDrift(
        table=before.table,
        access_distance=distance,
        lookups_per_sample_ratio=lookups,
        distinct_rows_ratio=distinct,
        misses=misses,
        reasons=tuple(_reasons(distance, lookups, distinct, misses)),
    )


def access_distance(first: RowRates, second: RowRates) -> float:
    """Return the largest difference of the shares of lookups that equally many of the hottest rows get."""
    rows = np.geomspace(1.0, max(first.num_rows, second.num_rows, 2.0), _CDF_ROWS)
    shares = [np.interp(rows, *rates.cdf) for rates in (first, second)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def _reasons(distance: float, lookups: float, distinct: float, misses: tuple[MissChange, ...]) -> Iterator[str]:
    if distance > MAX_DISTANCE:
        yield f"equally many of the hottest rows get {distance:.0%} more or fewer of the lookups"
    for ratio, what in ((lookups, "lookups per sample"), (distinct, "distinct rows in as many lookups")):
        if not 1 / MAX_RATIO <= ratio <= MAX_RATIO:
            yield f"{ratio:.2f} times as many {what}"
    worst = max(misses, key=lambda miss: abs(miss.now - miss.before))
    if abs(worst.now - worst.before) > MAX_MISS_CHANGE:
        yield (
            f"a cache of {worst.cache_fraction:.0%} of the rows that were looked up before misses {worst.now:.1%}, and"
            f" missed {worst.before:.1%}"
        )
