"""Memory that a plan leaves free, used: rows come nearer wherever that costs nothing.

Phases that are hidden, or whose slowest rank is another, leave the search no reason to prefer a large cache to a small
one. Here every table may take another family of the waist that lands on the same sites in the same widths, is nowhere
slower, somewhere faster, and fits; the largest gains per byte go first. The objective cannot rise.
"""

import numpy as np
from numpy.typing import NDArray

from planner.evaluate import rank_loads
from planner.priced import Assignment, PricedOptions, Scope
from planner.schemes.blocks import COLUMN_STEP

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 20  # more than there are sizes of a cache, each a step nearer


def promoted(priced: PricedOptions, assignment: Assignment) -> Assignment:
    """Return the assignment with nearer rows where memory is left for them; itself where all rows lie in one tier."""
    if np.count_nonzero(priced.shape_bytes.any(axis=0)) < 2:
        return assignment
    shape, sites = assignment.piece_shape.copy(), assignment.piece_site
    free = priced.capacity_bytes - rank_loads(priced, assignment).bytes
    for _ in range(_ROUNDS):
        if not _round(priced, shape, sites, free):
            break
    return Assignment(piece_shape=shape, piece_site=sites.copy())


def _round(priced: PricedOptions, shape: Ints, sites: Ints, free: Floats) -> bool:
    """Let every table change once, and say whether any did; ``shape`` and ``free`` change in place."""
    table = priced.shape_table[shape]
    swaps = [swap for one in range(priced.num_tables) for swap in _swaps(priced, shape, np.flatnonzero(table == one))]
    changed = np.zeros(priced.num_tables, dtype=np.bool_)
    for _, pieces, shapes in sorted(swaps, key=lambda swap: -swap[0]):
        if not changed[table[pieces[0]]]:
            more = _on_ranks(priced, shapes, sites[pieces]) - _on_ranks(priced, shape[pieces], sites[pieces])
            if np.all((more <= free) | (more <= 0)):
                free -= more
                shape[pieces] = shapes
                changed[table[pieces[0]]] = True
    return bool(changed.any())


def _swaps(priced: PricedOptions, shape: Ints, pieces: Ints) -> list[tuple[float, Ints, Ints]]:
    """Return what else a table's pieces could be: seconds saved per byte, the pieces, their new shapes."""
    mine = shape[pieces]
    family = int(priced.shape_family[mine[0]])
    table = int(priced.family_table[family])
    if priced.table_is_pinned[table]:
        return []
    first, last = priced.shapes_of_family
    found = []
    for other in range(int(priced.families_of_table[0][table]), int(priced.families_of_table[1][table])):
        if other == family or not _lands_alike(priced, family, other, len(pieces)):
            continue
        shapes = first[other] + (priced.shape_columns[mine] - priced.shape_columns[first[other]]) // COLUMN_STEP
        if np.any(shapes < first[other]) or np.any(shapes >= last[other]):
            continue
        saved = priced.shape_seconds[mine] - priced.shape_seconds[shapes]
        if np.all(saved >= 0) and np.any(saved > 0):
            more = float(np.maximum(priced.shape_bytes[shapes] - priced.shape_bytes[mine], 0.0).sum())
            found.append((float(saved.sum()) / max(more, 1.0), pieces, shapes))
    return found


def _lands_alike(priced: PricedOptions, one: int, other: int, num_pieces: int) -> bool:
    return bool(
        priced.family_scope[one] == priced.family_scope[other]
        and priced.family_same_host[one] == priced.family_same_host[other]
        and priced.family_min_pieces[other] <= num_pieces <= priced.family_max_pieces[other]
    )


def _on_ranks(priced: PricedOptions, shapes: Ints, sites: Ints) -> Floats:
    """Bytes that some pieces put on every rank, (R, M)."""
    total = np.zeros_like(priced.capacity_bytes)
    for shape, site in zip(shapes.tolist(), sites.tolist(), strict=True):
        scope = priced.shape_scope[shape]
        if scope == Scope.RANK:
            ranks: Ints = np.array([site])
        elif scope == Scope.HOST:
            ranks = np.flatnonzero(priced.host_of_rank == site)
        else:
            ranks = np.arange(priced.num_ranks)
        total[ranks] += priced.shape_bytes[shape]
    return total
