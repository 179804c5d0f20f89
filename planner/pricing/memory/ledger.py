"""Bytes of shards, line by line and tier by tier, and what a rank has left for them.

Weights lie where the kernel stores them: in the device's memory, in host memory, in storage-class memory or in block
storage. Whatever the kernel, the ids and outputs of a step lie in the device's memory, and so does the row-wise state
of an optimizer (FBGEMM 1.8.0 ``construct_split_state``: "if optimizer state is rowwise, optimizer is on device,
otherwise managed"). What caches take is in :mod:`planner.pricing.memory.operators`: a shard alone is charged whole
sets of slots, and the shards of a placement what the operators that hold them take.

Two ledgers. EXACT counts what a training job really holds. TORCHREC repeats TorchRec's
``EmbeddingStorageEstimator`` (1.8.0 ``shard_estimators.py``), with what it leaves out:
optimizer state by a multiplier of the weights' own type, no gradients of data_parallel
tables, no weights of ids, no slots of hash tables, outputs only without a pipeline and, if the spec gives no type,
in the type of the weights, and bags with less than one expected id counted in part. A cache
holds its share of the tensor's bytes, and the optimizer state of that share a second time; a
``key_value`` table has no cache (TorchRec gives it one by ``KeyValueParams`` alone) and keeps
the index of one in block storage. Plans are held to EXACT, whatever the cost model; those priced by
TorchRec's estimator also state what TorchRec's planner believes.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cost_models.analytic.sizes import (
    ID_BYTES,
    REMAP_BYTES,
    dense_gradient_bytes,
    element_bytes,
    id_bytes,
    output_rows,
    stored_row_bytes,
)
from cost_models.arrays import Codes, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_CACHED, IS_HASHED, IS_REPLICATED, Kernel, Tier
from planner.access.table_columns import table_columns
from planner.domain.problem.problem import Problem
from planner.options.runtimes.registry import RUNTIMES
from planner.pricing.hash_tables.dynamicemb import KEYED_LINES, keyed_bytes
from planner.pricing.hash_tables.hugectr import is_mapped, mapped_bytes
from planner.pricing.hash_tables.slot_columns import SLOT_LINES, has_slots, slot_bytes
from planner.pricing.memory.operators import CACHE_LINES, CacheBytes, shard_cache_bytes
from planner.pricing.memory.stash import host_buffer_bytes, room_bytes

#: ``hot_rows`` are weights and state per weight of the rows of a table split by heat that the device's memory holds.
#: ``optimizer_state`` is what an optimizer stores per weight, ``row_optimizer_state`` what it stores per row, and
#: ``row_keys`` are the ids that a runtime stores with the rows. Of hash tables there are ``SLOT_LINES``, or, where
#: kernels find rows by key, ``KEYED_LINES``.
LINES = (
    "weights",
    "optimizer_state",
    "row_optimizer_state",
    "row_keys",
    "gradients",
    "hot_rows",
    "remap",
    *SLOT_LINES,
    *CACHE_LINES,
    *KEYED_LINES,
    "input_buffers",
    "output_buffers",
)
#: Lines that lie where the kernel stores its rows; all others lie in the device's memory.
_LINES_WITH_ROWS = ("weights", "optimizer_state")
#: Lines that lie in host memory: buffers between the caches of ``key_value`` tables and their files.
_LINES_IN_HOST_MEMORY = ("eviction_buffers", "write_buffers")
_ROUNDING = 1e-12  # relative, of products of a few numbers
_TORCHREC_INDEX_BYTES_PER_ROW, _TORCHREC_TAG_BYTES_PER_CACHED_ROW = 4.0, 16.0  # _calculate_cache_aux_state_sizes
#: Input buffers more that fetching ahead holds: one, and six of its bursts (TorchRec ``calculate_pipeline_io_cost``).
PREFETCH_INPUTS = 7
#: Input buffers that a pipeline holds at once: none, sparse-dist (the next batch), prefetch
#: (TorchRec ``calculate_pipeline_io_cost``).
PIPELINE_INPUTS = {"none": 1, "train_sparse_dist": 2, "train_prefetch_sparse_dist": 3}
#: TorchRec's optimizer state in multiples of the tensor; row-wise AdaGrad is 1 / columns.
_TORCHREC_MULTIPLIER = {"none": 0.0, "sgd": 0.0, "adam": 2.0}


#: The two ledgers of the docstring above.
Ledger = Literal["exact", "torchrec"]
EXACT: Ledger = "exact"
TORCHREC: Ledger = "torchrec"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLedger:
    """Bytes of shards by line, and the tier that each line of each shard lies in."""

    bytes: Floats  # (num_shards, len(LINES))
    tier: Codes  # (num_shards, len(LINES))

    def by_tier(self) -> Floats:
        """Return the bytes of each shard by tier, shape (num_shards, NUM_TIERS)."""
        return np.stack([np.where(self.tier == tier, self.bytes, 0.0).sum(axis=1) for tier in Tier], axis=1)

    def by_tier_and_line(self) -> Floats:
        """Return the bytes of each shard by tier and there by line, shape (num_shards, NUM_TIERS x len(LINES))."""
        return np.concatenate([np.where(self.tier == tier, self.bytes, 0.0) for tier in Tier], axis=1)


def shard_ledger(problem: Problem, work: ShardWork, *, table: Ints, stored_rows: Ints, ledger: Ledger) -> ShardLedger:
    """Return the bytes of each shard by line, and where they lie.

    ``stored_rows`` are the rows that the shard really holds: the last row block is shorter.
    """
    cells = stored_rows.astype(np.float64) * work.shard_columns
    weights = stored_rows * stored_row_bytes(work)
    dense = (work.kernel == Kernel.DENSE) & work.is_trained
    gradients = np.where(dense & (ledger == EXACT), dense_gradient_bytes(work, stored_rows), 0.0)
    is_cached = IS_CACHED[work.kernel]
    inputs = PIPELINE_INPUTS[problem.pipeline] + np.where(is_cached & work.prefetches, PREFETCH_INPUTS, 0)
    per_weight, per_row = _optimizer_state(problem, work, table, stored_rows, cells, weights, ledger)
    hot_rows = np.rint(stored_rows * work.hot_row_share)
    hot_share = hot_rows / np.maximum(stored_rows, 1)  # the last row blocks of a small table may be empty
    hot_weights, hot_state = (np.rint(part * hot_share) for part in (weights, per_weight))
    caches = _caches(problem, work, table, stored_rows, ledger)
    slots = dict.fromkeys(SLOT_LINES, np.zeros(work.num_shards))
    if ledger == EXACT and has_slots(problem):
        slots = slot_bytes(problem, work, table=table, stored_rows=stored_rows)
    lines = (
        weights - hot_weights,
        per_weight - hot_state,
        per_row,
        stored_rows * (RUNTIMES[problem.runtime].row_key_bytes if ledger == EXACT else 0.0),
        gradients,
        hot_weights + hot_state,
        np.where(hot_rows > 0, stored_rows * REMAP_BYTES, 0.0),
        *(slots[line] for line in SLOT_LINES),
        *(caches[line] for line in CACHE_LINES),
        *(np.zeros(work.num_shards) for _ in KEYED_LINES),
        _input_buffers(work, ledger) * inputs,
        output_buffer_bytes(problem, work, ledger),
    )
    if (hashed := IS_HASHED[work.kernel]).any():
        keyed = keyed_bytes(problem, work, table)
        lines = tuple(
            np.where(hashed, keyed[line], held) if line in keyed else held
            for line, held in zip(LINES, lines, strict=True)
        )
    if ledger == EXACT and (mapped := is_mapped(problem)[table] > 0).any():
        in_maps = mapped_bytes(work, stored_rows)
        lines = tuple(
            np.where(mapped, in_maps[line], held) if line in in_maps else held
            for line, held in zip(LINES, lines, strict=True)
        )
    device = problem.cluster.device_tier
    of_kernel = np.array([kernel.tier(device) for kernel in Kernel], dtype=np.int8)
    tier = np.full((work.num_shards, len(LINES)), device, dtype=np.int8)
    of_rows = np.where(work.in_scm, np.int8(Tier.SCM), of_kernel[work.kernel])
    tier[:, [LINES.index(line) for line in _LINES_WITH_ROWS]] = of_rows[:, None]
    tier[:, [LINES.index(line) for line in _LINES_IN_HOST_MEMORY]] = Tier.DDR
    if ledger == TORCHREC:
        tier[work.kernel == Kernel.KEY_VALUE, LINES.index("cache_index")] = Tier.SSD
    return ShardLedger(bytes=np.stack(lines, axis=1), tier=tier)


def _optimizer_state(
    problem: Problem,
    work: ShardWork,
    table: Ints,
    stored_rows: Ints,
    cells: Floats,
    weights: Floats,
    ledger: Ledger,
) -> tuple[Floats, Floats]:
    """Return the state per weight and the state per row."""
    if ledger == EXACT:
        return cells * work.optimizer_element_bytes, stored_rows * work.optimizer_row_bytes
    state = _torchrec_state(problem, table, weights)
    return state, np.zeros_like(state)


def _torchrec_state(problem: Problem, table: Ints, tensor_bytes: Floats) -> Floats:
    """Return the optimizer state of so many bytes of weights, by TorchRec's multipliers."""
    by_table = [
        1.0 / t.embedding_dim
        if t.optimizer.name == "rowwise_adagrad"
        else _TORCHREC_MULTIPLIER.get(t.optimizer.name, 1.0)
        for t in problem.tables
    ]
    state: Floats = np.ceil(tensor_bytes * np.array(by_table)[table])
    return state


