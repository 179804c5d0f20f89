"""Row blocks and column widths: the arithmetic of cutting."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Count = TypeVar("Count", int, NDArray[np.int64])

#: Widths are multiples of this: FBGEMM's kernels read rows in vectors of four.
COLUMN_STEP = 4


def block_rows(num_rows: Count, num_blocks: Count) -> Count:
    """Rows of every block but the last: the only row cut that TorchRec trains correctly."""
    return -(-num_rows // num_blocks)


def has_empty_block(num_rows: int, num_blocks: int) -> bool:
    """Whether blocks of ``ceil(rows / n)`` leave the last one without rows."""
    return (num_blocks - 1) * block_rows(num_rows, num_blocks) >= num_rows


def near_equal_widths(num_columns: int, num_pieces: int) -> tuple[int, ...]:
    """Cut columns into widths that are multiples of 4 and differ by at most 4, widest first."""
    steps, rest = divmod(num_columns // COLUMN_STEP, num_pieces)
    return tuple(COLUMN_STEP * (steps + (1 if i < rest else 0)) for i in range(num_pieces))
