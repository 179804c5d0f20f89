r"""Miss curves: which share of the distinct rows of a step a cache of some of a table's rows does not hold.

A cache of embedding rows is filled step by step: each step touches a row or not, however often it looks it up. With
:math:`p_i` the probability of row i, ``n`` lookups per step and :math:`q_i = 1 - (1 - p_i)^n` the chance that a step
touches it, a row that an LRU cache keeps for ``t`` steps is missed where none of the last ``t`` touched it [1]:

.. math:: C = \sum_i 1 - (1 - q_i)^t, \qquad M = \sum_i q_i (1 - q_i)^t

are the rows that the cache holds and the rows that a step misses. The curve through all ``t`` is convex.

A measured miss-ratio curve counts misses of lookups, which are at most the distinct rows of a step; what is known
otherwise comes as classes of equally likely rows (:mod:`planner.access.row_classes`).

References
----------
.. [1] H. Che, Y. Tung, Z. Wang, IEEE JSAC 20 (2002), here with steps for time; C. Fricker, P. Robert and J. Roberts,
   "A versatile and accurate approximation for LRU cache performance" (2012), show when it is exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.access.row_classes import RowClasses, row_classes
from planner.domain.problem.access import AccessStatistics, MissRatioCurve
from planner.solver.segments import by_owner

_STEPS = np.concatenate([[0.0], np.geomspace(1e-4, 1e9, 63)])
_BATCH = 256  # tables whose classes are in memory at once
_AT_ONCE = 8  # of which curves are made together: what a curve is made of stays in the processor's cache


@dataclass(frozen=True, kw_only=True)
class MissCurves:
    """The curves of all tables, made when one is first asked for: few problems have caches.

    ``num_lookups`` and ``distinct_rows`` are those of one step, shape (tables,); distinct rows are NaN where nothing
    is known of them.
    """

    accesses: tuple[AccessStatistics | None, ...]
    num_rows: tuple[int, ...]
    num_lookups: Floats
    distinct_rows: Floats

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """Held share of rows and missed share of distinct rows, each (tables, points)."""
        return _all_curves(self.accesses, self.num_rows, self.num_lookups)

    def missed_of(self, table: int, cache_load_factor: Floats) -> Floats:
        """Return the missed share of one table for some sizes of its cache; NaN where nothing is known."""
        access, num_lookups = self.accesses[table], float(self.num_lookups[table])
        if isinstance(access, MissRatioCurve) and num_lookups > 0:
            return self._measured(access, table, cache_load_factor)
        held, missed = self._points
        found: Floats = np.interp(cache_load_factor, held[table], missed[table])
        return found

    def _measured(self, access: MissRatioCurve, table: int, cache_load_factor: Floats) -> Floats:
        """Interpolate between all measured points; misses of lookups become misses of distinct rows, at most all."""
        num_lookups, distinct_rows = float(self.num_lookups[table]), float(self.distinct_rows[table])
        most = min(num_lookups, self.num_rows[table]) if np.isnan(distinct_rows) else distinct_rows
        held, missed = zip(*_ends(access), strict=True)
        ratio = np.interp(cache_load_factor, held, missed)
        found: Floats = np.minimum(ratio * num_lookups / max(most, 1e-300), 1.0)
        return found

    def at(self, table: Ints, cache_load_factor: Floats) -> Floats:
        """Return the missed share of each shard; NaN where it has no cache or nothing is known."""
        missed = np.full(cache_load_factor.shape, np.nan)
        for one, shards in by_owner(table, np.flatnonzero(~np.isnan(cache_load_factor))):
            missed[shards] = self.missed_of(one, cache_load_factor[shards])
        return missed


def _all_curves(
    accesses: Sequence[AccessStatistics | None], num_rows: Sequence[int], num_lookups: Floats
) -> tuple[Floats, Floats]:
    count = len(accesses)
    held = np.tile(np.linspace(0.0, 1.0, len(_STEPS) + 1), (count, 1))
    missed = np.full(held.shape, np.nan)
    known = [i for i in range(count) if accesses[i] is not None and num_lookups[i] > 0]
    for start in range(0, len(known), _BATCH):
        some = known[start : start + _BATCH]
        classes = row_classes([accesses[i] for i in some], [num_rows[i] for i in some], num_lookups[some])
        found_classes = {i: found for i, found in zip(some, classes, strict=True) if found is not None}
        if found_classes:
            rows = np.array([num_rows[i] for i in found_classes], dtype=np.float64)
            chances, sizes = (
                _padded([getattr(one, name) for one in found_classes.values()]) for name in ("chance", "size")
            )
            tables = np.array(list(found_classes))
            for first in range(0, len(tables), _AT_ONCE):
                few = slice(first, first + _AT_ONCE)
                held[tables[few]], missed[tables[few]] = _curves(chances[few], sizes[few], rows[few])
    return held, missed


def missed_by_classes(classes: RowClasses, num_rows: float, cache_load_factor: Floats) -> Floats:
    """Return the missed share of the distinct rows of some rows by themselves, for some sizes of their cache."""
    held, missed = _curves(classes.chance[None], classes.size[None], np.array([num_rows]))
    found: Floats = np.interp(cache_load_factor, held[0], missed[0])
    return found


def _padded(parts: Sequence[Floats]) -> Floats:
    padded = np.zeros((len(parts), max(len(part) for part in parts)))
    for row, part in zip(padded, parts, strict=True):
        row[: len(part)] = part
    return padded


def _curves(chance: Floats, size: Floats, num_rows: Floats) -> tuple[Floats, Floats]:
    """Held and missed shares after each of the steps, and with all rows held; (T, classes) in, (T, K) out."""
    with np.errstate(divide="ignore"):
        unseen = np.log1p(-np.minimum(chance, 1.0))[:, :, None]  # -inf for a row that every step touches
    with np.errstate(invalid="ignore"):
        survival = np.where(_STEPS > 0, np.exp(unseen * _STEPS), 1.0)  # not touched for so many steps
    touched = (size * chance).sum(axis=1, keepdims=True)
    held = np.einsum("tc,tck->tk", size, 1.0 - survival) / num_rows[:, None]
    missed = np.einsum("tc,tck->tk", size * chance, survival) / np.maximum(touched, 1e-300)
    missed = np.minimum(missed, 1.0)
    held = np.concatenate([np.minimum(held, 1.0), np.ones((len(held), 1))], axis=1)
    return held, np.concatenate([missed, np.zeros((len(missed), 1))], axis=1)


def _ends(access: MissRatioCurve) -> Iterator[tuple[float, float]]:
    """Yield the points with both ends: no cache misses every lookup, and a cache of all rows none."""
    if access.points[0][0] > 0:
        yield 0.0, 1.0
    yield from (point for point in access.points if point[0] < 1)
    yield 1.0, 0.0
