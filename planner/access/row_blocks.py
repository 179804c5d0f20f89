"""Row blocks: which shares of a table's lookups, and of its distinct rows, go to each block of its rows.

Where ids are hashed, or the row order is unknown, every block has an equal share. Otherwise a table
has a curve by row number: one that was given or measured, or, of rows that are numbered by heat, the curve of its
hottest rows (:mod:`planner.access.hot_rows`). Blocks are ranges of ``ceil(rows / n)`` rows, the last one shorter.

A search puts one price on all blocks of a piece, that of the heaviest: the largest share of the lookups that some block
has, the largest share of the distinct rows, and the most rows that the cache of some block misses.

The cache of a block holds the same share ``c`` of its rows as all blocks together. Of rows numbered by heat the first
block misses most, which follows from its own rows. Of a given curve the rows of a block are taken as a sample of
those that the table touches: a block with the share ``d`` of the distinct rows is like a table with ``d`` of the rows,
and has ``c r`` of their slots for ``r`` of the rows, so that its misses are those of the table at ``c r / d``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.access.cache_misses import MissCurves, missed_by_classes
from planner.access.hot_rows import HotRowCurve, hot_row_curves
from planner.access.row_classes import RowClasses, row_classes
from planner.domain.problem.access import AccessStatistics, IdOrder, RowCdf
from planner.solver.segments import by_owner


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShares:
    """What each block of a table has, shape (blocks,)."""

    rows: Floats  # share of the rows
    lookups: Floats  # share of the lookups of a step
    distinct: Floats  # share of its distinct rows


@dataclass(frozen=True, kw_only=True)
class RowBlocks:
    """The blocks of all tables, found when they are first asked for; entries of the tuples are of tables."""

    ids: tuple[IdOrder | RowCdf, ...]
    accesses: tuple[AccessStatistics | None, ...]
    num_rows: tuple[int, ...]
    num_lookups: Floats  # (tables,) of one step
    misses: MissCurves

    @cached_property
    def curves(self) -> Mapping[int, HotRowCurve]:
        """Curves by row number of the tables with unequal blocks."""
        found = {table: _given(ids) for table, ids in enumerate(self.ids) if isinstance(ids, RowCdf)}
        curves = hot_row_curves(*self._of_ranked)
        return found | {table: curve for table, curve in zip(self._ranked, curves, strict=True) if curve is not None}

    @cached_property
    def _ranked(self) -> list[int]:
        """Tables of which the rows are numbered by heat."""
        return [table for table, ids in enumerate(self.ids) if ids == "frequency_sorted"]

    @property
    def _of_ranked(self) -> tuple[list[AccessStatistics | None], list[int], Floats]:
        ranked = self._ranked
        return [self.accesses[i] for i in ranked], [self.num_rows[i] for i in ranked], self.num_lookups[ranked]

    @cached_property
    def is_uneven(self) -> Bools:
        """Which tables have a curve, shape (tables,)."""
        uneven = np.zeros(len(self.ids), dtype=np.bool_)
        uneven[list(self.curves)] = True
        return uneven

    def shares(self, table: int, num_blocks: int) -> BlockShares:
        """Return what each of so many blocks of a table with a curve has."""
        edges, curve = _edges(self.num_rows[table], num_blocks), self.curves[table]
        lookups, distinct = (np.interp(edges, curve.rows, part) for part in (curve.lookups, curve.distinct))
        return BlockShares(rows=np.diff(edges), lookups=np.diff(lookups), distinct=np.diff(distinct))

    def lookups_of(self, table: int, first_row: Ints, end_row: Ints) -> Floats:
        """Return the shares of the lookups of a table with a curve that go to ranges of its rows."""
        return self._share_of(table, self.curves[table].lookups, first_row, end_row)

    def distinct_of(self, table: int, first_row: Ints, end_row: Ints) -> Floats:
        """Return the shares of the distinct rows of a table with a curve that lie in ranges of its rows."""
        return self._share_of(table, self.curves[table].distinct, first_row, end_row)

    def _share_of(self, table: int, part: Floats, first_row: Ints, end_row: Ints) -> Floats:
        rows, num_rows = self.curves[table].rows, self.num_rows[table]
        upto, before = (np.interp(row / num_rows, rows, part) for row in (end_row, first_row))
        share: Floats = upto - before
        return share

    def heaviest(self, table: Ints, num_blocks: Ints) -> tuple[Floats, Floats]:
        """Return how many times the heaviest block's lookups, and distinct rows, make up the whole table's.

        One entry per shard, of a table that is cut into ``num_blocks``: these themselves where blocks are equal.
        """
        lookups, distinct = num_blocks.astype(np.float64), num_blocks.astype(np.float64)
        for count in np.unique(num_blocks).tolist():
            some = num_blocks == count
            lookups[some], distinct[some] = self._parts(count)[:, table[some]]
        return lookups, distinct

    def _parts(self, num_blocks: int) -> Floats:
        """Return what :meth:`heaviest` does, of all tables cut into so many blocks; (2, tables)."""
        if num_blocks not in self._known_parts:
            parts = np.full((2, len(self.ids)), float(num_blocks))
            for table in np.flatnonzero(self.is_uneven).tolist() if num_blocks > 1 else ():
                shares = self.shares(table, num_blocks)
                parts[:, table] = 1.0 / shares.lookups.max(), 1.0 / shares.distinct.max()
            self._known_parts[num_blocks] = parts
        return self._known_parts[num_blocks]

    @cached_property
    def _known_parts(self) -> dict[int, Floats]:
        return {}

    def missed(self, table: Ints, num_blocks: Ints, cache_load_factor: Floats) -> Floats:
        """Return the most rows that the cache of a block misses, as a share of its most distinct rows.

        One entry per shard; NaN where it has no cache or nothing is known of the table's rows.
        """
        missed = self.misses.at(table, cache_load_factor)
        cut = np.flatnonzero((num_blocks > 1) & self.is_uneven[table] & ~np.isnan(missed))
        for one, of_table in by_owner(table, cut):
            for count, shards in by_owner(num_blocks, of_table):
                missed[shards] = self._missed_of(one, count, cache_load_factor[shards])
        return missed

    def _missed_of(self, table: int, num_blocks: int, cache_load_factor: Floats) -> Floats:
        shares = self.shares(table, num_blocks)
        if table in self._ranked_classes:
            rows = shares.rows[0] * self.num_rows[table]
            return missed_by_classes(_first(self._ranked_classes[table], rows), rows, cache_load_factor)
        some = shares.distinct > 0
        room = np.minimum(np.multiply.outer(cache_load_factor, shares.rows[some] / shares.distinct[some]), 1.0)
        rows_missed = shares.distinct[some] * self.misses.missed_of(table, room)
        most: Floats = rows_missed.max(axis=1) / shares.distinct.max()
        return most

    @cached_property
    def _ranked_classes(self) -> dict[int, RowClasses]:
        classes = row_classes(*self._of_ranked)
        return {table: one for table, one in zip(self._ranked, classes, strict=True) if one is not None}


def _edges(num_rows: int, num_blocks: int) -> Floats:
    """Where the blocks of a table begin, and where the last ends, as shares of the rows; (blocks + 1,)."""
    block = -(-num_rows // num_blocks)
    edges: Floats = np.minimum(np.arange(num_blocks + 1) * block, num_rows) / num_rows
    return edges


def _given(cdf: RowCdf) -> HotRowCurve:
    lookups = np.array([(0.0, 0.0), *cdf.lookups])
    distinct = lookups if cdf.distinct is None else np.array([(0.0, 0.0), *cdf.distinct])
    rows = np.union1d(lookups[:, 0], distinct[:, 0])
    return HotRowCurve(rows=rows, lookups=np.interp(rows, *lookups.T), distinct=np.interp(rows, *distinct.T))


def _first(classes: RowClasses, num_rows: float) -> RowClasses:
    """Return the classes of the hottest rows."""
    order = np.argsort(-classes.lookups, kind="stable")
    size = classes.size[order]
    inside = np.clip(num_rows - (np.cumsum(size) - size), 0.0, size)
    return RowClasses(size=inside, lookups=classes.lookups[order], chance=classes.chance[order])
