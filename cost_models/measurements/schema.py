"""The columns of a measurement file: what was run, what it worked on, how long it took.

One row is one shard of one launch, one rank of one collective, or one copy. Rows that were timed together share
``launch``: those of lookups carry the seconds of the whole launch, each the same; each rank of a collective and each
of several copies has its own. Columns that do not apply are empty: NaN in numbers, ``""`` in text, -1 in counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["lookup", "collective", "copy"]
KINDS: tuple[Kind, ...] = ("lookup", "collective", "copy")
COLLECTIVES = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce")
COPIES = ("gather", "stream", "host_to_device", "device_to_host")
#: Bins of a reuse histogram, as in Meta's data: rows looked up 1, 2, 3-4, 5-8, ... 16385-32768, more times in a batch,
#: as shares of the distinct rows.
NUM_REUSE_BINS = 17
REUSE_COLUMNS = tuple(f"reuse_{i}" for i in range(NUM_REUSE_BINS))


@dataclass(frozen=True, slots=True)
class Column:
    """One column: how it is stored, which kinds of rows must have it, and the least value that makes sense."""

    name: str
    type: Literal["text", "count", "number"]
    required_by: tuple[Kind, ...] = ()
    least: float = 0.0


_ALL = KINDS
COLUMNS: tuple[Column, ...] = (
    # What was run, and where.
    Column("kind", "text", _ALL),
    Column("launch", "count", _ALL),
    #: what must not be torn apart between training and test: the task or run that the row belongs to
    Column("task", "text", _ALL),
    Column("device", "text", _ALL),
    Column("library", "text", _ALL),  # "fbgemm_gpu 1.8.0"
    Column("implementation", "text", _ALL),  # "fbgemm_tbe", "triton_tbe", "embedding_bag", "nccl", "gloo", ...
    #: ranks that ran at the same time, and how many of them share a host
    Column("num_ranks", "count", _ALL, 1),
    Column("ranks_per_host", "count", _ALL, 1),
    Column("repeats", "count", (), 1),
    # Lookups: the counts of ShardWork, for one shard of a launch.
    Column("table", "text", ("lookup",)),
    Column("shard_rows", "count", ("lookup",), 1),
    Column("shard_columns", "count", ("lookup",), 1),
    Column("element_bytes", "number", ("lookup",)),
    Column("output_element_bytes", "number"),
    Column("optimizer_element_bytes", "number"),
    Column("optimizer_row_bytes", "number"),
    Column("lookups", "number", ("lookup",)),
    Column("outputs", "number", ("lookup",)),  # output rows that the shard writes
    Column("distinct_rows", "number"),
    Column("zipf_alpha", "number"),
    *(Column(name, "number") for name in REUSE_COLUMNS),
    # Collectives and copies.
    Column("operation", "text", ("collective", "copy")),
    Column("direction", "text"),  # "forward" or "backward", of a collective in a training step
    Column("rank", "count"),
    Column("sent_bytes", "number", ("collective",)),  # by this rank, its own part included
    Column("received_bytes", "number", ("collective",)),
    Column("start_seconds", "number"),  # how much later than the first this rank joined
    Column("copied_bytes", "number", ("copy",)),
    Column("row_bytes", "number"),  # of a gather: bytes of one random read
    Column("contending", "count", (), 1),  # copies at the same time over the same memory, this one included
    # How long it took.
    Column("forward_seconds", "number"),
    Column("backward_seconds", "number"),
    Column("seconds", "number", _ALL),  # of lookups: forward and backward together
    Column("spread_seconds", "number"),  # distance of the quartiles over the repeats
)
COLUMN_NAMES = tuple(column.name for column in COLUMNS)
DTYPES = {"text": np.dtype(np.str_), "count": np.dtype(np.int64), "number": np.dtype(np.float64)}


@dataclass(frozen=True, slots=True)
class Measurements:
    """Measured rows as columns of one length, by the names of :data:`COLUMNS`; all of them are there."""

    columns: Mapping[str, NDArray[np.generic]]

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(self.columns["kind"])

    def text(self, name: str) -> NDArray[np.str_]:
        """Return a text column."""
        return self.columns[name].astype(np.str_)

    def counts(self, name: str) -> NDArray[np.int64]:
        """Return a column of counts; -1 where it does not apply."""
        return self.columns[name].astype(np.int64)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column of numbers; NaN where it does not apply or nothing is known."""
        return self.columns[name].astype(np.float64)

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Measurements":
        """Return some of the rows."""
        return Measurements({name: column[rows] for name, column in self.columns.items()})


def measurements(columns: Mapping[str, NDArray[np.generic]], num_rows: int) -> Measurements:
    """Return rows of which only some columns are given; the others are empty."""
    return Measurements(
        {
            column.name: np.asarray(columns[column.name]).astype(DTYPES[column.type])
            if column.name in columns
            else empty_column(column, num_rows)
            for column in COLUMNS
        }
    )


def empty_column(column: Column, num_rows: int) -> NDArray[np.generic]:
    """Return the values of a column in rows that it says nothing of."""
    empty: dict[str, object] = {"text": "", "count": -1, "number": np.nan}
    return np.full(num_rows, empty[column.type], dtype=DTYPES[column.type])


def joined(parts: Sequence[Measurements]) -> Measurements:
    """Return the rows of several files one after another, their launches numbered again so that none meet."""
    columns: dict[str, list[NDArray[np.generic]]] = {name: [] for name in COLUMN_NAMES}
    next_launch = 0
    for part in parts:
        for name in COLUMN_NAMES:
            columns[name].append(part.columns[name])
        launches, number = np.unique(part.counts("launch"), return_inverse=True)
        columns["launch"][-1] = number.astype(np.int64) + next_launch
        next_launch += len(launches)
    if not parts:
        return measurements({}, 0)
    return Measurements({name: np.concatenate(values) for name, values in columns.items()})
