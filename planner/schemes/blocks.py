"""Row blocks and column widths: the arithmetic of cutting."""

from collections.abc import Collection, Iterator

#: Widths are multiples of this: FBGEMM's kernels read rows in vectors of four.
COLUMN_STEP = 4


def block_rows(num_rows: int, num_blocks: int) -> int:
    """Rows of every block but the last: the only row cut that TorchRec trains correctly."""
    return -(-num_rows // num_blocks)


def has_empty_block(num_rows: int, num_blocks: int) -> bool:
    """Whether blocks of ``ceil(rows / n)`` leave the last one without rows."""
    return (num_blocks - 1) * block_rows(num_rows, num_blocks) >= num_rows


def near_equal_widths(num_columns: int, num_pieces: int) -> tuple[int, ...]:
    """Cut columns into widths that are multiples of 4 and differ by at most 4, widest first."""
    steps, rest = divmod(num_columns // COLUMN_STEP, num_pieces)
    return tuple(COLUMN_STEP * (steps + (1 if i < rest else 0)) for i in range(num_pieces))


#: Numbers of column pieces that are tried: every small one, then two per octave.
PIECE_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)


def column_widths(
    num_columns: int, min_width: int, max_pieces: int, also: Collection[int] = ()
) -> Iterator[tuple[int, ...]]:
    """Yield near-equal cuts that keep each piece at least ``min_width`` wide, fewest pieces first.

    ``also`` are numbers of pieces to try besides PIECE_COUNTS, such as the number of ranks.
    Nothing where the table's width is not a multiple of 4: no piece could be.
    """
    if num_columns % COLUMN_STEP:
        return
    for num_pieces in sorted({*PIECE_COUNTS, *(count for count in also if count > 1)}):
        if num_pieces > max_pieces:
            return
        widths = near_equal_widths(num_columns, num_pieces)
        if widths[-1] < max(COLUMN_STEP, min_width):
            return
        yield widths
