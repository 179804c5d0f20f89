"""Bytes of dynamicemb's hash tables: keys, values, what a step and a doubling hold besides.

A table of ``num_embeddings`` slots on W ranks has ``C = B ceil(ceil(num_embeddings / W) / B)`` slots on each, whole
buckets of B; the last rank as well, whatever ids fall to it [1]. A slot has an index in the device's memory, whatever
the kernel: a key of 8 bytes, a digest of 1, one score of 8 (two where the eviction is ``timestamp_lfu``) and a count
of uses of 4; a bucket has a size of 4 [2]. A table that evicts nothing has an index of twice the slots [3]. A slot also
has a value, weights and optimizer state in the type of the weights: none for SGD, 2 d of Adam, d of AdaGrad, 16 bytes
of row-wise AdaGrad [4].

- ``hash``: all values in the device's memory; ``hash_host``: all in host memory.
- ``hash_hybrid``, of the share x: a table of ``max(1, floor(x C))`` slots in the device's memory, in buckets of 1,024,
  and another of ``max(1, floor((1 - x) C))`` slots in host memory; both with an index [5].
- ``hash_caching``: the first of these with 3,072 slots more, for keys that find no place, and a table of all C slots
  in host memory [5].

Values lie in pages of 2 MiB on devices and 4 KiB in host memory, table by table [6]. A table that starts smaller
doubles until it has its slots. While it does, the index of before lies next to the new one, and a copy of all values of
before lies in the device's memory, also of values that lie in host memory [7]: ``growth`` are these at the last
doubling. In a step a device holds the distinct rows that it looked up (``distinct_rows``): their gradients, two keys
each, and, of kernels whose values are read in host memory, the values twice; and for each lookup the position of its
row, 8 bytes [8].

References
----------
NVIDIA recsys-examples 43465ae, ``corelib/dynamicemb/dynamicemb``.

.. [1] ``dynamicemb_config.py``, ``_sharded_table_bucket_layout``.
.. [2] ``scored_hashtable.py``, ``LinearBucketTable``: ``fields_byte_``, ``bucket_sizes``, ``_ref_counter``.
.. [3] ``key_value_table.py``, ``create_table_state``: ``no_eviction_max_lf``.
.. [4] ``optimizer.py``, ``get_optimizer_state_dim``.
.. [5] ``batched_dynamicemb_tables.py``, ``_create_cache_storage``; ``DynamicEmbCache`` (``enable_overflow``).
.. [6] ``extendable_tensor.py`` and ``src/vmm_tensor.cu``.
.. [7] ``key_value_table.py``, ``_expand_tables_impl`` (``dst_values_list``).
.. [8] ``batched_dynamicemb_function.py``, ``DynamicEmbeddingFunction``.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from cost_models.analytic.hash_tables import state_numbers, value_bytes
from cost_models.analytic.sizes import ID_BYTES, distinct_rows, element_bytes
from cost_models.arrays import Bools, Floats, Ints
from cost_models.protocol import ShardWork
from cost_models.vocabulary import Kernel
from planner.domain.problem.hash_table import NO_EVICTION
from planner.domain.problem.problem import Problem
from planner.options.runtimes.dynamicemb.operators import bucket_size_of
from planner.solver.memo import memoized_on_problem

KEY_BYTES, DIGEST_BYTES, SCORE_BYTES, COUNT_BYTES, BUCKET_BYTES = 8.0, 1.0, 8.0, 4.0, 4.0
#: Slots of a bucket of a cache, or of the device's part of a hybrid table.
DEVICE_BUCKET_SIZE = 1024
#: Buckets of a cache in addition to its own, for keys that find no place in these.
OVERFLOW_BUCKETS = 3
DEVICE_PAGE_BYTES, HOST_PAGE_BYTES = float(2**21), 4096.0
#: Slots of an index over values, if nothing is evicted.
NO_EVICTION_FACTOR = 2
POSITION_BYTES = 8.0  # int64 of the row of a lookup
_ROUNDING = 1e-12  # relative, of logarithms
#: Lines of the ledger that other tables do not have: what the last doubling takes, and the distinct rows of a step.
KEYED_LINES = ("growth", "distinct_rows")
MODE = "dynamicemb"


@dataclass(frozen=True, slots=True, kw_only=True)
class HashColumns:
    """What the hash table of each table has, (num_tables,); of tables without one what the default is."""

    bucket_size: Ints  # slots
    score_words: Ints
    index_factor: Ints  # slots of the index for each value
    initial_slots: Floats  # of a rank; infinite where a table starts with all of its slots


@memoized_on_problem
def hash_columns(problem: Problem) -> HashColumns:
    """Return the columns of a problem's hash tables."""
    found = [table.hash_table for table in problem.tables]
    return HashColumns(
        bucket_size=np.array([bucket_size_of(table) for table in problem.tables], dtype=np.int64),
        score_words=np.array([2 if one and one.eviction == "timestamp_lfu" else 1 for one in found], dtype=np.int64),
        index_factor=np.array(
            [NO_EVICTION_FACTOR if one and one.eviction == NO_EVICTION else 1 for one in found], dtype=np.int64
        ),
        initial_slots=np.array(
            [
                math.inf if one is None or one.initial_capacity_per_rank is None else one.initial_capacity_per_rank
                for one in found
            ],
            dtype=np.float64,
        ),
    )


