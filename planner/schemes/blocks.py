"""Row blocks and column widths: the arithmetic of cutting."""

from collections.abc import Iterator


def block_rows(num_rows: int, num_blocks: int) -> int:
    """Rows of every block but the last: the only row cut that TorchRec trains correctly."""
    return -(-num_rows // num_blocks)


def has_empty_block(num_rows: int, num_blocks: int) -> bool:
    """Whether blocks of ``ceil(rows / n)`` leave the last one without rows."""
    return (num_blocks - 1) * block_rows(num_rows, num_blocks) >= num_rows


def near_equal_widths(num_columns: int, num_pieces: int) -> tuple[int, ...]:
    """Cut columns into widths that are multiples of 4 and differ by at most 4, widest first."""
    quads, rest = divmod(num_columns // 4, num_pieces)
    return tuple(4 * (quads + (1 if i < rest else 0)) for i in range(num_pieces))


#: Numbers of column pieces that are tried: every small one, then two per octave.
PIECE_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)


def column_widths(num_columns: int, min_width: int, max_pieces: int) -> Iterator[tuple[int, ...]]:
    """Yield the widths of every column cut that keeps each piece at least ``min_width`` wide.

    Nothing where the table's width is not a multiple of 4: no piece could be.
    """
    if num_columns % 4:
        return
    for num_pieces in PIECE_COUNTS:
        if num_pieces > max_pieces:
            return
        widths = near_equal_widths(num_columns, num_pieces)
        if widths[-1] < max(4, min_width):
            return
        yield widths
