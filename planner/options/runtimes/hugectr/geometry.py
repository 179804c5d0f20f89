"""HugeCTR: which shards of a table its embedding collection can hold, and where it then puts rows and columns.

A collection is told which GPUs hold a table and into how many column pieces it is cut, and no more of its geometry. The
GPUs are taken in rising order. With ``p`` pieces on ``g`` GPUs, the first ``g / p`` share the leftmost piece, the next
``g / p`` the piece after it; of ``n`` GPUs that share a piece, number ``i`` holds the rows whose id leaves ``i`` when
divided by ``n``. So pieces are equally wide, rows are dealt out evenly, and no GPU holds a table twice.

Our row blocks are ranges. A block of ``n`` stands for one remainder by ``n``: as many rows, or fewer than ``n`` more in
the last of them, and read as often where nothing is known of single ids.

References
----------
NVIDIA-Merlin/HugeCTR, where ``shard`` takes ``compression_strategy``: ``src/embeddings/embedding_collection.cpp``
(columns), ``embedding_storage/ragged_static_embedding.cu``, ``embedding/data_distributor/key_filtering_operators.cu``
(rows), ``embedding/operators/multi_to_one_reduce_v2.cuh`` (widths).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from planner.domain.plan.shards import Shards

#: Widest piece: gradients of wider rows are refused.
MAX_PIECE_COLUMNS = 256


class UnheldGeometry(ValueError):
    """Shards that no embedding collection holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What one GPU holds of a table: a range of columns, and every ``row_step``-th row from ``first_row`` on."""

    gpu: int
    first_row: int
    row_step: int
    num_rows: int
    column_offset: int
    num_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All that a collection is told of a table that is not copied to every GPU."""

    gpus: tuple[int, ...]  # in rising order
    num_pieces: int  # of columns

    def holdings(self, num_rows: int, num_columns: int) -> Iterator[Holding]:
        """Yield what each of the GPUs holds of a table, in their order."""
        step, width = len(self.gpus) // self.num_pieces, num_columns // self.num_pieces
        for place, gpu in enumerate(self.gpus):
            piece, first = divmod(place, step)
            yield Holding(
                gpu=gpu,
                first_row=first,
                row_step=step,
                num_rows=len(range(first, num_rows, step)),
                column_offset=piece * width,
                num_columns=width,
            )


def layout_of(shards: Shards, num_rows: int, num_columns: int) -> Layout:
    """Return the layout that has these shards of a table, up to which rows and which piece a GPU holds.

    Raises
    ------
    UnheldGeometry
        There is none; the message says why.
    """
    gpus = sorted(shards.rank.tolist())
    twice = next((gpu for gpu, after in pairwise(gpus) if gpu == after), None)
    if twice is not None:
        raise UnheldGeometry(f"two shards are on GPU {twice}; a GPU holds a table once")
    pieces: dict[int, list[int]] = {}
    for number, offset in enumerate(shards.column_offset.tolist()):
        pieces.setdefault(offset, []).append(number)
    widths = {int(width) for width in shards.num_columns}
    if len(widths) > 1:
        raise UnheldGeometry(f"its column pieces are {_listed(widths)} wide; they must be equally wide")
    width = widths.pop()
    _check_width(width)
    if width * len(pieces) != num_columns or any(offset % width for offset in pieces):
        raise UnheldGeometry("its column pieces leave gaps or overlap")
    counts = {len(numbers) for numbers in pieces.values()}
    if len(counts) > 1:
        raise UnheldGeometry(f"its column pieces are on {_listed(counts)} GPUs; they must be on as many GPUs each")
    for numbers in pieces.values():
        _check_rows(shards, numbers, num_rows)
    together = {frozenset(shards.rank[numbers].tolist()) for numbers in pieces.values()}
    step = counts.pop()
    if together != {frozenset(gpus[start : start + step]) for start in range(0, len(gpus), step)}:
        raise UnheldGeometry(
            "the GPUs of its column pieces interleave; each piece must be on neighbours among the GPUs of the table"
        )
    return Layout(gpus=tuple(gpus), num_pieces=len(pieces))


def check_copies(shards: Shards, num_rows: int, num_columns: int, num_gpus: int) -> None:
    """Check that the shards are one whole copy on every GPU, which is what is held of a table that is not cut.

    Raises
    ------
    UnheldGeometry
        They are not, or wider than HugeCTR trains.
    """
    _check_width(num_columns)
    whole = (shards.row_offset == 0) & (shards.num_rows == num_rows)
    whole &= (shards.column_offset == 0) & (shards.num_columns == num_columns)
    if sorted(shards.rank.tolist()) != list(range(num_gpus)) or not np.all(whole):
        raise UnheldGeometry("it is data_parallel without one whole copy on every GPU")


def _check_width(num_columns: int) -> None:
    if num_columns > MAX_PIECE_COLUMNS:
        raise UnheldGeometry(f"{num_columns} columns are on one GPU; gradients are {MAX_PIECE_COLUMNS} wide at most")


def _check_rows(shards: Shards, numbers: list[int], num_rows: int) -> None:
    """Check that the shards of one piece are ranges of rows after one another, none larger than an even share."""
    ranges = sorted(zip(shards.row_offset[numbers].tolist(), shards.num_rows[numbers].tolist(), strict=True))
    end, share = 0, -(-num_rows // len(numbers))
    evenly = f"at most {share} to each of {len(numbers)} GPUs"
    for first, size in ranges:
        if first != end or size < 1:
            raise UnheldGeometry("its row blocks leave gaps or overlap")
        if size > share:
            raise UnheldGeometry(f"a row block has {size} rows; rows are dealt out evenly, {evenly}")
        end += size
    if end != num_rows:
        raise UnheldGeometry("its row blocks leave gaps or overlap")


def _listed(numbers: set[int]) -> str:
    return " and ".join(str(number) for number in sorted(numbers))
