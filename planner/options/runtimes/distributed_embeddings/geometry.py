"""NVIDIA distributed-embeddings: which shards of a table it can hold, and which rows and columns every rank then has.

It knows three groups of tables. Tables of the first are copied to every rank. Those of the second lie whole on one
rank, or are cut into column slices on as many ranks; slices are dealt out to ranks in rising order, the leftmost first,
and of a width that the slices do not divide, the first ones have a column more. Those of the third are cut by rows over
all ranks, in rising order; where the ranks do not divide the rows, the first ones have a row more. A table is cut one
way only. Slices of a table that meet on a rank are merged there, but setting weights then takes the others for equally
wide: so a rank holds a table once.

Row blocks of a plan are as large as an even share rounded up, and the last is smaller. So a rank may hold other rows
than its block, and fewer than ``n`` rows more on ``n`` ranks, but never more than an even share rounded up.

References
----------
NVIDIA-Merlin/distributed-embeddings, ``distributed_embeddings/python/layers/dist_model_parallel.py``, where
``DistributedEmbedding`` takes ``gpu_embedding_size``: ``DistEmbeddingStrategy`` (groups, slices, ranks), and
``set_col_slice_weights`` and ``set_row_slice_weights`` (which columns and rows they are).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shards
from planner.options.runtimes.geometry import (
    Size,
    UnheldGeometry,
    check_copies,
    check_row_blocks,
    listed,
    ranks_once,
    sizes_in_order,
)


class Group(IntEnum):
    """What is done with a table, in the order in which the runtime lists its groups."""

    DATA_PARALLEL = 0
    TABLE_PARALLEL = 1
    ROW_SLICE = 2


class Holding(NamedTuple):
    """The rectangle of a table that one rank holds."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A table, its group, and the ranks that hold it, in rising order."""

    num_rows: int
    num_columns: int
    group: Group
    ranks: tuple[int, ...]

    def holdings(self) -> Iterator[Holding]:
        """Yield what each of the ranks holds of a table, in their order."""
        rows = [(0, self.num_rows)] * len(self.ranks)
        columns = [(0, self.num_columns)] * len(self.ranks)
        if self.group is Group.TABLE_PARALLEL:
            columns = even_parts(self.num_columns, len(self.ranks))
        elif self.group is Group.ROW_SLICE:
            rows = even_parts(self.num_rows, len(self.ranks))
        for rank, row_range, column_range in zip(self.ranks, rows, columns, strict=True):
            yield Holding(rank, *row_range, *column_range)


def even_parts(whole: int, num_parts: int) -> list[tuple[int, int]]:
    """Return offset and size of the parts of a whole; of a remainder, the first parts have one more each."""
    size, extra = divmod(whole, num_parts)
    return [(part * size + min(part, extra), size + (part < extra)) for part in range(num_parts)]


def layout_of(placed: TablePlacement, size: Size, num_ranks: int) -> Layout:
    """Return the layout that has the shards of a table of this size, up to which rows and which columns a rank holds.

    Raises
    ------
    UnheldGeometry
        There is none; the message says why.
    """
    (num_rows, num_columns), shards = size, placed.shards
    ranks = list(range(num_ranks))
    if placed.sharding_type.is_replicated:
        check_copies(shards, num_rows, num_columns, num_ranks, "rank")
        # A single rank has no group of copies and none of row slices.
        group = Group.DATA_PARALLEL if num_ranks > 1 else Group.TABLE_PARALLEL
    else:
        holders = ranks_once(shards, "rank")
        if np.all(shards.num_rows == num_rows):
            _check_columns(shards, num_columns)
            group, ranks = Group.TABLE_PARALLEL, holders
        elif np.all(shards.num_columns == num_columns):
            _check_rows(shards, num_rows, num_ranks)
            group = Group.ROW_SLICE
        else:
            raise UnheldGeometry("it is cut by rows and by columns; it can be cut one way only")
    return Layout(num_rows=num_rows, num_columns=num_columns, group=group, ranks=tuple(ranks))


def _check_columns(shards: Shards, num_columns: int) -> None:
    """Check that the slices cover the columns, each as wide as the slice that its rank is given."""
    sizes_in_order(shards.column_offset, shards.num_columns, num_columns, "column slices")
    planned: list[int] = shards.num_columns[np.argsort(shards.rank)].tolist()
    given = [size for _, size in even_parts(num_columns, len(planned))]
    if sorted(planned, reverse=True) != given:
        raise UnheldGeometry(
            f"its column slices are {listed(planned)} wide; {num_columns} columns are cut evenly,"
            f" into slices of {listed(given)}"
        )
    if planned != given:
        raise UnheldGeometry(f"its column slices are {listed(planned)} wide; the wider ones must be on the lower ranks")


def _check_rows(shards: Shards, num_rows: int, num_ranks: int) -> None:
    """Check that the blocks cover the rows, none larger than an even share of all ranks."""
    if num_rows < num_ranks:
        raise UnheldGeometry(f"its {num_rows} rows are cut, and rows are cut over all {num_ranks} ranks")
    check_row_blocks(
        shards.row_offset, shards.num_rows, num_rows, num_ranks, how="cut evenly over all ranks", each=f"of {num_ranks}"
    )
