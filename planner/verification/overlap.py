"""Whether shards of one table share a cell, decided from their rectangles alone."""

import bisect
import heapq

import numpy as np

from planner.domain.plan.shards import Shards


def overlapping_shards(shards: Shards) -> tuple[int, int] | None:
    """Return two shards that share a cell; disjoint rectangles return ``None``."""
    return None if _follow_each_other(shards) else _swept(shards)


def _follow_each_other(shards: Shards) -> bool:
    """Whether each shard begins right of all columns of the one before, or under it in the same columns.

    Then none overlap: columns never go back, and within the same columns rows never do. Regular
    cuts are listed in this order, so that only others have to be swept.
    """
    if len(shards) < 2:
        return True
    before, after = shards[:-1], shards[1:]
    is_right = after.column_offset >= before.column_end
    is_under = (after.column_offset == before.column_offset) & (after.num_columns == before.num_columns)
    is_under &= after.row_offset >= before.row_end
    is_regular = shards.num_rows.min(initial=0) >= 0 and shards.num_columns.min(initial=0) >= 0
    return bool(is_regular and np.all(is_right | is_under))


def _swept(shards: Shards) -> tuple[int, int] | None:
    """Sweep down the rows.

    Shards that the sweep line cuts are kept by column; as long as none overlap, a new one can
    only meet its neighbours, so that each costs a binary search.
    """
    row_offset, row_end = shards.row_offset.tolist(), shards.row_end.tolist()
    column_offset, column_end = shards.column_offset.tolist(), shards.column_end.tolist()
    ends: list[tuple[int, int]] = []  # (row where it ends, shard), a heap
    cut: list[tuple[int, int]] = []  # (first column, shard), sorted
    for i in sorted(range(len(shards)), key=lambda i: (row_offset[i], i)):
        while ends and ends[0][0] <= row_offset[i]:
            done = heapq.heappop(ends)[1]
            del cut[bisect.bisect_left(cut, (column_offset[done], done))]
        place = bisect.bisect_left(cut, (column_offset[i], i))
        if place > 0:
            left = cut[place - 1][1]
            if column_end[left] > column_offset[i]:
                return min(left, i), max(left, i)
        if place < len(cut) and column_end[i] > cut[place][0]:
            return min(cut[place][1], i), max(cut[place][1], i)
        cut.insert(place, (column_offset[i], i))
        heapq.heappush(ends, (row_end[i], i))
    return None
