"""Bytes of shards, line by line, and what a rank has left for them.

Two ledgers. EXACT counts what a training job really holds. TORCHREC repeats TorchRec's
``EmbeddingStorageEstimator`` (1.8.0 ``shard_estimators.py``), with what it leaves out:
optimizer state by a multiplier of the weights' own type, no gradients of data_parallel
tables, no weights of ids, outputs only without a pipeline and, where the spec gives no type,
in the type of the weights, and bags with less than one expected id counted in part. A cost
model says which ledger its plans are judged by (``CostModel.ledger``): TorchRec's has
TorchRec's, so that both planners fill the same memory.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.protocol import Ledger, ShardWork
from cost_models.sizes import ID_BYTES, dense_gradient_bytes, element_bytes, id_bytes
from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.problem import Problem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LINES = ("weights", "optimizer_state", "gradients", "input_buffers", "output_buffers")
#: Input buffers that a pipeline holds at once: none, sparse-dist (the next batch), prefetch
#: (TorchRec ``calculate_pipeline_io_cost``).
PIPELINE_INPUTS = {"none": 1, "train_sparse_dist": 2, "train_prefetch_sparse_dist": 3}
#: TorchRec's optimizer state in multiples of the tensor; row-wise AdaGrad is 1 / columns.
_TORCHREC_MULTIPLIER = {"none": 0.0, "sgd": 0.0, "adam": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRules:
    """Which bytes are counted, and how."""

    name: str
    exact_optimizer_state: bool
    counts_dense_gradients: bool
    counts_id_weights: bool
    counts_pipelined_outputs: bool
    counts_empty_bags: bool
    unstated_outputs_as_stored: bool  # else fp32, as kernels write them


EXACT = LedgerRules(
    name="exact",
    exact_optimizer_state=True,
    counts_dense_gradients=True,
    counts_id_weights=True,
    counts_pipelined_outputs=True,
    counts_empty_bags=True,
    unstated_outputs_as_stored=False,
)
TORCHREC = LedgerRules(
    name="torchrec",
    exact_optimizer_state=False,
    counts_dense_gradients=False,
    counts_id_weights=False,
    counts_pipelined_outputs=False,
    counts_empty_bags=False,
    unstated_outputs_as_stored=True,
)


_LEDGERS: dict[Ledger, LedgerRules] = {"exact": EXACT, "torchrec": TORCHREC}


def ledger_rules(ledger: Ledger) -> LedgerRules:
    """Return the rules of the ledger that a cost model names."""
    return _LEDGERS[ledger]


def shard_ledger(problem: Problem, work: ShardWork, *, table: Ints, stored_rows: Ints, rules: LedgerRules) -> Floats:
    """Return the bytes of each shard by line, shape (num_shards, len(LINES)), all in one tier.

    ``stored_rows`` are the rows that the shard really holds: the last row block is shorter.
    """
    cells = stored_rows.astype(np.float64) * work.shard_columns
    weights = np.ceil(cells * work.element_bytes + stored_rows * work.row_overhead_bytes)
    dense = work.kernel == Kernel.DENSE
    gradients = np.where(dense & rules.counts_dense_gradients, dense_gradient_bytes(work, stored_rows), 0.0)
    lines = (
        weights,
        _optimizer_state(problem, work, table, stored_rows, cells, weights, rules),
        gradients,
        _input_buffers(work, rules) * PIPELINE_INPUTS[problem.pipeline],
        _output_buffers(problem, work, rules),
    )
    return np.stack(lines, axis=1)


def _optimizer_state(
    problem: Problem,
    work: ShardWork,
    table: Ints,
    stored_rows: Ints,
    cells: Floats,
    weights: Floats,
    rules: LedgerRules,
) -> Floats:
    if rules.exact_optimizer_state:
        return cells * work.optimizer_element_bytes + stored_rows * work.optimizer_row_bytes
    by_table = [
        1.0 / t.embedding_dim
        if t.optimizer.name == "rowwise_adagrad"
        else _TORCHREC_MULTIPLIER.get(t.optimizer.name, 1.0)
        for t in problem.tables
    ]
    state: Floats = np.ceil(weights * np.array(by_table)[table])
    return state


def _all_ranks(work: ShardWork) -> Floats:
    """Batches that reach one shard: every rank's, or one for a replica."""
    return np.where(work.scheme == Scheme.DATA_PARALLEL, 1.0, float(work.num_ranks))


def _input_buffers(work: ShardWork, rules: LedgerRules) -> Floats:
    """Ids that one shard receives in a step: all ranks' ids, shared by its row blocks."""
    each = id_bytes(work.is_weighted & rules.counts_id_weights)
    return np.ceil(work.batch_ids * _all_ranks(work) / work.row_shards * each)


def _output_buffers(problem: Problem, work: ShardWork, rules: LedgerRules) -> Floats:
    """Pooled rows (partial ones where rows are cut) that one shard writes for all ranks."""
    if problem.pipeline != "none" and not rules.counts_pipelined_outputs:
        return np.zeros(work.num_shards)
    outputs = work.batch_outputs if rules.counts_empty_bags else work.expected_outputs
    # A sequence cut by rows returns each id once, from the rank of its row.
    share = np.where(work.is_pooled, 1.0, 1.0 / work.row_shards)
    as_stored = np.isnan(work.output_element_bytes) & rules.unstated_outputs_as_stored
    element = np.where(as_stored, work.element_bytes, element_bytes(work.output_element_bytes))
    return np.ceil(outputs * share * _all_ranks(work) * work.shard_columns * element)


def reserved_bytes(problem: Problem, capacity_bytes: float) -> dict[str, float]:
    """Return the lines that are taken off one rank's memory before tables.

    TorchRec's ``HeuristicalStorageReservation``: a margin, a multiple of the dense
    parameters, and copies of one local batch's ids, poolings not counted.
    """
    rules = problem.reservation
    return {
        "margin": capacity_bytes - math.floor((1 - rules.hbm_fraction) * capacity_bytes),
        "dense_parameters": rules.dense_multiplier * problem.dense.parameter_bytes,
        "input_batches": float(math.ceil(problem.batch_pooling * ID_BYTES)) * rules.input_copies,
    }


def capacity_bytes(problem: Problem) -> Floats:
    """Return what each rank has left for tables, shape (num_ranks, num_tiers), never negative.

    Only the tier of the device is reserved from; the others are left whole, as TorchRec does.
    """
    cluster = problem.cluster
    total = np.array([[cluster.tier_bytes(rank, tier) for tier in Tier] for rank in range(cluster.world_size)])
    sizes, which = np.unique(total[:, cluster.device_tier], return_inverse=True)
    left = [max(0.0, float(size) - sum(reserved_bytes(problem, float(size)).values())) for size in sizes]
    total[:, cluster.device_tier] = np.array(left)[which]
    return total
