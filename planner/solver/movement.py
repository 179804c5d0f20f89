"""The bytes that an assignment moves from a plan that runs already: arrays in, numbers out."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.problem import Assignment, MovePrice, Scope, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPieces:
    """What lies on single ranks: N rectangles of tables."""

    table: Ints  # (N,)
    rank: Ints  # (N,)
    rows: Ints  # (N, 2) first row and one past the last
    columns: Ints  # (N, 2)


def moved_bytes(priced: SolverProblem, assignment: Assignment) -> float:
    """Return the bytes of cells that lie on no rank where they go; 0 where nothing runs yet.

    The pieces of a table lie from left to right in their order.
    """
    if priced.move is None:
        return 0.0
    shape, site = assignment.piece_shape, assignment.piece_site
    table, scope = priced.shape_table[shape], priced.shape_scope[shape]
    columns = _columns(priced, shape)
    moved = np.zeros(priced.num_tables)  # cells; whole numbers, so that what stays costs nothing
    for kind, parts in ((Scope.RANK, 1), (Scope.HOST, priced.ranks_per_host)):
        on = np.flatnonzero(scope == kind)
        pieces = row_blocks(priced, table[on], site[on] * parts, columns[on], parts)
        cells = _areas(pieces.rows, pieces.columns) - found_cells(priced.move, pieces)
        np.add.at(moved, pieces.table, cells)
    families = np.unique(priced.shape_family[shape[scope == Scope.WORLD]])
    moved[priced.family_table[families]] += priced.move.family_moved_cells[families]
    return float(np.sum(moved * priced.move.cell_bytes))


def world_moved_cells(priced: SolverProblem) -> Floats:
    """Return ``family_moved_cells`` of a move price, shape (F,); 0 for families that lie on single ranks or hosts."""
    assert priced.move is not None
    moved = np.zeros(priced.num_families)
    every = priced.num_ranks
    for replicated in (False, True):
        is_kind = priced.move.family_replicated == replicated
        chosen = np.flatnonzero((priced.family_scope == Scope.WORLD) & is_kind)
        table = priced.family_table[chosen]
        columns = np.stack([np.zeros_like(table), priced.table_columns[table]], axis=1)
        blocks = row_blocks(priced, table, np.zeros_like(table), columns, every, replicated=replicated)
        cells = _areas(blocks.rows, blocks.columns) - found_cells(priced.move, blocks)
        moved[chosen] = cells.reshape(len(chosen), every).sum(axis=1)
    return moved


def row_blocks(
    priced: SolverProblem, table: Ints, first_rank: Ints, columns: Ints, parts: int, *, replicated: bool = False
) -> RankPieces:
    """Return the equal row blocks, or copies, of pieces on ``parts`` ranks each, piece by piece."""
    assert priced.move is not None
    rows = np.repeat(priced.move.table_rows[table], parts)
    part = np.tile(np.arange(parts), len(table))
    block = rows if replicated else -(-rows // parts)
    first = np.zeros_like(rows) if replicated else np.minimum(part * block, rows)
    return RankPieces(
        table=np.repeat(table, parts),
        rank=np.repeat(first_rank, parts) + part,
        rows=np.stack([first, np.minimum(first + block, rows)], axis=1),
        columns=np.repeat(columns, parts, axis=0),
    )


def found_cells(move: MovePrice, pieces: RankPieces) -> Floats:
    """Return how many cells of each piece its rank holds already, shape (N,)."""
    ranks = 1 + max(int(pieces.rank.max(initial=0)), int(move.shard_rank.max(initial=0)))
    held = move.shard_table * ranks + move.shard_rank
    wanted = pieces.table * ranks + pieces.rank
    first, last = np.searchsorted(held, wanted), np.searchsorted(held, wanted, side="right")
    found = np.zeros(len(wanted))
    for further in range(int(np.max(last - first, initial=0))):
        has = np.flatnonzero(first + further < last)
        shard = first[has] + further
        rows, columns = move.shard_rows[shard], move.shard_columns[shard]
        found[has] += _areas(_common(pieces.rows[has], rows), _common(pieces.columns[has], columns))
    return found


def _columns(priced: SolverProblem, shape: Ints) -> Ints:
    """Return the first column of each piece and one past its last, shape (N, 2)."""
    table, columns = priced.shape_table[shape], priced.shape_columns[shape]
    last = np.cumsum(columns)
    last = last - (last - columns)[np.searchsorted(table, table)]  # from the first piece of the table on
    return np.stack([last - columns, last], axis=1)


def _common(some: Ints, others: Ints) -> Ints:
    low = np.maximum(some[:, 0], others[:, 0])
    return np.stack([low, np.maximum(low, np.minimum(some[:, 1], others[:, 1]))], axis=1)


def _areas(rows: Ints, columns: Ints) -> Floats:
    height, width = rows[:, 1] - rows[:, 0], columns[:, 1] - columns[:, 0]
    return height.astype(np.float64) * width
