"""What is kept of all lookups of a table: a few kilobytes, whatever their number.

Every part either adds up or is a maximum, so that the sketches of workers that saw different
batches merge into the very sketch of one that saw them all, in any order.

Thinned batches show how distinct rows grow with lookups: of all batches, those of level 1 are a
quarter, chosen by a hash of what is in the batch; those of level 2 a quarter of these, and so on.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cost_models.arrays import Ints, freeze
from planner.access.sketches.cardinality import STANDARD_ERROR, Registers, estimate
from planner.access.sketches.hashing import row_hashes
from planner.access.sketches.hot_rows import DEPTH, NUM_HOT_ROWS, WIDTH, HotRow, estimated, hottest
from planner.access.sketches.positions import Positions, merged_positions
from planner.access.sketches.windows import NUM_WINDOW_SIZES
from planner.domain.expect import expect
from planner.domain.problem.access import NUM_REUSE_BINS

#: Registers of all rows: 2^15, a standard error of 0.6%; of each level of thinned batches: 2^13, 1.1%.
INDEX_BITS, THINNED_INDEX_BITS = 15, 13
NUM_LEVELS = 7
MAX_ROW = 2**40 - 1
MAX_LOOKUPS = 2**53 - 1
MAX_SEED = 2**32 - 1
_MAX_DISTINCT_ERROR = 8  # standard errors


class OtherSketch(ValueError):
    """Two sketches that do not belong together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thinned:
    """The batches of one level: how many, their lookups, and their distinct rows as registers."""

    batches: int
    lookups: int
    registers: Registers  # (2 ** THINNED_INDEX_BITS,)


