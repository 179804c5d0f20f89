"""The most valuable pieces for one rank: a knapsack of seconds and bytes, of every item at most one piece.

Resources are counted in cells, and every budget has its best choice (dynamic programming over items; Kellerer,
Pferschy and Pisinger, Knapsack Problems, 2004, sections 9.3 and 11.5).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.compiled import compiled

#: How many pieces a site chooses from, as one record.
PIECE_COUNTS = np.dtype(
    [
        ("items", np.int64),  # that have any
        ("pieces", np.int64),  # rows of Pieces in use
        ("drawn_from", np.int64),  # all legal pieces, of which these are a random part
    ]
)


class Pieces(NamedTuple):
    """What may be chosen, item by item. P room for pieces, I for items; written again for every choice."""

    first: Ints  # (I + 1,) first piece of each item that has any
    shape: Ints  # (P,)
    cells_of_seconds: Ints  # (P,)
    cells_of_bytes: Ints  # (P,)
    value: Floats  # (P,)
    counts: NDArray[np.void]  # (1,) of PIECE_COUNTS


class Table(NamedTuple):
    """The best choice within every budget of up to C cells of each resource."""

    value: Floats  # (C + 1, C + 1)
    before: Floats  # (C + 1, C + 1) without the item that is looked at
    choice: NDArray[np.int16]  # (I, C + 1, C + 1) which piece of an item is taken, -1 for none


@compiled
def no_pieces(items: int, pieces: int) -> Pieces:
    """Return room for pieces."""
    return Pieces(
        np.zeros(items + 1, np.int64),
        np.zeros(pieces, np.int64),
        np.zeros(pieces, np.int64),
        np.zeros(pieces, np.int64),
        np.zeros(pieces),
        np.zeros(1, PIECE_COUNTS),
    )


@compiled
def no_table(items: int, cells: int) -> Table:
    """Return room for a table of so many cells of each resource."""
    size = cells + 1
    return Table(np.zeros((size, size)), np.zeros((size, size)), np.zeros((items, size, size), np.int16))


@compiled
def best_values(pieces: Pieces, table: Table, most_x: int, most_y: int) -> float:
    """Find the best value within every budget up to these cells of seconds and bytes; return the cells looked at."""
    looked = 0.0
    value, before = table.value[: most_x + 1, : most_y + 1], table.before[: most_x + 1, : most_y + 1]
    value[:] = 0.0
    for i in range(pieces.counts[0].items):
        choice = table.choice[i, : most_x + 1, : most_y + 1]
        choice[:] = -1
        before[:] = value
        for piece in range(pieces.first[i], pieces.first[i + 1]):
            seconds, size = pieces.cells_of_seconds[piece], pieces.cells_of_bytes[piece]
            if seconds > most_x or size > most_y:
                continue
            worth = pieces.value[piece]
            index = np.int16(piece - pieces.first[i])
            for x in range(seconds, most_x + 1):
                for y in range(size, most_y + 1):
                    found = before[x - seconds, y - size] + worth
                    if found > value[x, y]:
                        value[x, y] = found
                        choice[x, y] = index
            looked += (most_x + 1 - seconds) * (most_y + 1 - size)
    return looked


@compiled
def chosen_pieces(pieces: Pieces, table: Table, x: int, y: int, chosen: np.ndarray) -> int:
    """Write the pieces that make the best value of a budget into ``chosen``; return how many."""
    count = 0
    for i in range(pieces.counts[0].items - 1, -1, -1):
        taken = table.choice[i, x, y]
        if taken >= 0:
            piece = pieces.first[i] + taken
            chosen[count] = piece
            count += 1
            x -= pieces.cells_of_seconds[piece]
            y -= pieces.cells_of_bytes[piece]
    return count