def _caches(problem: Problem, work: ShardWork, table: Ints, stored_rows: Ints, ledger: Ledger) -> CacheBytes:
    """Return the bytes of caches: of each shard alone in its operator, or TorchRec's share of the table's bytes."""
    if ledger == EXACT:
        return shard_cache_bytes(problem, work, table=table, stored_rows=stored_rows)
    share, is_cached = np.nan_to_num(work.cache_load_factor, nan=0.0), IS_CACHED[work.kernel]
    columns = work.table_columns.astype(np.float64)
    table_bytes = work.table_rows * (columns * work.element_bytes + work.row_overhead_bytes)
    part = stored_rows.astype(np.float64) * work.shard_columns / (work.table_rows * columns)
    rows = np.ceil(np.round(table_bytes * share) * part)
    rows += _torchrec_state(problem, table, rows)
    index = np.ceil(stored_rows * (_TORCHREC_INDEX_BYTES_PER_ROW + _TORCHREC_TAG_BYTES_PER_CACHED_ROW * share))
    nothing = np.zeros(work.num_shards)
    return {
        "cache": np.where(is_cached & (work.kernel != Kernel.KEY_VALUE), rows, 0.0),
        "cache_index": np.where(is_cached, index, 0.0),
        "eviction_buffers": nothing,
        "write_buffers": nothing,
    }


