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
from itertools import pairwise

import numpy as np

from planner.domain.plan.shards import Shards


class UnheldGeometry(ValueError):
    """Shards that distributed-embeddings cannot hold."""


class Group(IntEnum):
    """What is done with a table, in the order in which the runtime lists its groups."""

    DATA_PARALLEL = 0
    TABLE_PARALLEL = 1
    ROW_SLICE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The rectangle of a table that one rank holds."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The group of a table, and the ranks that hold it, in rising order."""

    group: Group
    ranks: tuple[int, ...]

    def holdings(self, num_rows: int, num_columns: int) -> Iterator[Holding]:
        """Yield what each of the ranks holds of a table, in their order."""
        rows = [(0, num_rows)] * len(self.ranks)
        columns = [(0, num_columns)] * len(self.ranks)
        if self.group is Group.TABLE_PARALLEL:
            columns = even_parts(num_columns, len(self.ranks))
        elif self.group is Group.ROW_SLICE:
            rows = even_parts(num_rows, len(self.ranks))
        for rank, (first_row, row_count), (first_column, column_count) in zip(self.ranks, rows, columns, strict=True):
            yield Holding(
                rank=rank,
                row_offset=first_row,
                num_rows=row_count,
                column_offset=first_column,
                num_columns=column_count,
            )


def even_parts(whole: int, num_parts: int) -> list[tuple[int, int]]:
    """Return offset and size of the parts of a whole; of a remainder, the first parts have one more each."""
    size, extra = divmod(whole, num_parts)
    return [(part * size + min(part, extra), size + (part < extra)) for part in range(num_parts)]


def layout_of(shards: Shards, num_rows: int, num_columns: int, num_ranks: int, *, is_copied: bool) -> Layout:
    """Return the layout that has these shards of a table, up to which rows and which columns a rank holds.

    Raises
    ------
    UnheldGeometry
        There is none; the message says why.
    """
    if is_copied:
        return _copies(shards, num_rows, num_columns, num_ranks)
    ranks = sorted(shards.rank.tolist())
    twice = next((rank for rank, after in pairwise(ranks) if rank == after), None)
    if twice is not None:
        raise UnheldGeometry(f"two shards are on rank {twice}; a rank holds a table once")
    wide, high = shards.num_columns == num_columns, shards.num_rows == num_rows
    if np.all(high):
        _check_columns(shards, num_columns)
        return Layout(group=Group.TABLE_PARALLEL, ranks=tuple(ranks))
    if not np.all(wide):
        raise UnheldGeometry("it is cut by rows and by columns; it can be cut one way only")
    _check_rows(shards, num_rows, num_ranks)
    return Layout(group=Group.ROW_SLICE, ranks=tuple(range(num_ranks)))


def _copies(shards: Shards, num_rows: int, num_columns: int, num_ranks: int) -> Layout:
    whole = (shards.row_offset == 0) & (shards.num_rows == num_rows)
    whole &= (shards.column_offset == 0) & (shards.num_columns == num_columns)
    if sorted(shards.rank.tolist()) != list(range(num_ranks)) or not np.all(whole):
        raise UnheldGeometry("it is data_parallel without one whole copy on every rank")
    # A single rank has no group of copies and none of row slices.
    group = Group.DATA_PARALLEL if num_ranks > 1 else Group.TABLE_PARALLEL
    return Layout(group=group, ranks=tuple(range(num_ranks)))


def _check_columns(shards: Shards, num_columns: int) -> None:
    """Check that the slices cover the columns, each as wide as the slice that its rank is given."""
    _check_cover(shards.column_offset.tolist(), shards.num_columns.tolist(), num_columns, "column slices")
    by_rank = np.argsort(shards.rank)
    planned = [int(width) for width in shards.num_columns[by_rank]]
    given = [size for _, size in even_parts(num_columns, len(planned))]
    if sorted(planned, reverse=True) != given:
        raise UnheldGeometry(
            f"its column slices are {_listed(set(planned))} wide; {num_columns} columns are cut evenly,"
            f" into slices of {_listed(set(given))}"
        )
    if planned != given:
        raise UnheldGeometry(
            f"its column slices are {_listed(set(planned))} wide; the wider ones must be on the lower ranks"
        )


def _check_rows(shards: Shards, num_rows: int, num_ranks: int) -> None:
    """Check that the blocks cover the rows, none larger than an even share of all ranks."""
    sizes = shards.num_rows.tolist()
    _check_cover(shards.row_offset.tolist(), sizes, num_rows, "row blocks")
    if num_rows < num_ranks:
        raise UnheldGeometry(f"its {num_rows} rows are cut, and rows are cut over all {num_ranks} ranks")
    share = -(-num_rows // num_ranks)
    if max(sizes) > share:
        raise UnheldGeometry(
            f"a row block has {max(sizes)} rows; rows are cut evenly over all ranks, at most {share}"
            f" to each of {num_ranks}"
        )


def _check_cover(offsets: list[int], sizes: list[int], whole: int, parts: str) -> None:
    end = 0
    for offset, size in sorted(zip(offsets, sizes, strict=True)):
        if offset != end or size < 1:
            raise UnheldGeometry(f"its {parts} leave gaps or overlap")
        end += size
    if end != whole:
        raise UnheldGeometry(f"its {parts} leave gaps or overlap")


def _listed(numbers: set[int]) -> str:
    return " and ".join(str(number) for number in sorted(numbers))
