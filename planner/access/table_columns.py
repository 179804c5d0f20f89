"""What every shard of a table shares: counts of one training step, or of a request that a host serves."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Codes, Floats, Ints
from planner.access.cache_misses import MissCurves
from planner.access.deduplicated_ids import DeduplicatedIds
from planner.access.distinct_rows import expected_distinct_rows
from planner.access.hot_rows import HotRowCurves
from planner.access.modified_rows import ModifiedRows, modified_rows
from planner.access.row_blocks import RowBlocks
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import Problem
from planner.solver.memo import memoized_on_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """What every shard of a table shares, one entry per table, shape (num_tables,)."""

    rows: Ints
    columns: Ints
    widest_columns: Ints  # of the tables that the same kernels look up
    data_type: Codes  # positions in DATA_TYPES
    optimizer_element_bytes: Floats
    optimizer_row_bytes: Floats
    batch_ids: Floats
    batch_outputs: Floats
    expected_outputs: Floats
    distinct_of_all_ranks: Floats
    distinct_of_one_rank: Floats
    is_weighted: Bools
    is_pooled: Bools
    is_trained: Bools
    row_blocks: RowBlocks
    hot_rows: HotRowCurves
    #: ids that a rank's batch has before repeated ones are left out; ``None`` where none are left out
    deduplicated: DeduplicatedIds | None
    modified: ModifiedRows | None  # rows that incremental checkpoints store; ``None`` without checkpoints


@memoized_on_problem
def table_columns(problem: Problem) -> TableColumns:
    """Count what each table does in one step; once per problem, since every plan of a search is scored."""
    tables, batch, world = problem.tables, problem.samples_per_rank, problem.world_size

    def floats(values: list[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    ids = np.array([[world * batch * t.ids_per_sample, batch * t.ids_per_sample] for t in tables])
    accesses, rows = tuple(t.access for t in tables), tuple(t.num_embeddings for t in tables)
    distinct = expected_distinct_rows(accesses, rows, ids)
    columns = np.array([t.embedding_dim for t in tables], dtype=np.int64)
    is_trained = np.array([t.optimizer.name != "none" for t in tables], dtype=np.bool_)
    modified = None
    if problem.checkpoint is not None:
        weights = problem.checkpoint.weight_bytes(
            as_held=floats([t.data_type.row_bytes(t.embedding_dim) for t in tables]),
            element_bytes=floats([t.data_type.element_bytes for t in tables]),
            columns=columns,
        )
        state = floats([t.optimizer.state_bytes(1, t.embedding_dim) for t in tables])
        modified = modified_rows(
            problem.checkpoint,
            accesses=accesses,
            num_rows=rows,
            lookups_per_step=ids[:, 0] * (problem.all_ranks.world_size / world),  # averages change rows of all groups
            is_trained=is_trained,
            row_bytes=weights + state,
        )
    misses = MissCurves(accesses=accesses, num_rows=rows, num_lookups=ids[:, 0], distinct_rows=distinct[:, 0])
    row_ids = tuple(t.ids for t in tables)
    outputs = floats([batch * t.outputs_per_sample for t in tables])
    is_weighted = np.array([t.is_weighted for t in tables], dtype=np.bool_)
    is_pooled = np.array([t.is_pooled for t in tables], dtype=np.bool_)
    deduplicated = None
    if problem.use_index_dedup:
        deduplicated = DeduplicatedIds.of(
            is_pooled=is_pooled,
            batch_ids=ids[:, 1],
            distinct_rows=distinct[:, 1],
            row_blocks=RowBlocks(
                ids=row_ids, accesses=accesses, num_rows=rows, num_lookups=ids[:, 1].copy(), misses=misses
            ),
        )
    return TableColumns(
        rows=np.array(rows, dtype=np.int64),
        columns=columns,
        widest_columns=_widest_columns(problem),
        data_type=np.array([data_type_code(t.data_type.name) for t in tables], dtype=np.int8),
        optimizer_element_bytes=floats([t.optimizer.element_bytes for t in tables]),
        optimizer_row_bytes=floats([t.optimizer.row_bytes for t in tables]),
        batch_ids=ids[:, 1].copy() if deduplicated is None else deduplicated.unique_ids,
        batch_outputs=outputs if deduplicated is None else deduplicated.rows_on_the_wire(outputs),
        expected_outputs=floats([batch * t.expected_outputs_per_sample for t in tables]),
        distinct_of_all_ranks=distinct[:, 0],
        distinct_of_one_rank=distinct[:, 1],
        is_weighted=is_weighted if deduplicated is None else is_weighted & ~deduplicated.is_deduplicated,
        is_pooled=is_pooled,
        is_trained=is_trained,
        row_blocks=RowBlocks(
            ids=row_ids, accesses=accesses, num_rows=rows, num_lookups=ids[:, 0].copy(), misses=misses
        ),
        hot_rows=HotRowCurves(accesses=accesses, num_rows=rows, num_lookups=ids[:, 0]),
        deduplicated=deduplicated,
        modified=modified,
    )


def _widest_columns(problem: Problem) -> Ints:
    """Columns of the widest table of each table's group, which one launch may look up.

    Groups have one module, pooling, optimizer and declared type, and weights for all ids or none. Reference: TorchRec
    1.8.0 ``distributed/embedding_sharding.py``, ``group_tables``.
    """
    groups = [
        (table.module_path, table.pooling, table.is_weighted, table.optimizer.name, table.data_type.name)
        for table in problem.tables
    ]
    return widest_of_groups(problem, groups)


def widest_of_groups(problem: Problem, groups: Sequence[Hashable]) -> Ints:
    """Return, for each table, the columns of the widest table of its group; ``groups`` has one entry per table."""
    widest: dict[Hashable, int] = {}
    for group, table in zip(groups, problem.tables, strict=True):
        widest[group] = max(widest.get(group, 0), table.embedding_dim)
    return np.array([widest[group] for group in groups], dtype=np.int64)


def data_type_code(name: str) -> int:
    """Return the position of a data type in ``DATA_TYPES``."""
    return tuple(DATA_TYPES).index(name)