def _all_ranks(work: ShardWork) -> Floats:
    """Return the number of batches that reach one shard: every rank's, or one for a replica."""
    return np.where(IS_REPLICATED[work.scheme], 1.0, float(work.num_ranks))


def _input_buffers(work: ShardWork, ledger: Ledger) -> Floats:
    """Return the bytes of ids that one shard receives in a step: all ranks' ids, shared by its row blocks.

    TorchRec's planner takes row blocks for equal.
    """
    if ledger == EXACT:
        return _whole_bytes(work.lookups * id_bytes(work.is_weighted))
    return np.ceil(work.batch_ids * _all_ranks(work) / work.row_shards * ID_BYTES)


def output_buffer_bytes(problem: Problem, work: ShardWork, ledger: Ledger) -> Floats:
    """Return the bytes of pooled rows (partial ones if rows are cut) that one shard writes for all ranks."""
    if problem.pipeline != "none" and ledger == TORCHREC:
        return np.zeros(work.num_shards)
    # A sequence cut by rows returns each id once, from the rank of its row.
    share = np.where(work.is_pooled, 1.0, 1.0 / work.row_shards)
    of_torchrec = work.expected_outputs * share * _all_ranks(work)
    as_stored = np.isnan(work.output_element_bytes) & (ledger == TORCHREC)
    element = np.where(as_stored, work.element_bytes, element_bytes(work.output_element_bytes))
    if ledger == EXACT:
        return _whole_bytes(output_rows(work) * work.shard_columns * element)
    return np.ceil(of_torchrec * work.shard_columns * element)


