"""HugeCTR: which shards of a table its embedding collection can hold, and where it then puts rows and columns.

A collection takes the GPUs of a table and the number of its column pieces, and no more of its geometry. The
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
from typing import NamedTuple

from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.shards import Shards
from planner.options.runtimes.geometry import (
    Size,
    UnheldGeometry,
    check_copies,
    check_row_blocks,
    listed,
    ranks_once,
)

#: Widest piece: gradients of wider rows are rejected.
MAX_PIECE_COLUMNS = 256
#: Vocabulary sizes are 32-bit integers (``EmbeddingTableConfig``).
MAX_TABLE_ROWS = 2**31 - 1


class Holding(NamedTuple):
    """What one GPU holds of a table: a range of columns, and every ``row_step``-th row from ``first_row`` on."""

    gpu: int
    first_row: int
    row_step: int
    num_rows: int
    column_offset: int
    num_columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """All that a collection takes of the geometry of a table."""

    num_rows: int
    num_columns: int
    gpus: tuple[int, ...]  # in rising order
    num_pieces: int  # of columns
    is_copied: bool  # to every GPU

    def holdings(self) -> Iterator[Holding]:
        """Yield what each of the GPUs holds of a table, in their order."""
        step = 1 if self.is_copied else len(self.gpus) // self.num_pieces
        width = self.num_columns // self.num_pieces
        for place, gpu in enumerate(self.gpus):
            piece, first = (0, 0) if self.is_copied else divmod(place, step)
            yield Holding(
                gpu=gpu,
                first_row=first,
                row_step=step,
                num_rows=len(range(first, self.num_rows, step)),
                column_offset=piece * width,
                num_columns=width,
            )


def layout_of(placed: TablePlacement, size: Size, num_gpus: int) -> Layout:
    """Return the layout that has the shards of a table of this size, up to which rows and which piece a GPU holds.

    Raises
    ------
    UnheldGeometry
        There is none; the message says why.
    """
    (num_rows, num_columns), shards = size, placed.shards
    is_copied = placed.sharding_type.is_replicated
    if placed.hash_table_mode and is_copied:
        raise UnheldGeometry("a dynamic table is not copied to all GPUs")
    if num_rows > MAX_TABLE_ROWS and not placed.hash_table_mode:
        raise UnheldGeometry(f"its {num_rows} rows are more than 32-bit vocabulary sizes count, {MAX_TABLE_ROWS}")
    gpus, num_pieces = list(range(num_gpus)), 1
    if is_copied:
        _check_width(num_columns)
        check_copies(shards, num_rows, num_columns, num_gpus, "GPU")
    else:
        gpus = ranks_once(shards, "GPU")
        num_pieces = _num_pieces(shards, gpus, num_rows, num_columns)
    return Layout(
        num_rows=num_rows, num_columns=num_columns, gpus=tuple(gpus), num_pieces=num_pieces, is_copied=is_copied
    )


def _num_pieces(shards: Shards, gpus: list[int], num_rows: int, num_columns: int) -> int:
    """Check that the shards are equal column pieces, each on neighbours among the GPUs; return how many there are."""
    pieces: dict[int, list[int]] = {}
    for number, offset in enumerate(shards.column_offset.tolist()):
        pieces.setdefault(offset, []).append(number)
    widths = set(shards.num_columns.tolist())
    if len(widths) > 1:
        raise UnheldGeometry(f"its column pieces are {listed(widths)} wide; they must be equally wide")
    width = widths.pop()
    _check_width(width)
    if width * len(pieces) != num_columns or any(offset % width for offset in pieces):
        raise UnheldGeometry("its column pieces leave gaps or overlap")
    counts = {len(numbers) for numbers in pieces.values()}
    if len(counts) > 1:
        raise UnheldGeometry(f"its column pieces are on {listed(counts)} GPUs; they must be on as many GPUs each")
    step = counts.pop()
    for numbers in pieces.values():
        offsets, sizes = shards.row_offset[numbers], shards.num_rows[numbers]
        check_row_blocks(offsets, sizes, num_rows, step, how="dealt out evenly", each=f"of {step} GPUs")
    together = {frozenset(shards.rank[numbers].tolist()) for numbers in pieces.values()}
    if together != {frozenset(gpus[start : start + step]) for start in range(0, len(gpus), step)}:
        raise UnheldGeometry(
            "the GPUs of its column pieces interleave; each piece must be on neighbours among the GPUs of the table"
        )
    return len(pieces)


def _check_width(num_columns: int) -> None:
    if num_columns > MAX_PIECE_COLUMNS:
        raise UnheldGeometry(f"{num_columns} columns are on one GPU; gradients are {MAX_PIECE_COLUMNS} wide at most")
