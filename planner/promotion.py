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
Bools = NDArray[np.bool_]

_ROUNDS = 20  # more than there are sizes of a cache, each a step nearer


def promoted(priced: PricedOptions, assignment: Assignment) -> Assignment:
    """Return the assignment with nearer rows where memory is left for them; itself where all rows lie in one tier."""
    if np.count_nonzero(priced.shape_bytes.any(axis=0)) < 2:
        return assignment
    shape, sites = assignment.piece_shape.copy(), assignment.piece_site
    free = priced.capacity_bytes - rank_loads(priced, assignment).bytes
    again = np.ones(priced.num_tables, dtype=np.bool_)
    for _ in range(_ROUNDS):
        again = _round(priced, shape, sites, free, again)  # what did not fit will hardly: near memory only gets less
        if not again.any():
            break
    return Assignment(piece_shape=shape, piece_site=sites.copy())


def _round(priced: PricedOptions, shape: Ints, sites: Ints, free: Floats, again: Bools) -> Bools:
    """Let every table of ``again`` change once, and say which did; ``shape`` and ``free`` change in place."""
    table = priced.shape_table[shape]
    of_tables = np.split(np.arange(len(shape)), np.searchsorted(table, np.arange(1, priced.num_tables)))
    may_gain = np.flatnonzero(again).tolist()
    swaps = [swap for one in may_gain for swap in _swaps(priced, shape, of_tables[one])]
    changed = np.zeros(priced.num_tables, dtype=np.bool_)
    for _, pieces, shapes in sorted(swaps, key=lambda swap: -swap[0]):
        if not changed[table[pieces[0]]]:
            ranks, more = _more_on_ranks(priced, shape[pieces], shapes, sites[pieces])
            if np.all((more <= free[ranks]) | (more <= 0)):
                free[ranks] -= more
                shape[pieces] = shapes
                changed[table[pieces[0]]] = True
    return changed


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


def _more_on_ranks(priced: PricedOptions, before: Ints, after: Ints, sites: Ints) -> tuple[Ints, Floats]:
    """Return the ranks that some pieces lie on, and the bytes that each has more of after a change, (ranks, M)."""
    more = priced.shape_bytes[after] - priced.shape_bytes[before]
    scope = priced.shape_scope[before[0]]
    if scope == Scope.RANK:
        ranks, of = np.unique(sites, return_inverse=True)
        total = np.zeros((len(ranks), more.shape[1]))
        np.add.at(total, of, more)
        return ranks, total
    if scope == Scope.WORLD:
        return np.arange(priced.num_ranks), np.repeat(more.sum(axis=0, keepdims=True), priced.num_ranks, axis=0)
    hosts = np.zeros((priced.num_hosts, more.shape[1]))
    np.add.at(hosts, sites, more)
    ranks = np.flatnonzero(np.isin(priced.host_of_rank, sites))
    return ranks, hosts[priced.host_of_rank[ranks]]
