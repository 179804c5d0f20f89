"""Takes in the lookups of a table, batch by batch, in memory that does not grow."""

import numpy as np
from numpy.typing import NDArray

from planner.access.sketches.cardinality import empty_registers, observe
from planner.access.sketches.hashing import batch_hash, leading_zeros, row_hashes
from planner.access.sketches.hot_rows import count_lookups, empty_cells, hottest
from planner.access.sketches.positions import PositionCounter
from planner.access.sketches.sketch import INDEX_BITS, MAX_ROW, NUM_LEVELS, THINNED_INDEX_BITS, TableSketch, Thinned
from planner.access.sketches.windows import NUM_PARTS, Runs, distinct_in_parts
from planner.domain.problem.access import NUM_REUSE_BINS

_BITS_OF_LEVEL = 2  # a quarter of the batches goes on to the next level


class Collector:
    """The lookups of one table so far; takes about 150 kB."""

    def __init__(self, table: str, *, hash_seed: int = 0) -> None:
        self._table, self._hash_seed = table, hash_seed
        self._samples = self._batches = self._lookups = 0
        self._largest_row = -1
        self._reuse_rows = np.zeros(NUM_REUSE_BINS, dtype=np.int64)
        self._reuse_lookups = np.zeros(NUM_REUSE_BINS, dtype=np.int64)
        self._registers = empty_registers(INDEX_BITS)
        self._thinned_batches, self._thinned_lookups = [0] * NUM_LEVELS, [0] * NUM_LEVELS
        self._thinned = [empty_registers(THINNED_INDEX_BITS) for _ in range(NUM_LEVELS)]
        self._hot_rows = self._hot_most = np.zeros(0, dtype=np.int64)
        self._cells = empty_cells()
        self._positions = PositionCounter()
        self._parts, self._runs = np.zeros((NUM_PARTS, 3), dtype=np.int64), Runs()

    def add(self, ids: NDArray[np.int64], *, num_samples: int | None = None) -> None:
        """Take in the lookups of one batch, shape (lookups,), in the order of time; ``None``: of one sample each.

        Raises
        ------
        ValueError
            With the place in ``ids`` of one that is no row number in [0, 2^40); nothing is taken in then.
        """
        wrong = np.flatnonzero((ids < 0) | (ids > MAX_ROW))
        if len(wrong):
            raise ValueError(f"id {ids[wrong[0]]} at place {wrong[0]} is no row number in [0, 2^40)")
        self._samples += len(ids) if num_samples is None else num_samples
        self._batches += 1
        if not len(ids):
            return
        order = np.argsort(ids, kind="stable")
        is_first = np.diff(ids[order], prepend=-1) != 0
        rows, counts = ids[order][is_first], np.diff(np.append(np.flatnonzero(is_first), len(ids)))
        hashes = row_hashes(rows, self._hash_seed)
        self._lookups += len(ids)
        self._largest_row = max(self._largest_row, int(rows[-1]))
        _, bits = np.frexp((counts - 1).astype(np.float64))  # bin k > 0 holds 2^(k-1) + 1 to 2^k lookups
        bins = np.minimum(bits, NUM_REUSE_BINS - 1)
        self._reuse_rows += np.bincount(bins, minlength=NUM_REUSE_BINS)
        self._reuse_lookups += np.bincount(bins, weights=counts, minlength=NUM_REUSE_BINS).astype(np.int64)
        observe(self._registers, hashes)
        self._parts += distinct_in_parts(order, is_first)
        self._runs.add(hashes, len(ids))
        self._thin(batch_hash(hashes, counts), len(ids), hashes)
        self._positions.add(rows, counts)
        count_lookups(self._cells, hashes, counts)
        self._keep_hot_rows(rows, counts, hashes)

    def _thin(self, batch: int, num_lookups: int, hashes: NDArray[np.uint64]) -> None:
        zeros = int(leading_zeros(np.array([batch], dtype=np.uint64))[0])
        for level in range(min(zeros // _BITS_OF_LEVEL, NUM_LEVELS)):
            self._thinned_batches[level] += 1
            self._thinned_lookups[level] += num_lookups
            observe(self._thinned[level], hashes)

    def _keep_hot_rows(self, rows: NDArray[np.int64], counts: NDArray[np.int64], hashes: NDArray[np.uint64]) -> None:
        hot_rows, hot_most = hottest(rows, counts, hashes)
        rows, counts = np.concatenate([self._hot_rows, hot_rows]), np.concatenate([self._hot_most, hot_most])
        self._hot_rows, self._hot_most = hottest(rows, counts, row_hashes(rows, self._hash_seed))

    def end_trace(self) -> None:
        """Say that the next batch is of another trace and does not follow the last one."""
        self._runs.end_trace()

    def sketch(self) -> TableSketch:
        """Return the sketch of all lookups so far."""
        return TableSketch(
            table=self._table,
            hash_seed=self._hash_seed,
            samples=self._samples,
            batches=self._batches,
            lookups=self._lookups,
            largest_row=self._largest_row if self._lookups else None,
            reuse_rows=self._reuse_rows.copy(),
            reuse_lookups=self._reuse_lookups.copy(),
            registers=self._registers.copy(),
            thinned=tuple(
                Thinned(batches=batches, lookups=lookups, registers=registers.copy())
                for batches, lookups, registers in zip(
                    self._thinned_batches, self._thinned_lookups, self._thinned, strict=True
                )
            ),
            hot_rows=self._hot_rows.copy(),
            hot_most=self._hot_most.copy(),
            cells=self._cells.copy(),
            windows=np.concatenate([self._parts, self._runs.sums]),
            positions=self._positions.positions(self._largest_row if self._lookups else None),
        )
