"""From tables and shards to columns of work: the only maker of :class:`ShardWork`.

Counts per training step, or per request that a host serves. With B samples per rank, W ranks, G ranks per host and a
table of ``ids`` per sample: a rank's batch holds B x ids; a shard that holds whole rows serves all
ranks (W x B x ids lookups), one of n row blocks an nth of that, a replica its own rank's. Of a request of N samples
a rank's batch is N / W: what is done for "all ranks' batches" is done once for the request.
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import ShardWork
from cost_models.sizes import DEFAULT_ELEMENT_BYTES, INFERENCE_ROW_ALIGNMENT_BYTES, id_bytes
from cost_models.vocabulary import Scheme, Tier
from planner.access import expected_distinct_rows
from planner.domain.data_type import DATA_TYPES
from planner.domain.problem import Problem
from planner.heat import HeatCurves
from planner.misses import MissCurves
from planner.modified import ModifiedRows, modified_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """What every shard of a table shares, one entry per table, shape (num_tables,)."""

    rows: Ints
    columns: Ints
    data_type: Codes  # positions in DATA_TYPES
    optimizer_element_bytes: Floats
    optimizer_row_bytes: Floats
    batch_ids: Floats
    batch_outputs: Floats
    expected_outputs: Floats
    distinct_of_all_ranks: Floats
    distinct_of_one_rank: Floats
    is_weighted: NDArray[np.bool_]
    is_pooled: NDArray[np.bool_]
    is_trained: NDArray[np.bool_]
    misses: MissCurves
    heat: HeatCurves
    modified: ModifiedRows | None  # rows that incremental checkpoints store; ``None`` without checkpoints


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
    tables, batch, world = problem.tables, problem.samples_per_rank, problem.world_size

    def floats(values: list[float]) -> Floats:
        return np.array(values, dtype=np.float64)

    ids = np.array([[world * batch * t.ids_per_sample, batch * t.ids_per_sample] for t in tables])
    accesses, rows = [t.access for t in tables], [t.num_embeddings for t in tables]
    distinct = expected_distinct_rows(accesses, rows, ids)
    return TableColumns(
        rows=np.array(rows, dtype=np.int64),
        columns=np.array([t.embedding_dim for t in tables], dtype=np.int64),
        data_type=np.array([data_type_code(t.data_type.name) for t in tables], dtype=np.int8),
        optimizer_element_bytes=floats([t.optimizer.element_bytes for t in tables]),
        optimizer_row_bytes=floats([t.optimizer.row_bytes for t in tables]),
        batch_ids=floats([batch * t.ids_per_sample for t in tables]),
        batch_outputs=floats([batch * t.outputs_per_sample for t in tables]),
        expected_outputs=floats([batch * t.expected_outputs_per_sample for t in tables]),
        distinct_of_all_ranks=distinct[:, 0],
        distinct_of_one_rank=distinct[:, 1],
        is_weighted=np.array([t.is_weighted for t in tables], dtype=np.bool_),
        is_pooled=np.array([t.is_pooled for t in tables], dtype=np.bool_),
        is_trained=np.array([t.optimizer.name != "none" for t in tables], dtype=np.bool_),
        misses=MissCurves(
            accesses=tuple(accesses), num_rows=tuple(rows), num_lookups=ids[:, 0], distinct_rows=distinct[:, 0]
        ),
        heat=HeatCurves(accesses=tuple(accesses), num_rows=tuple(rows), num_lookups=ids[:, 0]),
        modified=_modified(problem, ids[:, 0]),
    )


def _modified(problem: Problem, ids_of_step: Floats) -> ModifiedRows | None:
    if problem.checkpoint is None:
        return None
    tables = problem.tables
    weights = problem.checkpoint.weight_bytes(
        as_held=np.array([t.data_type.row_bytes(t.embedding_dim) for t in tables], dtype=np.float64),
        element_bytes=np.array([t.data_type.element_bytes for t in tables], dtype=np.float64),
        columns=np.array([t.embedding_dim for t in tables], dtype=np.int64),
    )
    state = np.array([t.optimizer.state_bytes(1, t.embedding_dim) for t in tables], dtype=np.float64)
    return modified_rows(
        problem.checkpoint,
        accesses=[t.access for t in tables],
        num_rows=[t.num_embeddings for t in tables],
        lookups_per_step=ids_of_step,
        is_trained=np.array([t.optimizer.name != "none" for t in tables], dtype=np.bool_),
        row_bytes=weights + state,
    )


def data_type_code(name: str) -> int:
    """Return the position of a data type in ``DATA_TYPES``."""
    return tuple(DATA_TYPES).index(name)


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
    cache_load_factor: Floats | None = None,
    data_type: Codes | None = None,
    hot_row_share: Floats | None = None,
    in_scm: Bools | None = None,
) -> ShardWork:
    """Return the work of shards that are given by table, scheme, kernel and width.

    ``cache_load_factor`` is NaN where a kernel has no cache, and ``data_type`` holds positions in ``DATA_TYPES``;
    without them no shard has a cache, and each has the type of its table. ``hot_row_share`` is 0 where a table
    is not split by heat; ``in_scm`` says whether rows of the host lie in storage-class memory. A cache of a row block
    holds the same share of its rows as all blocks together.

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
    cached = np.full(table.shape, np.nan) if cache_load_factor is None else cache_load_factor
    stored = columns.data_type[table] if data_type is None else data_type
    hot_rows = np.zeros(table.shape) if hot_row_share is None else hot_row_share
    hot_lookups, hot_distinct = columns.heat.at(table, hot_rows)
    return ShardWork(
        num_ranks=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        prefetches=problem.pipeline == "train_prefetch_sparse_dist",
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
        element_bytes=np.array([one.element_bytes for one in DATA_TYPES.values()], dtype=np.float64)[stored],
        row_alignment_bytes=_row_alignment_bytes(problem, stored),
        row_overhead_bytes=np.array([one.row_overhead_bytes for one in DATA_TYPES.values()], dtype=np.float64)[stored],
        optimizer_element_bytes=columns.optimizer_element_bytes[table],
        optimizer_row_bytes=columns.optimizer_row_bytes[table],
        batch_ids=columns.batch_ids[table],
        batch_outputs=columns.batch_outputs[table],
        expected_outputs=columns.expected_outputs[table],
        lookups=lookups,
        distinct_rows=np.minimum(distinct, np.minimum(lookups, shard_rows.astype(np.float64))),
        cache_load_factor=cached,
        missed_share=columns.misses.at(table, cached),
        hot_lookup_share=hot_lookups,
        hot_distinct_share=hot_distinct,
        hot_row_share=hot_rows,
        in_scm=np.zeros(table.shape, dtype=np.bool_) if in_scm is None else in_scm,
        is_weighted=columns.is_weighted[table],
        is_pooled=columns.is_pooled[table],
        is_trained=columns.is_trained[table],
        output_element_bytes=_element_bytes(problem.output_dtype, table),
        forward_comm_element_bytes=_element_bytes(problem.forward_comm_dtype, table),
        backward_comm_element_bytes=_element_bytes(problem.backward_comm_dtype, table),
    )


def _row_alignment_bytes(problem: Problem, stored: Codes) -> Floats:
    """Return what stored rows are padded to: of inference kernels in accelerator memory 16 bytes, else nothing."""
    inference = np.array([problem.serving is not None or not one.trainable for one in DATA_TYPES.values()])[stored]
    return np.where(inference & (problem.cluster.device_tier is Tier.HBM), INFERENCE_ROW_ALIGNMENT_BYTES, 1.0)


def _element_bytes(data_type: str | None, table: Ints) -> Floats:
    return np.full(table.shape, np.nan if data_type is None else DATA_TYPES[data_type].element_bytes)


def _message_bytes(columns: TableColumns, data_type: str | None) -> float:
    """Bytes of one local batch's output rows of all tables in the type of one direction."""
    element = DEFAULT_ELEMENT_BYTES if data_type is None else DATA_TYPES[data_type].element_bytes
    return float(np.sum(columns.batch_outputs * columns.columns)) * element
