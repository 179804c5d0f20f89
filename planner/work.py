"""From tables and shards to columns of work: the only maker of :class:`ShardWork`.

Counts per training step. With B samples per rank, W ranks, G ranks per host and a table of
``ids`` per sample: a rank's batch holds B x ids; a shard that holds whole rows serves all
ranks (W x B x ids lookups), one of n row blocks an nth of that, a replica its own rank's.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import ShardWork
from cost_models.sizes import DEFAULT_ELEMENT_BYTES, id_bytes
from cost_models.vocabulary import Scheme
from planner.access import expected_distinct_rows
from planner.domain.data_type import DATA_TYPES
from planner.domain.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """What every shard of a table shares, one entry per table, shape (num_tables,)."""

    rows: Ints
    columns: Ints
    element_bytes: Floats
    row_overhead_bytes: Floats
    optimizer_element_bytes: Floats
    optimizer_row_bytes: Floats
    batch_ids: Floats
    batch_outputs: Floats
    expected_outputs: Floats
    distinct_of_all_ranks: Floats
    distinct_of_one_rank: Floats
    is_weighted: NDArray[np.bool_]
    is_pooled: NDArray[np.bool_]


def table_columns(problem: Problem) -> TableColumns:
    """Count what each table does in one step; once per problem, since every plan of a search is scored."""
    return _columns_of(_Same(problem))


class _Same:
    """A problem that equals itself alone: hashing thousands of tables takes longer than it spares."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.problem is self.problem

    def __hash__(self) -> int:
        return id(self.problem)


@functools.lru_cache(maxsize=2)
def _columns_of(same: _Same) -> TableColumns:
    problem = same.problem
    tables, batch, world = problem.tables, problem.batch_size_per_rank, problem.world_size

    def floats(values: list[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    lookups = np.array([[world * batch * t.ids_per_sample, batch * t.ids_per_sample] for t in tables])
    distinct = expected_distinct_rows([t.access for t in tables], [t.num_embeddings for t in tables], lookups)
    return TableColumns(
        rows=np.array([t.num_embeddings for t in tables], dtype=np.int64),
        columns=np.array([t.embedding_dim for t in tables], dtype=np.int64),
        element_bytes=floats([t.data_type.element_bytes for t in tables]),
        row_overhead_bytes=floats([t.data_type.row_overhead_bytes for t in tables]),
        optimizer_element_bytes=floats([t.optimizer.element_bytes for t in tables]),
        optimizer_row_bytes=floats([t.optimizer.row_bytes for t in tables]),
        batch_ids=floats([batch * t.ids_per_sample for t in tables]),
        batch_outputs=floats([batch * t.outputs_per_sample for t in tables]),
        expected_outputs=floats([batch * t.expected_outputs_per_sample for t in tables]),
        distinct_of_all_ranks=distinct[:, 0],
        distinct_of_one_rank=distinct[:, 1],
        is_weighted=np.array([t.is_weighted for t in tables], dtype=np.bool_),
        is_pooled=np.array([t.is_pooled for t in tables], dtype=np.bool_),
    )


def row_shards(scheme: Codes, world_size: int, ranks_per_host: int) -> Ints:
    """Return how many ranks share the rows of a shard's column range, by scheme."""
    by_scheme = np.ones(len(Scheme), dtype=np.int64)
    by_scheme[Scheme.ROW_WISE] = world_size
    by_scheme[Scheme.TABLE_ROW_WISE] = ranks_per_host
    by_scheme[Scheme.GRID_SHARD] = ranks_per_host
    return by_scheme[scheme]


def build_work(
    problem: Problem,
    columns: TableColumns,
    *,
    table: Ints,
    scheme: Codes,
    kernel: Codes,
    shard_columns: Ints,
) -> ShardWork:
    """Return the work of shards that are given by table, scheme, kernel and width.

    Row blocks are priced as full blocks (``ceil(rows / n)``), also the last, shorter one:
    a plan's time does not depend on which rank holds it.
    """
    cluster = problem.cluster
    split = row_shards(scheme, cluster.world_size, cluster.ranks_per_host)
    replicated = scheme == Scheme.DATA_PARALLEL
    ids_of_all = columns.batch_ids[table] * cluster.world_size
    lookups = np.where(replicated, columns.batch_ids[table], ids_of_all / split)
    distinct = np.where(replicated, columns.distinct_of_one_rank[table], columns.distinct_of_all_ranks[table] / split)
    shard_rows = -(-columns.rows[table] // split)
    return ShardWork(
        num_ranks=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        forward_message_bytes=_message_bytes(columns, problem.forward_comm_dtype),
        backward_message_bytes=_message_bytes(columns, problem.backward_comm_dtype),
        id_message_bytes=float(np.sum(columns.batch_ids * id_bytes(columns.is_weighted))),
        scheme=scheme,
        kernel=kernel,
        table_rows=columns.rows[table],
        table_columns=columns.columns[table],
        shard_rows=shard_rows,
        shard_columns=shard_columns,
        row_shards=split,
        element_bytes=columns.element_bytes[table],
        row_overhead_bytes=columns.row_overhead_bytes[table],
        optimizer_element_bytes=columns.optimizer_element_bytes[table],
        optimizer_row_bytes=columns.optimizer_row_bytes[table],
        batch_ids=columns.batch_ids[table],
        batch_outputs=columns.batch_outputs[table],
        expected_outputs=columns.expected_outputs[table],
        lookups=lookups,
        distinct_rows=np.minimum(distinct, np.minimum(lookups, shard_rows.astype(np.float64))),
        is_weighted=columns.is_weighted[table],
        is_pooled=columns.is_pooled[table],
        output_element_bytes=_element_bytes(problem.output_dtype, table),
        forward_comm_element_bytes=_element_bytes(problem.forward_comm_dtype, table),
        backward_comm_element_bytes=_element_bytes(problem.backward_comm_dtype, table),
    )


def _element_bytes(data_type: str | None, table: Ints) -> Floats:
    return np.full(table.shape, np.nan if data_type is None else DATA_TYPES[data_type].element_bytes)


def _message_bytes(columns: TableColumns, data_type: str | None) -> float:
    """Bytes of one local batch's output rows of all tables in the type of one direction."""
    element = DEFAULT_ELEMENT_BYTES if data_type is None else DATA_TYPES[data_type].element_bytes
    return float(np.sum(columns.batch_outputs * columns.columns)) * element
