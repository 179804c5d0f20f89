"""Memory that a plan leaves free, used: rows come nearer wherever that costs nothing.

Phases that are hidden, or whose slowest rank is another, leave the search no reason to prefer a large cache to a small
one. Here every table may take another family that lands on the same sites in the same widths, is nowhere
slower, somewhere faster, and fits; the largest gains per byte go first. The objective cannot rise.
"""

from typing import NamedTuple

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.options.schemes.blocks import COLUMN_STEP
from planner.solver.evaluate import rank_loads
from planner.solver.problem import Assignment, Scope, SolverProblem
from planner.solver.segments import side_by_side

_ROUNDS = 20  # more than there are sizes of a cache, each a step nearer


def move_rows_to_faster_tier(priced: SolverProblem, assignment: Assignment) -> Assignment:
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


class _Swaps(NamedTuple):
    """What pieces of tables could be instead, one entry per swap, or per piece of a swap."""

    gain: Floats  # seconds saved per byte more
    table: Ints
    first: Ints  # (swaps + 1,) into the pieces
    piece: Ints
    shape: Ints  # new shape of each piece
    more: Floats  # (pieces, M) bytes that each takes more on every rank that it touches


def _round(priced: SolverProblem, shape: Ints, sites: Ints, free: Floats, again: Bools) -> Bools:
    """Let every table of ``again`` change once, and return which did; ``shape`` and ``free`` change in place."""
    swaps = _swaps(priced, shape, np.flatnonzero(again & ~priced.table_is_pinned))
    changed = np.zeros(priced.num_tables, dtype=np.bool_)
    scope_of_table = np.zeros(priced.num_tables, dtype=np.int64)
    scope_of_table[priced.shape_table[shape]] = priced.shape_scope[shape]
    for swap in np.argsort(-swaps.gain, kind="stable").tolist():
        table = swaps.table[swap]
        if not changed[table]:
            some = slice(swaps.first[swap], swaps.first[swap + 1])
            piece = swaps.piece[some]
            ranks, more = _more_on_ranks(priced, scope_of_table[table], sites[piece], swaps.more[some])
            if np.all((more <= free[ranks]) | (more <= 0)):
                free[ranks] -= more
                shape[piece] = swaps.shape[some]
                changed[table] = True
    return changed


def _swaps(priced: SolverProblem, shape: Ints, tables: Ints) -> _Swaps:
    """List the families that each of the tables' pieces could be of: nowhere slower, somewhere faster."""
    of_tables = np.searchsorted(priced.shape_table[shape], np.arange(priced.num_tables + 1))
    num_pieces = np.diff(of_tables)
    now = np.zeros(priced.num_tables, dtype=np.int64)
    now[priced.shape_table[shape]] = priced.shape_family[shape]
    start, stop = priced.families_of_table
    place, other = side_by_side(start[tables], (stop - start)[tables])
    table = tables[place]
    may = (other != now[table]) & _lands_alike(priced, now[table], other, num_pieces[table])
    table, other = table[may], other[may]
    swap, piece = side_by_side(of_tables[table], num_pieces[table])
    first, last = priced.shapes_of_family
    wider = (priced.shape_columns[shape[piece]] - priced.shape_columns[first[other]][swap]) // COLUMN_STEP
    new = first[other][swap] + wider
    may = _all_of(swap, (wider >= 0) & (new < last[other][swap]), len(other))
    new = np.where(may[swap], new, 0)
    saved = priced.shape_seconds[shape[piece]] - priced.shape_seconds[new]
    may &= _all_of(swap, ~np.any(saved < 0, axis=1), len(other))
    may &= ~_all_of(swap, ~np.any(saved > 0, axis=1), len(other))
    chosen = may[swap]
    swap, piece, new, saved = (np.cumsum(may) - 1)[swap[chosen]], piece[chosen], new[chosen], saved[chosen]
    more = priced.shape_bytes[new] - priced.shape_bytes[shape[piece]]
    count = int(np.count_nonzero(may))
    taken = np.bincount(swap, np.maximum(more, 0.0).sum(axis=1), minlength=count)
    return _Swaps(
        gain=np.bincount(swap, saved.sum(axis=1), minlength=count) / np.maximum(taken, 1.0),
        table=table[may],
        first=np.searchsorted(swap, np.arange(count + 1)),
        piece=piece,
        shape=new,
        more=more,
    )


def _all_of(swap: Ints, holds: Bools, count: int) -> Bools:
    """Whether something holds for all pieces of each swap, shape (count,)."""
    every = np.ones(count, dtype=np.bool_)
    every[swap[~holds]] = False
    return every


def _lands_alike(priced: SolverProblem, one: Ints, other: Ints, num_pieces: Ints) -> Bools:
    """Whether so many pieces of a family could be as many of another one, on the same sites, shape (families,)."""
    alike: Bools = (
        (priced.family_scope[one] == priced.family_scope[other])
        & (priced.family_same_host[one] == priced.family_same_host[other])
        & (priced.family_min_pieces[other] <= num_pieces)
        & (num_pieces <= priced.family_max_pieces[other])
    )
    if priced.num_kinds:  # another kind would have starts of its own
        alike &= priced.family_kind[one] == priced.family_kind[other]
    return alike


def _more_on_ranks(priced: SolverProblem, scope: int, sites: Ints, more: Floats) -> tuple[Ints, Floats]:
    """Return the ranks that some pieces lie on, and the bytes that each has more of after a change, (ranks, M)."""
    if scope == Scope.RANK:
        if len(sites) == 1:
            return sites, more
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
