"""The order of a table's pieces that moves least: which columns a piece has is free, how many is not."""

import numpy as np

from cost_models.arrays import Bools
from planner.solver.movement import moved_bytes
from planner.solver.problem import Assignment, MovePrice, Scope, SolverProblem

#: Tables in more pieces keep them in the order of what their sites held before.
_MOST_TRIED = 24


def order_for_fewest_moves(priced: SolverProblem, assignment: Assignment) -> Assignment:
    """Return the same pieces on the same sites, those of each table in an order in which few bytes move."""
    move = priced.move
    if move is None:
        return assignment
    shape, site = assignment.piece_shape.copy(), assignment.piece_site.copy()
    table = priced.shape_table[shape]
    first = np.searchsorted(table, np.arange(priced.num_tables + 1))
    is_home = _at_home(priced, move, assignment)
    for t in np.flatnonzero((np.diff(first) > 1) & (move.cell_bytes > 0) & ~is_home).tolist():
        low, high = int(first[t]), int(first[t + 1])
        scope = int(priced.shape_scope[shape[low]])
        if scope == Scope.WORLD or priced.table_is_pinned[t]:
            continue
        held = _held(priced, move, t, scope)
        pieces = list(zip(priced.shape_columns[shape[low:high]].tolist(), site[low:high].tolist(), strict=True))
        order = _order(pieces, held)
        shape[low:high], site[low:high] = shape[low:high][order], site[low:high][order]
    result = Assignment(piece_shape=shape, piece_site=site)
    return result if moved_bytes(priced, result) < moved_bytes(priced, assignment) else assignment


def _at_home(priced: SolverProblem, move: MovePrice, assignment: Assignment) -> Bools:
    """Whether all pieces of a table are where they were, in that order, shape (T,)."""
    table, home = priced.shape_table[assignment.piece_shape], priced.shape_table[move.home_shape]
    count, home_count = (np.bincount(some, minlength=priced.num_tables) for some in (table, home))
    same: Bools = count == home_count
    here, there = same[table], same[home]
    moved = (assignment.piece_shape[here] != move.home_shape[there]) | (
        assignment.piece_site[here] != move.home_site[there]
    )
    same[table[here][moved]] = False
    return same


def _held(priced: SolverProblem, move: MovePrice, table: int, scope: int) -> dict[int, list[tuple[int, int]]]:
    """Return the columns of a table that each site held before."""
    held: dict[int, list[tuple[int, int]]] = {}
    low, high = np.searchsorted(move.shard_table, [table, table + 1])
    for rank, (begin, end) in zip(
        move.shard_rank[low:high].tolist(), move.shard_columns[low:high].tolist(), strict=True
    ):
        if rank < priced.num_ranks:
            held.setdefault(rank if scope == Scope.RANK else rank // priced.ranks_per_host, []).append((begin, end))
    return held


def _order(pieces: list[tuple[int, int]], held: dict[int, list[tuple[int, int]]]) -> list[int]:
    """Insert piece after piece, those that may find something first, each where most is found."""
    nowhere = 1 << 62
    begins = [min((begin for begin, _ in held.get(site, [])), default=nowhere) for _, site in pieces]
    by_begin = sorted(range(len(pieces)), key=lambda i: (begins[i], i))
    if len(pieces) > _MOST_TRIED:
        return by_begin
    order: list[int] = []
    for piece in by_begin:
        tried = [[*order[:place], piece, *order[place:]] for place in range(len(order), -1, -1)]
        order = max(tried, key=lambda one: _columns_found(one, pieces, held))
    return order


def _columns_found(order: list[int], pieces: list[tuple[int, int]], held: dict[int, list[tuple[int, int]]]) -> int:
    offset, found = 0, 0
    for index in order:
        columns, site = pieces[index]
        for begin, end in held.get(site, ()):
            found += max(0, min(offset + columns, end) - max(offset, begin))
        offset += columns
    return found
