"""Traces: files of ids that are read piece by piece.

A column is a feature, a row of the file a sample with one id or several. A reader yields pieces of
at most as many samples as asked for, in the order of the file, and never holds much more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from api.cli.errors import BadInput
from cost_models.arrays import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Ids of some samples that follow each other."""

    num_samples: int
    ids: Mapping[str, Ints]  # by column: the ids of all samples of the piece
    read_fraction: float  # of the file, so far
    num_padding: int = 0  # ids that only fill up samples, and are not among the ids


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """What a file does not say of itself: which columns are read, and how."""

    columns: tuple[str, ...] | None = None  # None: all
    separator: str | None = None  # between the ids in a cell of text; None: white space
    padding_id: int | None = None  # the id that only fills up samples, of columns without one of their own
    padding_ids: Mapping[str, int] = field(default_factory=dict)  # by column

    def without_padding(self, piece: Piece) -> Piece:
        """Return a piece without the ids that only fill up samples: nothing is looked up for them."""
        if self.padding_id is None and not self.padding_ids:
            return piece
        ids = {}
        for name, values in piece.ids.items():
            padding = self.padding_ids.get(name, self.padding_id)
            ids[name] = values if padding is None else values[values != padding]
        num_padding = sum(len(values) - len(ids[name]) for name, values in piece.ids.items())
        return replace(piece, ids=ids, num_padding=num_padding)


ALL_COLUMNS = TraceOptions()
#: Reads a file in pieces of a number of samples, the last one shorter. Raises ``BadInput``.
Reader = Callable[[Path, int, TraceOptions], Iterator[Piece]]


def ids_of(where: str, values: NDArray[Any]) -> Ints:
    """Return whole numbers of any type as ids.

    Raises
    ------
    BadInput
        With ``where`` and the first unsigned number that is 2^63 or more, which would come out negative.
    """
    if values.dtype.kind == "u" and values.dtype.itemsize == np.dtype(np.int64).itemsize:
        too_large = np.flatnonzero(values > np.uint64(np.iinfo(np.int64).max))
        if len(too_large):
            raise BadInput(f"{where}: id {values[too_large[0]]} is no row number in [0, 2^40)")
    return values.astype(np.int64, copy=False)


def chosen_columns(path: Path, there: list[str], wanted: tuple[str, ...] | None) -> list[str]:
    """Return the columns to read; raises ``BadInput`` for one that is not there."""
    missing = [name for name in wanted or () if name not in there]
    if missing:
        raise BadInput(f"{path} has no column {missing[0]}; it has {', '.join(there[:20])}")
    return there if wanted is None else list(wanted)
