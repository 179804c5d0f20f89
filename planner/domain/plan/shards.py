"""Shards: the rectangles that tables are cut into, held as columns, since a large plan has a million of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self, overload

import numpy as np
from numpy.typing import ArrayLike

from cost_models.arrays import Ints
from cost_models.vocabulary import Tier

_NUM_FIELDS = 6
_SHOWN = 3  # shards that a representation names


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A rectangle of a table on one rank, in one memory tier."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int
    tier: Tier


class Shards(Sequence[Shard]):
    """An immutable sequence of shards: ``shards[3]`` is one of them, ``shards.num_rows`` the rows of all.

    Every column is read-only, of type int64 and shape (num_shards,); a slice shares the memory of the whole.
    Equal where it has equal shards in the same order.
    """

    __slots__ = ("_columns",)

    _columns: Ints  # (6, num_shards), in the order of the fields of a shard

    def __init__(self, columns: Ints) -> None:
        """Take over columns in the order of a shard's fields, shape (6, num_shards), which become read-only.

        The caller gives them up: nothing else may write to their memory.

        Raises
        ------
        ValueError
            They are of another shape or type.
        """
        if columns.ndim != 2 or len(columns) != _NUM_FIELDS or columns.dtype != np.int64:
            raise ValueError(f"Expected columns of shape ({_NUM_FIELDS}, num_shards) and type int64.")
        columns.flags.writeable = False
        self._columns = columns

    @classmethod
    def of_columns(
        cls,
        *,
        rank: ArrayLike,
        row_offset: ArrayLike,
        num_rows: ArrayLike,
        column_offset: ArrayLike,
        num_columns: ArrayLike,
        tier: ArrayLike,
    ) -> Self:
        """Copy columns, each of shape (num_shards,), or one number for all shards.

        Raises
        ------
        ValueError
            They are not equally long.
        """
        given = (rank, row_offset, num_rows, column_offset, num_columns, tier)
        return cls(np.stack(np.broadcast_arrays(*(np.atleast_1d(np.asarray(one, dtype=np.int64)) for one in given))))

    @classmethod
    def of(cls, shards: Iterable[Shard]) -> Self:
        """Hold shards as columns."""
        rows = [(s.rank, s.row_offset, s.num_rows, s.column_offset, s.num_columns, s.tier) for s in shards]
        return cls(np.array(rows, dtype=np.int64).reshape(-1, _NUM_FIELDS).T.copy())

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the shards of all parts, one part after the other; all parts of a split share its memory."""
        none, columns = np.zeros((_NUM_FIELDS, 0), dtype=np.int64), [one.columns for one in parts if len(one)]
        whole = columns[0] if len(columns) == 1 else _adjacent(columns)
        return cls(np.concatenate([none, *columns], axis=1) if whole is None else whole)

    def split(self, ends: Ints) -> tuple[Self, ...]:
        """Return the parts that end before the shards of these numbers; each begins where the one before ends."""
        starts = [0, *ends[:-1].tolist()]
        return tuple(self[start:end] for start, end in zip(starts, ends.tolist(), strict=True))

    def are_those_of(self, others: "Shards", *, in_any_tier: bool = False) -> bool:
        """Whether others are the same shards, in whatever order."""
        if len(self) != len(others):
            return False
        compared = slice(-1) if in_any_tier else slice(None)  # the tier is the last column
        mine, theirs = self.columns[compared], others.columns[compared]
        return np.array_equal(mine, theirs) or np.array_equal(mine[:, np.lexsort(mine)], theirs[:, np.lexsort(theirs)])

    @property
    def columns(self) -> Ints:
        """All columns in the order of a shard's fields, shape (6, num_shards)."""
        return self._columns

    @property
    def rank(self) -> Ints:
        """Rank of each shard."""
        column: Ints = self._columns[0]
        return column

    @property
    def row_offset(self) -> Ints:
        """First row of each shard."""
        column: Ints = self._columns[1]
        return column

    @property
    def num_rows(self) -> Ints:
        """Rows of each shard."""
        column: Ints = self._columns[2]
        return column

    @property
    def column_offset(self) -> Ints:
        """First column of each shard."""
        column: Ints = self._columns[3]
        return column

    @property
    def num_columns(self) -> Ints:
        """Columns of each shard."""
        column: Ints = self._columns[4]
        return column

    @property
    def tier(self) -> Ints:
        """Code of the memory tier of each shard."""
        column: Ints = self._columns[5]
        return column

    @property
    def row_end(self) -> Ints:
        """The row after the last of each shard."""
        return self.row_offset + self.num_rows

    @property
    def column_end(self) -> Ints:
        """The column after the last of each shard."""
        return self.column_offset + self.num_columns

    @property
    def num_cells(self) -> int:
        """Cells of all shards, exactly: cells of shards that are too large for a table may exceed 64 bits."""
        return sum(rows * columns for rows, columns in zip(*self._columns[[2, 4]].tolist(), strict=True))

    def __len__(self) -> int:
        return int(self._columns.shape[1])

    @overload
    def __getitem__(self, index: int) -> Shard: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Shard | Self:
        if isinstance(index, slice):
            return type(self)(self._columns[:, index])
        return _shard(*self._columns[:, index].tolist())

    def __iter__(self) -> Iterator[Shard]:
        return map(_shard, *self._columns.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shards) and np.array_equal(self._columns, other.columns)

    def __hash__(self) -> int:
        return hash(self._columns.tobytes())

    def __repr__(self) -> str:
        more = ", ..." if len(self) > _SHOWN else ""
        return f"Shards.of([{', '.join(repr(one) for one in self[:_SHOWN])}{more}])"

    def __reduce__(self) -> tuple[object, ...]:
        """Copies stay read-only, and a slice takes along its own part alone."""
        return type(self), (self._columns,)


def _adjacent(parts: Sequence[Ints]) -> Ints | None:
    """Return columns that follow one another in the memory of one array as a view of it; ``None`` if they do not."""
    base = parts[0].base if parts else None
    if not isinstance(base, np.ndarray) or base.shape[:1] != (_NUM_FIELDS,) or not base.flags.c_contiguous:
        return None
    if any(one.base is not base or one.strides != base.strides for one in parts):
        return None
    address = np.array([one.ctypes.data for one in (base, *parts)], dtype=np.int64)
    begin = (address[1:] - address[0]) // base.itemsize
    end = begin + [one.shape[1] for one in parts]
    if not np.array_equal(begin[1:], end[:-1]):
        return None
    whole: Ints = base[:, begin[0] : end[-1]]
    return whole


def _shard(rank: int, row_offset: int, num_rows: int, column_offset: int, num_columns: int, tier: int) -> Shard:
    return Shard(
        rank=rank,
        row_offset=row_offset,
        num_rows=num_rows,
        column_offset=column_offset,
        num_columns=num_columns,
        tier=Tier(tier),
    )