@dataclass(frozen=True, kw_only=True)
class TableSketch:
    """All lookups of one table, in short. Raises ``ValueError`` where its parts contradict each other."""

    table: str
    hash_seed: int
    samples: int
    batches: int
    lookups: int
    largest_row: int | None  # ``None`` of a table that is never looked up
    reuse_rows: Ints  # (NUM_REUSE_BINS,): distinct rows of each batch by their lookups in it, summed over batches
    reuse_lookups: Ints  # (NUM_REUSE_BINS,): lookups of these rows
    registers: Registers  # (2 ** INDEX_BITS,)
    thinned: tuple[Thinned, ...]  # (NUM_LEVELS,)
    hot_rows: Ints  # (at most NUM_HOT_ROWS,)
    hot_most: Ints  # same shape: most lookups of one batch, falling
    cells: Ints  # (DEPTH, WIDTH), the count sketch
    #: (NUM_WINDOW_SIZES, 3): windows of lookups that follow each other, their lookups, their distinct rows
    windows: Ints
    positions: Positions | None = None  # ``None`` of sketches from before lookups were counted by position

    def __post_init__(self) -> None:
        freeze(self)
        expect(0 <= self.hash_seed <= MAX_SEED, f"hash_seed in [0, {MAX_SEED}]")
        are_counts = all(0 <= count <= MAX_LOOKUPS for count in (self.samples, self.lookups, self.batches))
        expect(are_counts, "samples, batches and lookups in [0, 2^53)")
        has_batches = self.samples > 0 and self.batches > 0
        expect(has_batches or self.lookups == 0, "samples and batches where there are lookups")
        self._check_shapes()
        self._check_reuse()
        self._check_distinct()
        self._check_thinned()
        self._check_hot_rows()
        self._check_windows()
        if self.positions is not None:
            self.positions.check(self.largest_row, self.lookups, int(self.reuse_rows.sum()))

    def _check_shapes(self) -> None:
        expect(self.reuse_rows.shape == self.reuse_lookups.shape == (NUM_REUSE_BINS,), f"{NUM_REUSE_BINS} bins")
        is_version = len(self.registers) == 2**INDEX_BITS and self.cells.shape == (DEPTH, WIDTH)
        expect(is_version, "registers and cells of this version")
        sizes = [len(level.registers) for level in self.thinned]
        expect(sizes == [2**THINNED_INDEX_BITS] * NUM_LEVELS, f"{NUM_LEVELS} levels of thinned batches")

    def _check_reuse(self) -> None:
        total = sum(self.reuse_lookups.tolist())
        if total != self.lookups:
            raise ValueError(f"reuse.lookups sum to {total}, and the table has {self.lookups} lookups")
        for k, (rows, lookups) in enumerate(zip(self.reuse_rows.tolist(), self.reuse_lookups.tolist(), strict=True)):
            least, most = (2 ** (k - 1) + 1 if k else 1), (2**k if k < NUM_REUSE_BINS - 1 else MAX_LOOKUPS)
            if not rows * least <= lookups <= rows * most:
                raise ValueError(f"bin {k} of reuse has {rows} rows with {lookups} lookups: each has {least} or more")

    def _check_distinct(self) -> None:
        expect((self.lookups == 0) == (self.largest_row is None), "a largest row exactly where there are lookups")
        expect(0 <= (self.largest_row or 0) <= MAX_ROW, "largest_row in [0, 2^40)")
        in_batches, error = sum(self.reuse_rows.tolist()), _MAX_DISTINCT_ERROR * self.distinct_error
        most = min(in_batches, (self.largest_row or 0) + 1)
        if self.distinct_rows > most * (1 + error) + _MAX_DISTINCT_ERROR:
            raise ValueError(f"the registers say {self.distinct_rows:.0f} distinct rows, and there are at most {most}")
        expect(self.lookups == 0 or bool(self.registers.any()), "registers of the rows that were looked up")

    def _check_thinned(self) -> None:
        before = Thinned(
            batches=self.batches, lookups=self.lookups, registers=np.full(2**THINNED_INDEX_BITS, 255, dtype=np.uint8)
        )
        for number, level in enumerate(self.thinned, start=1):
            freeze(level)
            if not (0 <= level.batches <= before.batches and 0 <= level.lookups <= before.lookups):
                raise ValueError(f"level {number} of thinned batches has more than the level before")
            if np.any(level.registers > before.registers) or level.registers.any() != (level.lookups > 0):
                raise ValueError(f"level {number} of thinned batches has rows that the level before has not")
            before = level

    def _check_hot_rows(self) -> None:
        rows, most = self.hot_rows, self.hot_most
        is_some = rows.shape == most.shape and len(rows) <= NUM_HOT_ROWS and (len(rows) > 0) == (self.lookups > 0)
        expect(is_some, f"1 to {NUM_HOT_ROWS} hot rows of a table that is looked up")
        of_table = np.all((rows >= 0) & (rows <= (self.largest_row or 0)) & (most >= 1))
        expect(bool(of_table), "hot rows of the table, with 1 lookup or more")
        expect(bool(np.all(most <= self.lookups)), "hot rows with at most all lookups")
        again = hottest(rows, most, row_hashes(rows, self.hash_seed))
        expect(all(map(np.array_equal, again, (rows, most))), "hot rows once each, the hottest first")
        largest = max(int(self.cells.max()), -int(self.cells.min()))  # first: 256 cells of 2^53 fit 64 bits
        sizes, sums = np.abs(self.cells).sum(axis=1), self.cells.sum(axis=1)
        if largest > self.lookups or np.any(sizes > self.lookups) or np.any((sums - self.lookups) % 2):
            raise ValueError("the cells of the count sketch do not sum to the lookups")

    def _check_windows(self) -> None:
        expect(self.windows.shape == (NUM_WINDOW_SIZES, 3), f"windows of {NUM_WINDOW_SIZES} sizes")
        for size, (windows, lookups, rows) in enumerate(self.windows.tolist()):
            if not (0 <= windows <= rows <= lookups <= self.lookups) or (windows == 0) != (lookups == 0):
                raise ValueError(f"windows of size {size} are {windows}, with {lookups} lookups of {rows} rows")

    @cached_property
    def distinct_rows(self) -> float:
        """Rows that were looked up at least once."""
        return estimate(self.registers)

    @property
    def distinct_error(self) -> float:
        """Relative standard error of ``distinct_rows``."""
        return STANDARD_ERROR / 2 ** (INDEX_BITS / 2)

    @property
    def lookups_per_batch(self) -> float:
        """Mean lookups of a batch."""
        return self.lookups / self.batches if self.batches else 0.0

    @property
    def lookups_per_sample(self) -> float:
        """Mean lookups of a sample: the pooling factors of the table's features together."""
        return self.lookups / self.samples if self.samples else 0.0

    @property
    def distinct_rows_per_batch(self) -> float:
        """Mean distinct rows of a batch; exact."""
        return float(self.reuse_rows.sum()) / self.batches if self.batches else 0.0

    @cached_property
    def heavy_hitters(self) -> tuple[HotRow, ...]:
        """The rows that are looked up most, with about how often."""
        return tuple(estimated(self.hot_rows, self.hot_most, self.cells, self.hash_seed, self.lookups))


#: What adds up when sketches are merged.
_COUNTS = ("samples", "batches", "lookups", "reuse_rows", "reuse_lookups", "cells", "windows")


def merge(first: TableSketch, second: TableSketch) -> TableSketch:
    """Return the sketch of the batches of both, which have none in common.

    Raises
    ------
    OtherSketch
        Where they are of different tables, or made with different hashes.
    """
    if first.table != second.table:
        raise OtherSketch(f"sketches of the tables {first.table} and {second.table}")
    if first.hash_seed != second.hash_seed:
        raise OtherSketch(
            f"table {first.table}: hash_seed is {first.hash_seed} in one and {second.hash_seed} in another"
        )
    rows = np.concatenate([first.hot_rows, second.hot_rows])
    most = np.concatenate([first.hot_most, second.hot_most])
    hot_rows, hot_most = hottest(rows, most, row_hashes(rows, first.hash_seed))
    largest = [row for row in (first.largest_row, second.largest_row) if row is not None]
    return replace(
        first,
        **{name: getattr(first, name) + getattr(second, name) for name in _COUNTS},
        largest_row=max(largest, default=None),
        registers=np.maximum(first.registers, second.registers),
        thinned=tuple(
            Thinned(
                batches=one.batches + other.batches,
                lookups=one.lookups + other.lookups,
                registers=np.maximum(one.registers, other.registers),
            )
            for one, other in zip(first.thinned, second.thinned, strict=True)
        ),
        hot_rows=hot_rows,
        hot_most=hot_most,
        positions=merged_positions(first.positions, first.largest_row, second.positions, second.largest_row),
    )
