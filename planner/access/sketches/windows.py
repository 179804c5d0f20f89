"""Distinct rows of windows of lookups that follow each other: how soon rows come again.

Windows are a batch's 4^8th to 4th part, and runs of 4 to 4^6 batches of one trace; every
batch, and every trace, is cut from its beginning, and what is left at its end is in no window
of that size. Of each size the windows, their lookups and their distinct rows are summed, so
that the sums of traces add up.
"""

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Ints
from planner.access.sketches.cardinality import empty_registers, estimate, observe
from planner.access.sketches.hashing import Hashes

NUM_PARTS, NUM_RUNS = 8, 6
NUM_WINDOW_SIZES = NUM_PARTS + NUM_RUNS  # the smallest first
RUN_INDEX_BITS = 13
_STEP_BITS = 2  # each size is four times the one before
_STEP = 2**_STEP_BITS
_LEAST_PART = 4  # lookups


def distinct_in_parts(order: Ints, is_first: NDArray[np.bool_]) -> Ints:
    """Return windows, lookups and distinct rows of the parts of one batch, shape (NUM_PARTS, 3).

    Parameters
    ----------
    order
        Places of the batch's lookups, sorted by row and those of a row by time.
    is_first
        In that order, whether a lookup is the first of its row in the batch.
    """
    num = len(order)
    before = np.empty(num, dtype=np.int64)  # place of the lookup of the same row before, -1 for none
    before[order] = np.where(is_first, -1, np.concatenate([[-1], order[:-1]]))
    sums = np.zeros((NUM_PARTS, 3), dtype=np.int64)
    for size in range(NUM_PARTS):
        width = num >> _STEP_BITS * (NUM_PARTS - size)
        if width >= _LEAST_PART:
            windows = num // width
            starts = np.arange(windows, dtype=np.int64)[:, None] * width
            rows = np.count_nonzero(before[: windows * width].reshape(windows, width) < starts)
            sums[size] = windows, windows * width, rows
    return sums


class Runs:
    """Runs of batches of one trace, estimated by registers."""

    def __init__(self) -> None:
        self.sums = np.zeros((NUM_RUNS, 3), dtype=np.int64)
        self._registers = [empty_registers(RUN_INDEX_BITS) for _ in range(NUM_RUNS)]
        self._parts, self._lookups = [0] * NUM_RUNS, [0] * NUM_RUNS

    def add(self, hashes: Hashes, num_lookups: int) -> None:
        """Take in a batch, by the hashes of its rows."""
        observe(self._registers[0], hashes)
        for size in range(NUM_RUNS):
            self._parts[size] += 1
            self._lookups[size] += num_lookups
            if self._parts[size] < _STEP:
                return
            num_lookups, registers = self._lookups[size], self._registers[size]
            self.sums[size] += 1, num_lookups, min(round(estimate(registers)), num_lookups)
            if size + 1 < NUM_RUNS:
                np.maximum(self._registers[size + 1], registers, out=self._registers[size + 1])
            registers[:] = 0
            self._parts[size] = self._lookups[size] = 0

    def end_trace(self) -> None:
        """Begin with another trace: no run goes on into it."""
        for size in range(NUM_RUNS):
            self._registers[size][:] = 0
            self._parts[size] = self._lookups[size] = 0