def has_keys(problem: Problem) -> bool:
    """Whether kernels find the rows of some table by key."""
    return any(table.hash_table_mode == MODE for table in problem.tables)


def keyed_bytes(problem: Problem, work: ShardWork, table: Ints) -> Mapping[str, Floats]:
    """Return the bytes of each shard as if it were a hash table, by line, (num_shards,) each.

    Weights and state lie where the kernel keeps its rows, all other lines in the device's memory.
    """
    columns = hash_columns(problem)
    bucket, words = columns.bucket_size[table], columns.score_words[table]
    share, value = np.nan_to_num(work.cache_load_factor, nan=0.0), value_bytes(work)
    is_hybrid, is_cache = work.kernel == Kernel.HASH_HYBRID, work.kernel == Kernel.HASH_CACHING
    slots, asked = _slots(work, bucket), main_slots(work, bucket)
    near = np.where(is_hybrid | is_cache, aligned(np.maximum(np.floor(slots * share), 1), DEVICE_BUCKET_SIZE), 0.0)
    near += np.where(is_cache, float(OVERFLOW_BUCKETS * DEVICE_BUCKET_SIZE), 0.0)
    main = _Main.of(columns, table, asked)
    state = main.values * state_numbers(work) * work.element_bytes
    page = np.where(work.kernel == Kernel.HASH, DEVICE_PAGE_BYTES, HOST_PAGE_BYTES)
    return {
        "weights": aligned(main.values * value, page) - state,
        "optimizer_state": state,
        "row_optimizer_state": np.zeros(work.num_shards),
        "row_keys": index_bytes(main.keys, bucket, words),
        "cache": aligned(near * value, DEVICE_PAGE_BYTES),
        # The overflow of a cache is one bucket.
        "cache_index": index_bytes(near, DEVICE_BUCKET_SIZE, words)
        - np.where(is_cache, (OVERFLOW_BUCKETS - 1) * BUCKET_BYTES, 0.0),
        "growth": index_bytes(main.keys_before, bucket, words) + main.copied_values * value,
        "distinct_rows": _step(work, value, is_hybrid | (work.kernel == Kernel.HASH_HOST)),
    }


def main_slots(work: ShardWork, bucket: Ints) -> Floats:
    """Return the slots that each shard has besides those of a cache, as they are asked for: not in whole buckets."""
    slots, share = _slots(work, bucket), np.nan_to_num(work.cache_load_factor, nan=0.0)
    return np.where(work.kernel == Kernel.HASH_HYBRID, np.maximum(np.floor(slots * (1 - share)), 1), slots)


def _slots(work: ShardWork, bucket: Ints) -> Floats:
    return aligned(np.maximum(work.shard_rows, 1), bucket)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Main:
    """Slots of tables once they have all of theirs, and at the last doubling before, (num_shards,) each."""

    keys: Floats
    values: Floats
    keys_before: Floats  # 0 of a table that starts with all of its slots
    copied_values: Floats

    @classmethod
    def of(cls, columns: HashColumns, table: Ints, asked: Floats) -> "_Main":
        """Return what tables come to that are asked to have so many slots."""
        bucket, evicts = columns.bucket_size[table], columns.index_factor[table] == 1
        slots = aligned(asked, bucket)
        starts = np.minimum(aligned(columns.initial_slots[table], bucket), slots)
        grows = starts < slots
        doublings = np.ceil(np.log2(slots / starts) * (1 - _ROUNDING))
        before = np.where(grows, starts * 2.0 ** (doublings - 1), 0.0)
        # Without eviction the index doubles past its slots, and as many values are added as slots to the index.
        keys = np.where(
            grows, NO_EVICTION_FACTOR * starts * 2.0**doublings, aligned(NO_EVICTION_FACTOR * asked, bucket)
        )
        return cls(
            keys=np.where(evicts, slots, keys),
            values=np.where(evicts, slots, np.where(grows, keys - starts, asked)),
            keys_before=np.where(evicts, before, NO_EVICTION_FACTOR * before),
            copied_values=np.where(evicts, before, 0.0),  # others are found by numbers, and stay where they are
        )


@overload
def index_bytes(slots: float, bucket: float, words: float) -> float: ...
@overload
def index_bytes(slots: Floats, bucket: Ints | int, words: Ints) -> Floats: ...
def index_bytes(slots: Any, bucket: Any, words: Any) -> Any:
    """Return the bytes of the index of so many slots."""
    of_slots = slots * (KEY_BYTES + DIGEST_BYTES + SCORE_BYTES * words + COUNT_BYTES)
    return of_slots + slots / bucket * BUCKET_BYTES


def _step(work: ShardWork, value: Floats, reads_host: Bools) -> Floats:
    """Return what a step holds of the rows that it looked up."""
    element = np.maximum(element_bytes(work.output_element_bytes), work.element_bytes)
    row = work.shard_columns * element + 2 * ID_BYTES + np.where(reads_host, 2 * value, 0.0)
    held: Floats = np.ceil(distinct_rows(work)) * row + np.ceil(work.lookups) * POSITION_BYTES
    return held


def aligned(amount: Floats | Ints | float, step: Floats | Ints | float) -> Floats:
    """Round up to whole steps."""
    rounded: Floats = np.ceil(amount / step) * step
    return rounded
