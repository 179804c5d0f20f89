"""Rows of a table in classes of equally likely ones: what a step touches of them.

- Zipf, access CDF: the hottest rows one by one, or the segments of the CDF.
- Reuse histogram of one batch: rows have Poisson rates; how many have which is fitted so that the histogram is the most
  likely one, which also says how many rows were not seen by chance.
- A miss-ratio curve describes a cache and says nothing of single rows.

References
----------
L. Simar, "Maximum likelihood estimation of a compound Poisson process", Annals of Statistics 4 (1976); found by
expectation maximisation, in the longer steps of R. Varadhan and C. Roland, "Simple and globally convergent methods for
accelerating the convergence of any EM algorithm", Scandinavian Journal of Statistics 35 (2008).
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.access.distinct_rows import seen
from planner.domain.problem.access import NUM_REUSE_BINS, AccessCdf, AccessStatistics, ReuseHistogram, ZipfAccess

_HEAD_ROWS = 32  # hottest rows that are classes of their own
_TAIL_CLASSES = 128
_FIT_ROUNDS = 67  # of three steps each
_LONGEST_STEP = 50.0  # times a plain one
_RATES = 2.0 ** np.arange(-12.0, 16.5, 0.5)  # lookups per batch
_CAP_ROUNDS = 100  # of bisection


@dataclass(frozen=True, slots=True, kw_only=True)
class RowClasses:
    """Classes of rows, each of shape (classes,)."""

    size: Floats  # rows
    lookups: Floats  # of one row in one step
    chance: Floats  # that a step looks a row up at all


def row_classes(
    accesses: Sequence[AccessStatistics | None], num_rows: Sequence[int], num_lookups: Floats
) -> list[RowClasses | None]:
    """Return the rows of tables of which each step makes ``num_lookups`` lookups; ``None`` where nothing is known.

    Parameters
    ----------
    accesses, num_rows, num_lookups
        Of each table; lookups have shape (tables,).
    """
    histograms = {index: access for index, access in enumerate(accesses) if isinstance(access, ReuseHistogram)}
    fitted = dict(zip(histograms, _rows_by_rate(list(histograms.values())), strict=True))
    alphas = {
        i: one.alpha for i, one in enumerate(accesses) if isinstance(one, ZipfAccess) and num_rows[i] > _HEAD_ROWS
    }
    rows_of = np.array([num_rows[i] for i in alphas], dtype=np.int64)
    zipf = dict(zip(alphas, zip(*_zipf_classes(np.array(list(alphas.values())), rows_of), strict=True), strict=True))
    found: list[RowClasses | None] = []
    for index, (access, rows, lookups) in enumerate(zip(accesses, num_rows, num_lookups.tolist(), strict=True)):
        if lookups <= 0:
            found.append(None)
        elif isinstance(access, ReuseHistogram):
            found.append(_histogram_classes(fitted[index], sum(access.distinct_rows), rows, lookups))
        elif index in zipf:
            found.append(_stationary(*zipf[index], lookups))
        else:
            found.append(_stationary_classes(access, rows, lookups))
    return found


def _stationary_classes(access: AccessStatistics | None, num_rows: int, num_lookups: float) -> RowClasses | None:
    """Rows of which each lookup has the same chance."""
    if isinstance(access, ZipfAccess):  # of few rows: each is a class
        weight = np.arange(1, num_rows + 1, dtype=np.float64) ** -access.alpha
        size = np.ones(num_rows)
        return _stationary(weight / np.sum(weight * size), size, num_lookups)
    if not isinstance(access, AccessCdf):
        return None
    points = np.array([(0.0, 0.0), *access.points])
    size = np.diff(points[:, 0]) * num_rows
    return _stationary(np.diff(points[:, 1]) / size, size, num_lookups)


def _stationary(probability: Floats, size: Floats, num_lookups: float) -> RowClasses:
    return RowClasses(size=size, lookups=num_lookups * probability, chance=seen(probability, num_lookups))


def _zipf_classes(alpha: Floats, num_rows: Ints) -> tuple[Floats, Floats]:
    """Probability and number of rows of tables, (tables, classes): the hottest one by one, then log-spaced classes.

    These stand at their mid row. Tables have more rows than ``_HEAD_ROWS``.
    """
    head = np.ones((len(alpha), _HEAD_ROWS))
    edges = np.geomspace(_HEAD_ROWS + 0.5, num_rows + 0.5, _TAIL_CLASSES + 1, axis=1)
    rows = np.concatenate([head * np.arange(1, _HEAD_ROWS + 1), np.sqrt(edges[:, :-1] * edges[:, 1:])], axis=1)
    size = np.concatenate([head, np.diff(edges, axis=1)], axis=1)
    weight = rows ** -alpha[:, None]
    return weight / np.sum(weight * size, axis=1, keepdims=True), size


def _rows_by_rate(histograms: Sequence[ReuseHistogram]) -> Floats:
    """Fit how many rows have which rate to histograms of one batch each, (histograms, rates)."""
    if not histograms:
        return np.zeros((0, len(_RATES)))
    seen = np.array([one.distinct_rows for one in histograms]).reshape(-1, NUM_REUSE_BINS)
    chances = _bin_chances()
    is_seen = chances.sum(axis=1)
    least = 1e-12 * seen.sum(axis=1, keepdims=True) / is_seen

    def likelier(size: Floats) -> Floats:
        expected = np.maximum(size @ chances, 1e-300)
        better: Floats = size * ((seen / expected) @ chances.T) / is_seen
        return better

    size = np.repeat(seen.sum(axis=1, keepdims=True) / len(_RATES), len(_RATES), axis=1)
    for _ in range(_FIT_ROUNDS):
        once = likelier(size)
        change = once - size
        turn = likelier(once) - once - change
        lengths = (np.linalg.norm(part * is_seen, axis=1, keepdims=True) for part in (change, turn))
        step = np.clip(next(lengths) / np.maximum(next(lengths), 1e-300), 1.0, _LONGEST_STEP)
        size = likelier(np.maximum(size + 2 * step * change + step**2 * turn, least))
    return size


def _histogram_classes(size: Floats, num_seen: float, num_rows: int, num_lookups: float) -> RowClasses:
    """Rows by rate as fitted to one batch, at the rates of a step of so many lookups."""
    size, rates = _within(size, max(num_rows, num_seen))
    scale = num_lookups / max(float(size @ rates), 1e-300)
    return RowClasses(size=size, lookups=rates * scale, chance=-np.expm1(-rates * scale))


def _within(size: Floats, num_rows: float) -> tuple[Floats, Floats]:
    """Return rows and rates of which the table has no more rows than it has; those that were seen stay as many.

    What a batch sees of rare rows hardly shows how rare they are: the rarest become as frequent as it takes.
    """
    if size.sum() <= num_rows:
        return size, _RATES
    seen = size * -np.expm1(-_RATES)
    low, high = np.log2(_RATES[0]), np.log2(_RATES[-1])
    for _ in range(_CAP_ROUNDS):
        middle = (low + high) / 2
        rows = seen / -np.expm1(-np.maximum(_RATES, 2.0**middle))
        low, high = (middle, high) if rows.sum() > num_rows else (low, middle)
    rates = np.maximum(_RATES, 2.0**high)
    return seen / -np.expm1(-rates), rates


@functools.cache
def _bin_chances() -> Floats:
    """Chance that a row of each rate falls into each bin of a histogram, (rates, NUM_REUSE_BINS)."""
    chances = np.zeros((len(_RATES), NUM_REUSE_BINS))
    for which, rate in enumerate(_RATES.tolist()):
        reach = int(rate + 12 * np.sqrt(rate) + 24)
        counts = np.arange(max(1, int(rate - 12 * np.sqrt(rate))), reach + 1)
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, reach + 1)))])  # log k!
        chance = np.exp(counts * np.log(rate) - rate - logs[counts])
        bins = np.minimum(np.ceil(np.log2(counts)), NUM_REUSE_BINS - 1).astype(np.int64)
        np.add.at(chances[which], bins, chance)
    chances = np.maximum(chances, 1e-300)
    chances.flags.writeable = False
    return chances
