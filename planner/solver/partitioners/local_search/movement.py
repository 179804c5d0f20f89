"""What moves from a plan that runs already, as a search counts it: per place of an item.

A search counts columns, not which ones: a piece finds as many as its rank held before. Where the pieces of a table
can be put in an order so that each finds its own, that is exact
(:mod:`planner.solver.partitioners.local_search.piece_order` looks for that order); else it is less than what really
moves, and :mod:`planner.solver.movement` has the last word.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from planner.solver.movement import found_cells, row_blocks
from planner.solver.partitioners.local_search.items import Items
from planner.solver.problem import Scope, SolverProblem

Ints32 = NDArray[np.int32]
#: What moving costs, as one record.
MOVE_TERMS = np.dtype(
    [
        ("price_per_byte", np.float64),  # seconds
        ("max_bytes", np.float64),  # that may move
        ("overflow_unit_bytes", np.float64),  # bytes beyond it that count as one rank's overflow
    ]
)


class MovingItems(NamedTuple):
    """The arrays of :class:`planner.solver.partitioners.local_search.search_data.Data` that say what moves."""

    columns_before: Ints32
    column_bytes: Floats
    shape_item: Ints
    shape_moved: Floats
    move: NDArray[np.void]  # (1,) of MOVE_TERMS


def moving_items(priced: SolverProblem, items: Items) -> MovingItems:
    """Count what pieces find where."""
    if priced.move is None:
        nothing = np.zeros((0, 0))
        endless = np.array([(0.0, np.inf, 1.0)], dtype=MOVE_TERMS)
        return MovingItems(nothing.astype(np.int32), nothing, np.zeros(0, dtype=np.int64), np.zeros(0), endless)
    move = priced.move
    item_of = np.zeros(priced.num_tables, dtype=np.int64)
    for item, tables in enumerate(items.tables):
        item_of[list(tables)] = item
    shape_item = item_of[priced.shape_table[items.leader]]
    columns, cells = _found(priced)
    found_bytes = cells * move.cell_bytes[:, None]
    before = np.zeros((len(items.tables), columns.shape[1]), dtype=np.int32)
    column_bytes = np.zeros(before.shape)
    for item, tables in enumerate(items.tables):
        if len(tables) == 1:
            before[item] = columns[tables[0]]
            column_bytes[item] = found_bytes[tables[0]] / np.maximum(before[item], 1)
        else:  # whole tables on one rank: all of the leader's columns stand for whatever the tables find
            before[item] = priced.table_columns[tables[0]]
            column_bytes[item] = found_bytes[list(tables)].sum(axis=0) / before[item]
    all_cells = priced.shape_columns * move.table_rows[priced.shape_table]
    table_shape_moved = all_cells * move.cell_bytes[priced.shape_table]
    shape_moved = np.add.reduceat(table_shape_moved[items.member_shape], items.shape_member[:-1])
    shape_family = np.repeat(items.family_source, np.diff(items.family_shape))
    on_all = np.flatnonzero(priced.family_scope[shape_family] == Scope.WORLD)
    per_column = move.family_moved_cells / priced.table_columns[priced.family_table]
    shape = items.leader[on_all]
    bytes_of_cell = move.cell_bytes[priced.shape_table[shape]]
    shape_moved[on_all] = per_column[shape_family[on_all]] * priced.shape_columns[shape] * bytes_of_cell
    total = float(np.sum(move.cell_bytes * move.table_rows * priced.table_columns))
    terms = np.array([(move.seconds_per_byte, move.max_bytes, max(total, 1.0))], dtype=MOVE_TERMS)
    return MovingItems(before, column_bytes, shape_item, shape_moved, terms)


def _found(priced: SolverProblem) -> tuple[Ints, Floats]:
    """Return columns and cells that a whole table would find on each rank, then on each host, (T, R + H)."""
    assert priced.move is not None
    move, ranks, hosts = priced.move, priced.num_ranks, priced.num_hosts
    here = move.shard_rank < ranks
    shard_columns = move.shard_columns[:, 1] - move.shard_columns[:, 0]
    columns = np.zeros((priced.num_tables, ranks + hosts), dtype=np.int64)
    cells = np.zeros(columns.shape)
    height = (move.shard_rows[:, 1] - move.shard_rows[:, 0]).astype(np.float64)
    at = (move.shard_table[here], move.shard_rank[here])
    np.add.at(columns, at, shard_columns[here])
    np.add.at(cells, at, (height * shard_columns)[here])
    table = np.unique(move.shard_table)
    whole = np.stack([np.zeros_like(table), priced.table_columns[table]], axis=1)
    for host in range(hosts):
        blocks = row_blocks(priced, table, np.full_like(table, host * priced.ranks_per_host), whole, ranks // hosts)
        on_host = found_cells(move, blocks).reshape(len(table), ranks // hosts)
        cells[table, ranks + host] = on_host.sum(axis=1)
        first = host * priced.ranks_per_host
        columns[table, ranks + host] = columns[table, first : first + priced.ranks_per_host].max(axis=1)
    return np.minimum(columns, priced.table_columns[:, None]), cells
