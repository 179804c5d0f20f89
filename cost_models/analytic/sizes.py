"""Bytes of ids, of elements on the wire and of dense gradients: one definition for prices and ledgers.

References
----------
FBGEMM's table batched embeddings look up int64 ids and fp32 weights of ids. PyTorch gives the
gradient of a parameter the parameter's own type, and ``DistributedDataParallel`` reduces
gradients in their type. FBGEMM 1.8.0 ``rounded_row_size_in_bytes`` pads rows of inference kernels to 16 bytes
on accelerators, and on hosts not at all (``IntNBitTableBatchedEmbeddingBagsCodegen``, ``row_alignment``).
"""

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_REPLICATED

ID_BYTES = 8.0  # int64
REMAP_BYTES = 4.0  # int32 of a row's place by heat
ID_WEIGHT_BYTES = 4.0  # fp32 weight next to each id of a weighted feature
DEFAULT_ELEMENT_BYTES = 4.0  # fp32 where the spec does not say
INFERENCE_ROW_ALIGNMENT_BYTES = 16.0  # FBGEMM's inference kernels on accelerators


def id_bytes(is_weighted: Bools) -> Floats:
    """Bytes of one id with its weight."""
    return np.where(is_weighted, ID_BYTES + ID_WEIGHT_BYTES, ID_BYTES)


def element_bytes(given: Floats) -> Floats:
    """Bytes of one element of an output or a message: as given, fp32 where NaN says nothing was."""
    return np.where(np.isnan(given), DEFAULT_ELEMENT_BYTES, given)


def stored_row_bytes(work: ShardWork) -> Floats:
    """Bytes of one stored row of each shard, with the scale and bias of a quantised one and its padding."""
    return row_bytes(work, work.shard_columns)


def row_bytes(work: ShardWork, columns: Ints | Floats) -> Floats:
    """Bytes of a row of so many columns, stored as the rows of each shard are."""
    bare = columns * work.element_bytes + work.row_overhead_bytes
    return np.ceil(bare / work.row_alignment_bytes) * work.row_alignment_bytes


def output_rows(work: ShardWork) -> Floats:
    """Rows that each shard writes in a step.

    Bags: one row per bag of every batch that the shard serves, even where row cuts leave it
    only part of a bag's ids, since partial sums are full rows. Sequences: one row per lookup.
    """
    served = np.where(IS_REPLICATED[work.scheme], 1.0, float(work.num_ranks))
    return np.where(work.is_pooled, work.batch_outputs * served, work.lookups)


def dense_gradient_bytes(work: ShardWork, rows: Ints) -> Floats:
    """Bytes of a gradient of ``rows`` whole rows of each shard, in the type of its weights."""
    return rows.astype(np.float64) * work.shard_columns * work.element_bytes


def distinct_rows(work: ShardWork) -> Floats:
    """Distinct rows that each shard looks up in a step; the most there can be if nothing is known."""
    return np.fmin(work.distinct_rows, np.minimum(work.lookups, work.shard_rows))


def missed_rows(work: ShardWork) -> Floats:
    """Rows that the cache of each shard fetches in a step; as if all rows were equally likely if nothing is known."""
    evenly = 1.0 - np.nan_to_num(work.cache_load_factor, nan=1.0)
    return distinct_rows(work) * np.where(np.isnan(work.missed_share), evenly, work.missed_share)
