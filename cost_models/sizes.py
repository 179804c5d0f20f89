"""Bytes of ids, of elements on the wire and of dense gradients: one definition for prices and ledgers.

References
----------
FBGEMM's table batched embeddings look up int64 ids and fp32 weights of ids. PyTorch gives the
gradient of a parameter the parameter's own type, and ``DistributedDataParallel`` reduces
gradients in their type.
"""

import numpy as np

from cost_models.protocol import Bools, Floats, Ints, ShardWork

ID_BYTES = 8.0  # int64
ID_WEIGHT_BYTES = 4.0  # fp32 weight beside each id of a weighted feature
DEFAULT_ELEMENT_BYTES = 4.0  # fp32 where the spec does not say


def id_bytes(is_weighted: Bools) -> Floats:
    """Bytes of one id with its weight."""
    return np.where(is_weighted, ID_BYTES + ID_WEIGHT_BYTES, ID_BYTES)


def element_bytes(given: Floats) -> Floats:
    """Bytes of one element of an output or a message: as given, fp32 where NaN says nothing was."""
    return np.nan_to_num(given, nan=DEFAULT_ELEMENT_BYTES)


def dense_gradient_bytes(work: ShardWork, rows: Ints) -> Floats:
    """Bytes of a gradient of ``rows`` whole rows of each shard, in the type of its weights."""
    return rows.astype(np.float64) * work.shard_columns * work.element_bytes
