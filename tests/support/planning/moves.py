"""Plans that run already, for tests of what moves: cells counted one by one."""

import math
from dataclasses import replace

import numpy as np

from planner.domain.plan.placement import Placement
from planner.solver.movement import world_moved_cells
from planner.solver.problem import Assignment, MovePrice, Scope, SolverProblem

ROWS = 6  # of every table of ``with_move``
Cells = set[tuple[int, int, int, int]]  # table, rank, row, column


def cells_of(priced: SolverProblem, assignment: Assignment, replicated: np.ndarray) -> Cells:
    """Every cell that lies on some rank."""
    found: Cells = set()
    offset = dict.fromkeys(range(priced.num_tables), 0)
    for shape, site in zip(assignment.piece_shape.tolist(), assignment.piece_site.tolist(), strict=True):
        table, columns = int(priced.shape_table[shape]), int(priced.shape_columns[shape])
        scope, copies = priced.shape_scope[shape], bool(replicated[priced.shape_family[shape]])
        local = priced.ranks_per_host
        ranks = {
            Scope.RANK: [site],
            Scope.HOST: list(range(site * local, (site + 1) * local)),
            Scope.WORLD: list(range(priced.num_ranks)),
        }[Scope(int(scope))]
        block = ROWS if copies else -(-ROWS // len(ranks))
        for part, rank in enumerate(ranks):
            rows = range(ROWS) if copies else range(min(part * block, ROWS), min((part + 1) * block, ROWS))
            for row in rows:
                found |= {(table, rank, row, offset[table] + column) for column in range(columns)}
        offset[table] += columns
    return found


def with_move(priced: SolverProblem, before: Assignment, **changes: object) -> SolverProblem:
    """The same problem where ``before`` runs already; every second all-rank family of a table is copies."""
    replicated = (priced.family_scope == Scope.WORLD) & (np.arange(priced.num_families) % 2 == 1)
    shards: dict[tuple[int, int, int], list[int]] = {}  # table, rank and column: rows
    for table, rank, row, column in sorted(cells_of(priced, before, replicated)):
        shards.setdefault((table, rank, column), []).append(row)
    found = np.array(
        [(table, rank, min(rows), max(rows) + 1, column, column + 1) for (table, rank, column), rows in shards.items()]
    )
    move = MovePrice(
        seconds_per_byte=0.0,
        any_seconds=0.0,
        max_bytes=math.inf,
        cell_bytes=1.0 + np.arange(priced.num_tables),
        table_rows=np.full(priced.num_tables, ROWS),
        shard_table=found[:, 0].copy(),
        shard_rank=found[:, 1].copy(),
        shard_rows=found[:, 2:4].copy(),
        shard_columns=found[:, 4:6].copy(),
        family_replicated=replicated,
        family_in_use=np.zeros(priced.num_families, dtype=np.bool_),
        family_moved_cells=np.zeros(priced.num_families),
        home_shape=before.piece_shape.copy(),
        home_site=before.piece_site.copy(),
    )
    moved_cells = world_moved_cells(replace(priced, move=move))
    return replace(priced, move=replace(move, family_moved_cells=moved_cells, **changes))


def counted(priced: SolverProblem, before: Assignment, after: Assignment) -> float:
    """Bytes of the cells that lie on no rank where they go."""
    assert priced.move is not None
    lacking = cells_of(priced, after, priced.move.family_replicated) - cells_of(
        priced, before, priced.move.family_replicated
    )
    return float(sum(priced.move.cell_bytes[table] for table, _, _, _ in lacking))


def placed_cells(placement: Placement) -> set[tuple[str, int, int, int]]:
    """Every cell of a placement: table, rank, row, column."""
    return {
        (table.name, shard.rank, row, column)
        for table in placement.tables
        for shard in table.shards
        for row in range(shard.row_offset, shard.row_offset + shard.num_rows)
        for column in range(shard.column_offset, shard.column_offset + shard.num_columns)
    }
