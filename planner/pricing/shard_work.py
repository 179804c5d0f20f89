"""From tables and shards to columns of work: the only maker of :class:`ShardWork`.

Counts per training step, or per request that a host serves. With B samples per rank, W ranks and a
table of ``ids`` per sample: a rank's batch holds B x ids; a shard that holds whole rows serves all
ranks (W x B x ids lookups), one of n row blocks its share of that, a replica its own rank's. Of a request of N samples
a rank's batch is N / W: what is done for "all ranks' batches" is done once for the request. Replicas share whole
samples, so that the slowest card does ceil(N / W) of them.
"""

import math

import numpy as np

from cost_models.analytic.sizes import DEFAULT_ELEMENT_BYTES, INFERENCE_ROW_ALIGNMENT_BYTES, id_bytes
from cost_models.arrays import Bools, Codes, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_REPLICATED, Scheme, Tier
from planner.access.table_columns import TableColumns
from planner.domain.problem.data_type import DATA_TYPES
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem
from planner.options.runtimes.registry import RUNTIMES
from planner.pricing.hash_tables.slot_columns import slot_columns


def row_shards(scheme: Codes, world_size: int, ranks_per_group: int) -> Ints:
    """Return how many ranks share the rows of a shard's column range, by scheme."""
    by_scheme = np.array([one.row_blocks(world_size, ranks_per_group) for one in Scheme], dtype=np.int64)
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

    Row blocks are priced as full blocks (``ceil(rows / n)``), also the last, shorter one, and all as the heaviest of
    them where some rows are looked up more than others (:mod:`planner.access.row_blocks`): searches have one price for
    all blocks of a piece, so that a rank's seconds are never less than those of its own block.
    """
    cluster = problem.cluster
    split = row_shards(scheme, cluster.world_size, cluster.ranks_per_group)
    replicated = IS_REPLICATED[scheme]
    of_batch = np.where(replicated, _replica_share(problem), 1.0)  # what a rank's share of a request becomes there
    ids_of_all = columns.batch_ids[table] * cluster.world_size
    cached = np.full(table.shape, np.nan) if cache_load_factor is None else cache_load_factor
    ranges = np.ones_like(split) if RUNTIMES[problem.runtime].has_modulo_rows else split
    lookup_parts, distinct_parts = (
        np.where(ranges > 1, parts, split) for parts in columns.row_blocks.heaviest(table, ranges)
    )
    if columns.deduplicated is not None:
        by_blocks = columns.deduplicated.with_heaviest(table, ranges, lookup_parts)
        lookup_parts = np.where(ranges > 1, by_blocks, split)
    lookups = np.where(replicated, columns.batch_ids[table] * of_batch, ids_of_all / lookup_parts)
    distinct = np.where(
        replicated, columns.distinct_of_one_rank[table], columns.distinct_of_all_ranks[table] / distinct_parts
    )
    shard_rows = -(-columns.rows[table] // split)
    stored = columns.data_type[table] if data_type is None else data_type
    hot_rows = np.zeros(table.shape) if hot_row_share is None else hot_row_share
    slots = slot_columns(problem)
    hot_lookups, hot_distinct = columns.hot_rows.at(table, hot_rows)
    return ShardWork(
        num_ranks=cluster.world_size,
        ranks_per_host=cluster.ranks_per_host,
        pod_size=cluster.pod_size,
        job=cluster.job,
        prefetches=problem.pipeline == PREFETCH_PIPELINE,
        forward_message_bytes=_message_bytes(columns, problem.forward_comm_dtype),
        backward_message_bytes=_message_bytes(columns, problem.backward_comm_dtype),
        id_message_bytes=float(np.sum(columns.batch_ids * id_bytes(columns.is_weighted))),
        scheme=scheme,
        kernel=kernel,
        table_rows=columns.rows[table],
        table_columns=columns.columns[table],
        shard_rows=shard_rows,
        shard_columns=shard_columns,
        launch_columns=shard_columns * columns.widest_columns[table] / columns.columns[table],
        row_shards=split,
        element_bytes=np.array([one.element_bytes for one in DATA_TYPES.values()], dtype=np.float64)[stored],
        row_alignment_bytes=_row_alignment_bytes(problem, stored),
        row_overhead_bytes=np.array([one.row_overhead_bytes for one in DATA_TYPES.values()], dtype=np.float64)[stored],
        optimizer_element_bytes=columns.optimizer_element_bytes[table],
        optimizer_row_bytes=columns.optimizer_row_bytes[table],
        batch_ids=columns.batch_ids[table] * of_batch,
        batch_outputs=columns.batch_outputs[table] * of_batch,
        expected_outputs=columns.expected_outputs[table] * of_batch,
        lookups=lookups,
        distinct_rows=np.minimum(distinct, np.minimum(lookups, shard_rows.astype(np.float64))),
        cache_load_factor=cached,
        missed_share=columns.row_blocks.missed(table, ranges, cached),
        hot_lookup_share=hot_lookups,
        hot_distinct_share=hot_distinct,
        hot_row_share=hot_rows,
        slot_lookup_bytes=slots.lookup_bytes[table],
        slot_upkeep_bytes=slots.upkeep_bytes_per_slot[table],
        slot_launches=slots.launches[table],
        in_scm=np.zeros(table.shape, dtype=np.bool_) if in_scm is None else in_scm,
        is_weighted=columns.is_weighted[table],
        is_pooled=columns.is_pooled[table],
        is_trained=columns.is_trained[table],
        output_element_bytes=_element_bytes(problem.output_dtype, table),
        forward_comm_element_bytes=_element_bytes(problem.forward_comm_dtype, table),
        backward_comm_element_bytes=_element_bytes(problem.backward_comm_dtype, table),
    )


def _replica_share(problem: Problem) -> float:
    """Return how many times its even share of a request the card does that has a replica: samples are whole."""
    if problem.serving is None:
        return 1.0
    return math.ceil(problem.samples_per_rank) / problem.samples_per_rank


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