def _whole_bytes(amount: Floats) -> Floats:
    """Round up, but for what rounding in the last digits has added: whole numbers of ids stay as they are."""
    rounded: Floats = np.ceil(amount * (1 - _ROUNDING))
    return rounded


def reserved_bytes(problem: Problem, capacity_bytes: float) -> dict[str, float]:
    """Return the lines that are taken off one rank's memory before tables.

    TorchRec's ``HeuristicalStorageReservation``: a margin, a multiple of the dense
    parameters, and copies of one local batch's ids, poolings not counted. Activations of the dense part are reserved
    where the spec gives them, less what stashed weights make room for, and so are keys and values of users.
    """
    rules, activations, cache = problem.reservation, problem.dense.activation_bytes, problem.kv_cache
    return {
        "margin": capacity_bytes - math.floor((1 - rules.hbm_fraction) * capacity_bytes),
        "dense_parameters": rules.dense_multiplier * problem.dense.parameter_bytes,
        "input_batches": float(math.ceil(problem.batch_pooling * ID_BYTES)) * rules.input_copies,
        "collective_buffers": rules.collective_bytes,
        **({"index_dedup": index_dedup_bytes(problem)} if problem.use_index_dedup else {}),
        **({} if activations is None else {"activations": activations - room_bytes(problem)}),
        **({} if cache is None else {"kv_cache": cache.least_bytes}),
    }


def index_dedup_bytes(problem: Problem) -> float:
    """Return what every rank holds of deduplicated ids: unique ids, and for each id the place of its row among them.

    TorchRec keeps both with a batch from the exchange of its ids to its backward pass (``EmbeddingCollectionContext``);
    a pipeline has as many batches on the way as input buffers.
    """
    unique = table_columns(problem).deduplicated
    if unique is None:
        return 0.0
    some = unique.is_deduplicated
    numbers = float(unique.batch_ids[some].sum() + unique.unique_ids[some].sum())
    return math.ceil(numbers * ID_BYTES) * float(PIPELINE_INPUTS[problem.pipeline])


def reserved_by_tier(problem: Problem, rank: int) -> dict[Tier, dict[str, float]]:
    """Return what is taken off one rank's memory before tables, by tier and line."""
    cluster, fraction = problem.cluster, problem.reservation.ddr_fraction
    found = {cluster.device_tier: reserved_bytes(problem, cluster.tier_bytes(rank, cluster.device_tier))}
    share = cluster.tier_bytes(rank, Tier.DDR)
    if cluster.device_tier is not Tier.DDR and fraction and share:
        found[Tier.DDR] = {"margin": share - math.floor((1 - fraction) * share)}
    if problem.stash is not None:
        found[Tier.DDR] = {**found.get(Tier.DDR, {}), "stash_buffers": host_buffer_bytes(problem)}
    return found


def capacity_bytes(problem: Problem) -> Floats:
    """Return what each rank has left for tables, shape (num_ranks, num_tiers), never negative.

    Block storage is left whole.
    """
    cluster = problem.cluster
    total = cluster.bytes_by_rank()
    sizes, which = np.unique(total[:, cluster.device_tier], return_inverse=True)
    left = [max(0.0, float(size) - sum(reserved_bytes(problem, float(size)).values())) for size in sizes]
    total[:, cluster.device_tier] = np.array(left)[which]
    if cluster.device_tier is not Tier.DDR:  # of which every rank has the same share
        taken = sum(reserved_by_tier(problem, 0).get(Tier.DDR, {}).values())
        total[:, Tier.DDR] = np.maximum(0.0, total[:, Tier.DDR] - taken)
    return total


def sparse_capacity_bytes(problem: Problem) -> Floats:
    """Return what of each rank's device tables may take while no activations are there, shape (num_ranks,)."""
    found = []
    for rank in range(problem.world_size):
        size = problem.cluster.tier_bytes(rank, problem.cluster.device_tier)
        taken = reserved_bytes(problem, size)
        found.append(max(0.0, size - sum(held for line, held in taken.items() if line != "activations")))
    return np.array(found)
