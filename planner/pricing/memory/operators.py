"""FBGEMM operators of a placement, and the bytes of their caches: what TorchRec builds of a rank's shards.

TorchRec makes one operator of all shards of a rank that agree in module, scheme, kernel, data type, pooling, weights of
ids and optimizer (``group_tables``). An operator has one cache for all of its cached tables:

- ``fused_uvm_caching``: ``S = max(1, ceil(floor(share x rows) / 32))`` sets of 32 slots, each as wide as the widest
  cached shard, where ``rows`` are those of all cached shards, and ``share`` is the mean of the tables' cached shares,
  weighted by the rows of whole tables. Next to the slots lie 4 bytes per row (which table it belongs to), 16 bytes per
  slot (tag, and time of last use), and 4 more per slot if a pipeline fetches rows ahead (locks).
- ``key_value``: ``S = max(1, min(floor(share x block / 32), floor(0.2 x rows / 32)))`` sets, without the bytes per row.
  The launcher states the first number, of one table's full row block, as ``max_l1_cache_size``, which bounds the cache
  of the whole operator. TorchRec compares it: tables of one operator have the same. Host memory holds two buffers of
  evicted rows as large as the cache, 12 bytes per slot and buffer, and RocksDB's write buffers.

While rows are fetched ahead, and for ``key_value`` always, TorchRec itself keeps shards of other row widths apart. Else
the plan does: tables whose caches must not be shared have different ``cache_reserved_bytes``, which TorchRec compares
when it groups tables (:meth:`planner.options.runtimes.base.Runtime.cache_reserved_bytes`).

Runtimes that share no operators have a cache for each table, rank and width of pieces; a ``key_value`` piece has its
own.

References
----------
FBGEMM 1.8.0 ``split_table_batched_embeddings_ops_training._apply_cache_state``, ``construct_cache_state`` and
``tbe/ssd/training.SSDTableBatchedEmbeddingBags``; TorchRec 1.8.0 ``embedding_sharding.group_tables``,
``_get_weighted_avg_cache_load_factor`` and ``batched_embedding_kernel._populate_ssd_tbe_params``. The tests build
these operators on PyTorch's meta device and compare every byte.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import row_bytes
from cost_models.arrays import Bools, Codes, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_CACHED, IS_HASHED, Kernel
from planner.access.table_columns import widest_of_groups
from planner.domain.problem.optimizer import OPTIMIZERS
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import POOLINGS
from planner.options.runtimes.registry import RUNTIMES
from planner.options.runtimes.torchrec.rules import MAX_KEY_VALUE_SHARE

SLOTS_PER_SET = 32  # FBGEMM ``DEFAULT_ASSOC`` and ``ASSOC``
INDEX_BYTES_PER_ROW = 4.0  # int32 table of every row
TAG_BYTES_PER_SLOT = 16.0  # int64 row and int64 time of last use
LOCK_BYTES_PER_SLOT = 4.0  # int32 count of batches that need the row
EVICTED_BYTES_PER_SLOT = 12.0  # int64 row and int32 slot
EVICTION_BUFFERS = 2
EVICTED_COUNT_BYTES = 4.0  # int32, of each buffer
#: RocksDB's memory tables of one operator (FBGEMM ``ssd_rocksdb_write_buffer_size``, TorchRec's default).
WRITE_BUFFER_BYTES = float(2 * 1024**3)


#: Lines of the ledger that caches take, and the bytes of each, entry by entry: of shards, or of operators.
CACHE_LINES = ("cache", "cache_index", "eviction_buffers", "write_buffers")
CacheBytes = dict[str, Floats]


def shard_cache_bytes(problem: Problem, work: ShardWork, *, table: Ints, stored_rows: Ints) -> CacheBytes:
    """Return the bytes of each shard's cache as if it were alone in its operator; ``stored_rows`` are those it holds.

    An operator whose shards have one width and one share never takes more than its shards do here, since each takes
    whole sets.
    """
    share = np.nan_to_num(work.cache_load_factor, nan=0.0)
    is_cached = _is_cached(work.kernel)
    sets = np.where(
        work.kernel == Kernel.KEY_VALUE,
        _key_value_sets(share, work.shard_rows, stored_rows),
        np.ceil(stored_rows * share / SLOTS_PER_SET),
    )
    slots = np.where(is_cached, np.maximum(sets, 1) * SLOTS_PER_SET, 0.0)
    return _cache_bytes(
        problem, work, slots, row_bytes(work, _slot_columns(problem, work, table)), stored_rows * is_cached
    )


def _is_cached(kernel: Codes) -> Bools:
    """Which kernels have a cache of FBGEMM's; those of hash tables: :mod:`planner.pricing.hash_tables.dynamicemb`."""
    cached: Bools = IS_CACHED[kernel] & ~IS_HASHED[kernel]
    return cached


