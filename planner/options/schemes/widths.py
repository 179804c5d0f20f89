"""Column widths of the pieces that one table can be cut into, and the cuts that are listed."""

import functools
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Ints
from planner.options.schemes.blocks import COLUMN_STEP, near_equal_widths

#: Numbers of column pieces that are listed: every small one, then two per octave.
PIECE_COUNTS = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Every legal width of a piece, and a list of cuts into them."""

    columns: Ints  # (S,) narrowest first, multiples of COLUMN_STEP without holes
    cuts: tuple[Ints, ...]  # each the indices into ``columns`` of one cut's pieces, widest first
    max_pieces: int
    is_fixed: bool = False  # no cut but the listed one is legal, its pieces left to right as they are listed


@functools.lru_cache(maxsize=4096)
def whole_width(num_columns: int) -> Widths:
    """Return the one piece that has all columns."""
    columns = np.array([num_columns], dtype=np.int64)
    return Widths(columns=columns, cuts=(np.zeros(1, dtype=np.int64),), max_pieces=1)


@functools.lru_cache(maxsize=4096)
def piece_widths(
    num_columns: int, min_width: int, max_width: int, max_pieces: int, also: tuple[int, ...] = ()
) -> Widths | None:
    """Return the widths of two pieces or more; ``None`` where the table cannot be cut so.

    Pieces are multiples of 4 columns, at least ``min_width`` and at most ``max_width`` wide.
    Cuts into near-equal widths are listed for PIECE_COUNTS, for the numbers in ``also`` (such as
    the number of ranks), and for the most pieces that are possible; a search may make any
    other cut of the same widths.
    """
    narrowest = -(-max(min_width, COLUMN_STEP) // COLUMN_STEP) * COLUMN_STEP
    most = min(max_pieces, num_columns // narrowest)
    if num_columns % COLUMN_STEP or most < 2:
        return None
    widest = min(num_columns - narrowest, max_width // COLUMN_STEP * COLUMN_STEP)
    counts = sorted({most, *(count for count in (*PIECE_COUNTS, *also) if 2 <= count <= most)})
    cuts = (np.array(near_equal_widths(num_columns, count), dtype=np.int64) for count in counts)
    listed = tuple((widths - narrowest) // COLUMN_STEP for widths in cuts if widths[0] <= widest)
    if not listed:
        return None
    columns = np.arange(narrowest, widest + 1, COLUMN_STEP, dtype=np.int64)
    return Widths(columns=columns, cuts=listed, max_pieces=most)


@functools.lru_cache(maxsize=4096)
def given_cut(columns: tuple[int, ...]) -> Widths:
    """Return pieces of given widths, left to right, each a multiple of 4 columns, as the only legal cut."""
    given = np.array(columns, dtype=np.int64)
    every = np.arange(given.min(), given.max() + 1, COLUMN_STEP, dtype=np.int64)
    return Widths(columns=every, cuts=((given - given.min()) // COLUMN_STEP,), max_pieces=len(given), is_fixed=True)


@functools.lru_cache(maxsize=4096)
def _equal_cuts(num_columns: int, narrowest: int, widest: int, max_pieces: int) -> tuple[Widths, ...]:
    found = []
    for pieces in range(max_pieces, 1, -1):
        width, rest = divmod(num_columns, pieces)
        if rest == 0 and width % COLUMN_STEP == 0 and narrowest <= width <= widest:
            columns = np.array([width], dtype=np.int64)
            found.append(Widths(columns=columns, cuts=(np.zeros(pieces, dtype=np.int64),), max_pieces=pieces))
    return tuple(found)


def equal_cuts(widths: Widths) -> tuple[Widths, ...]:
    """Return each cut into pieces of one width by itself, narrowest first; the only cut of a whole table is itself."""
    if widths.max_pieces == 1 or (widths.is_fixed and len(widths.columns) == 1):
        return (widths,)
    if widths.is_fixed:
        return ()
    num_columns = int(widths.columns[widths.cuts[0]].sum())
    return _equal_cuts(num_columns, int(widths.columns[0]), int(widths.columns[-1]), widths.max_pieces)
