"""The hottest rows: which ones they are, and about how often each is looked up.

A row is kept for the most lookups that one batch made of it. The largest such numbers of all
batches are among the largest in the sketch that has that batch, so that merging loses none. How often
a row is looked up in all comes from a count sketch, whose cells add up.

References
----------
Charikar, Chen, Farach-Colton: Finding frequent items in data streams, ICALP 2002 (the count sketch).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Ints
from planner.access.sketches.hashing import Hashes, mixed, row_hashes

NUM_HOT_ROWS = 64
DEPTH, WIDTH = 3, 256
_WIDTH_BITS = 8
_ROUNDS = 3  # of taking the hot rows out of each other's cells


@dataclass(frozen=True, slots=True, kw_only=True)
class HotRow:
    """A row that is looked up often."""

    row: int
    lookups: int  # estimated: the error is that of a few cells of 256 that share all other lookups


def empty_cells() -> Ints:
    """Return the cells of a count sketch that has seen nothing, shape (DEPTH, WIDTH)."""
    return np.zeros((DEPTH, WIDTH), dtype=np.int64)


def count_lookups(cells: Ints, hashes: Hashes, counts: Ints) -> None:
    """Add the lookups of one batch to the cells."""
    for depth, (places, signs) in enumerate(_places(hashes)):
        sums = np.bincount(places, weights=signs * counts, minlength=WIDTH)  # exact below 2^53
        cells[depth] += sums.astype(np.int64)


def hottest(rows: Ints, counts: Ints, hashes: Hashes) -> tuple[Ints, Ints]:
    """Return the ``NUM_HOT_ROWS`` rows of the largest counts, the larger first, of equal ones those of least hash.

    A row may stand there twice, as it does where two sketches are merged; its larger count is taken.
    """
    most = 2 * NUM_HOT_ROWS
    if len(rows) > most:
        least = np.partition(counts, len(counts) - most)[len(counts) - most]
        above, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
        if len(equal) > most:
            equal = equal[np.argpartition(hashes[equal], most)[:most]]
        selected = np.concatenate([above, equal])
        rows, counts, hashes = rows[selected], counts[selected], hashes[selected]
    order = np.lexsort((rows, hashes, -counts))
    _, first = np.unique(rows[order], return_index=True)
    chosen = order[np.sort(first)][:NUM_HOT_ROWS]
    return rows[chosen], counts[chosen]


def estimated(rows: Ints, most_in_one_batch: Ints, cells: Ints, seed: int, lookups: int) -> list[HotRow]:
    """Return the hot rows with their lookups in all, the most looked up first."""
    hashes = row_hashes(rows, seed)
    left = cells.astype(np.float64)
    lookups_of = np.zeros(len(rows))
    where = list(_places(hashes))
    for _ in range(_ROUNDS):
        for index in np.argsort(-np.maximum(lookups_of, most_in_one_batch), kind="stable").tolist():
            seen = [signs[index] * left[depth, places[index]] for depth, (places, signs) in enumerate(where)]
            better = min(max(float(np.median(seen)) + lookups_of[index], float(most_in_one_batch[index])), lookups)
            for depth, (places, signs) in enumerate(where):
                left[depth, places[index]] -= signs[index] * (better - lookups_of[index])
            lookups_of[index] = better
    order = np.lexsort((rows, -lookups_of)).tolist()
    return [HotRow(row=int(rows[i]), lookups=round(lookups_of[i])) for i in order]


def _places(hashes: Hashes) -> list[tuple[Ints, Ints]]:
    """Return the cell of every row, and whether it counts up or down there, at every depth."""
    bits, found = mixed(hashes), []
    for depth in range(DEPTH):
        part = bits >> np.uint64(depth * (_WIDTH_BITS + 1))
        signs = 1 - 2 * ((part >> np.uint64(_WIDTH_BITS)) & np.uint64(1)).astype(np.int64)
        found.append(((part & np.uint64(WIDTH - 1)).astype(np.int64), signs))
    return found