def _slot_columns(problem: Problem, work: ShardWork, table: Ints) -> Ints:
    """Return the columns of a slot: a shard's own, or those of its module's widest table if widths share a cache."""
    if not RUNTIMES[problem.runtime].widths_share_caches(problem):
        return work.shard_columns
    of_table = widest_of_groups(problem, [(one.module_path, one.pooling, one.is_weighted) for one in problem.tables])
    return np.where(work.kernel == Kernel.FUSED_UVM_CACHING, of_table[table], work.shard_columns)


def _key_value_sets(share: Floats, block_rows: Floats | Ints, stored_rows: Floats | Ints) -> Floats:
    """Return the sets of ``key_value`` caches; ``block_rows`` are those of one table's full row block.

    TorchRec gives an operator ``MAX_KEY_VALUE_SHARE`` of its rows, and at most the bytes that a plan allows a table of
    it (``max_l1_cache_size``).
    """
    most = np.floor(np.maximum(share, MAX_KEY_VALUE_SHARE) * stored_rows / SLOTS_PER_SET)
    sets: Floats = np.minimum(_allowed_sets(share, block_rows), most)
    return sets


def _allowed_sets(share: Floats, block_rows: Floats | Ints) -> Floats:
    """Return the sets that the launcher's ``max_l1_cache_size`` of a table has room for."""
    sets: Floats = np.maximum(np.floor(share * block_rows / SLOTS_PER_SET), 1.0)
    return sets


def _cache_bytes(
    problem: Problem, work: ShardWork, slots: Floats, slot_bytes: Floats, rows: Floats | Ints
) -> CacheBytes:
    is_stored = work.kernel == Kernel.KEY_VALUE
    is_buffered = is_stored & RUNTIMES[problem.runtime].shares_operators  # by FBGEMM; of others nothing is known
    per_slot = TAG_BYTES_PER_SLOT + (LOCK_BYTES_PER_SLOT if work.prefetches else 0.0)
    evicted = EVICTION_BUFFERS * (slots * (slot_bytes + EVICTED_BYTES_PER_SLOT) + EVICTED_COUNT_BYTES)
    return {
        "cache": slots * slot_bytes,
        "cache_index": slots * per_slot + np.where(is_stored, 0.0, rows * INDEX_BYTES_PER_ROW),
        "eviction_buffers": np.where(is_buffered, evicted, 0.0),
        "write_buffers": np.where(is_buffered, WRITE_BUFFER_BYTES, 0.0),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCaches:
    """The cached shards of a placement, one entry each, and what of its operator's cache falls to each."""

    shard: Ints  # position among all shards
    bytes: CacheBytes


def placed_cache_bytes(
    problem: Problem,
    work: ShardWork,
    *,
    table: Ints,
    stored_rows: Ints,
    reserved_bytes: Floats,
    kind: Ints,
    rank: Ints,
) -> PlacedCaches:
    """Return the bytes of every operator's cache, shared out to its shards by their slots, in whole bytes.

    ``work``, ``table``, ``stored_rows`` and ``reserved_bytes`` (NaN if not stated) have an entry per kind of shard,
    ``kind`` and ``rank`` one per shard. Tables that do not share operators have a cache for each width of their pieces.
    """
    shard = np.flatnonzero(_is_cached(work.kernel[kind]))
    kind, rank = kind[shard], rank[shard]
    operator = _operators(problem, work, table, reserved_bytes, kind, rank)
    count = int(operator.max(initial=-1)) + 1
    first = np.unique(operator, return_index=True)[1]
    one = work.take(kind[first])  # a shard of each operator
    rows, whole = (
        np.bincount(operator, weights=column[kind].astype(np.float64), minlength=count)
        for column in (stored_rows, work.table_rows)
    )
    blocks: Floats | Ints = one.shard_rows
    if not RUNTIMES[problem.runtime].shares_operators:  # pieces of one width have one cache, of their rows together
        blocks = np.bincount(operator, weights=work.shard_rows[kind].astype(np.float64), minlength=count)
    shares = np.nan_to_num(work.cache_load_factor[kind], nan=0.0)  # a plan from anywhere may lack one
    share = np.bincount(operator, weights=shares * work.table_rows[kind], minlength=count) / whole
    columns = np.zeros(count)
    np.maximum.at(columns, operator, work.shard_columns[kind].astype(np.float64))
    sets = np.where(
        one.kernel == Kernel.KEY_VALUE,
        _key_value_sets(shares[first], blocks, rows),
        (np.floor(rows * share) + SLOTS_PER_SET - 1) // SLOTS_PER_SET,
    )
    slots = np.maximum(sets, 1) * SLOTS_PER_SET
    held = _cache_bytes(problem, one, slots, row_bytes(one, columns), rows)
    weight = np.maximum(shares, np.finfo(np.float64).tiny) * stored_rows[kind]
    part: Floats = weight / np.bincount(operator, weights=weight, minlength=count)[operator]
    return PlacedCaches(
        shard=shard,
        bytes={line: _shared_out(total, part, operator, first) for line, total in held.items()},
    )


def _shared_out(total: Floats, part: Floats, operator: Ints, first: Ints) -> Floats:
    """Share the bytes of operators out to their shards, whole bytes each; the first of each gets the rest."""
    each = np.floor(total[operator] * part)
    each[first] += total - np.bincount(operator, weights=each, minlength=len(total))
    return each


def _operators(problem: Problem, work: ShardWork, table: Ints, reserved_bytes: Floats, kind: Ints, rank: Ints) -> Ints:
    """Return the operator of each shard, numbered from 0."""
    tables = problem.tables
    if not RUNTIMES[problem.runtime].shares_operators:
        alone = np.where(work.kernel[kind] == Kernel.KEY_VALUE, np.arange(len(kind)), -1)
        return _numbered(rank, table[kind], work.shard_columns[kind], alone)
    modules = {path: code for code, path in enumerate(dict.fromkeys(one.module_path for one in tables))}
    optimizers = {name: code for code, name in enumerate(OPTIMIZERS)}
    of_table: tuple[list[int], ...] = (
        [modules[one.module_path] for one in tables],
        [POOLINGS.index(one.pooling) for one in tables],
        [one.is_weighted for one in tables],
        [optimizers[one.optimizer.name] for one in tables],
    )
    by_width = work.prefetches | (work.kernel == Kernel.KEY_VALUE)
    of_kind: tuple[Codes | Ints | Floats, ...] = (
        *(np.array(column)[table] for column in of_table),
        work.scheme,
        work.kernel,
        work.element_bytes,
        np.where(by_width, work.shard_columns, -1),
        np.nan_to_num(reserved_bytes, nan=-1.0),
        np.where(
            work.kernel == Kernel.KEY_VALUE,
            _allowed_sets(np.nan_to_num(work.cache_load_factor, nan=0.0), work.shard_rows),
            -1.0,
        ),
    )
    return _numbered(rank, *(column[kind] for column in of_kind))


def _numbered(*columns: Codes | Ints | Floats) -> Ints:
    """Return the same number for equal rows of columns."""
    rows = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
    found: Ints = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return found
