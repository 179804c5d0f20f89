r"""Hash tables of dynamicemb: finding rows by key, and rows that lie in host memory.

Keys, digests, scores and counts of use lie in the device's memory whatever the kernel. Kernels find the distinct keys
of a step, look each up in its bucket, insert new ones, and gather the rows. The value of a row is its weights and the
optimizer's state, one behind the other, and moves as a whole [1]. The laws are fitted to the public launches of one
H100 [2], which have rows of 512 B and 1,536 B; every number is an estimate elsewhere, and on other shapes.

Symbols: ``n`` lookups, ``u`` distinct rows, ``v`` bytes of a value, ``m`` the share of the distinct rows that a cache
of as many rows misses, ``x`` the share of the rows in the device's memory.

- all kernels, forward, besides the gather of a table of fixed size: ``0.4 ns n + 1.6 ns u`` where rows are trained,
  ``0.2 ns n`` where keys are only found. The backward pass of a table of fixed size took 3% to 16% longer than that of
  a hash table, whose ids the forward pass has sorted; it is priced as the former.
- ``hash_host``: each distinct row is read forward and written backward, in ``33 ns + 0.011 ns v`` each way, or the
  time of its bytes on the link if that is longer.
- ``hash_hybrid``: the same for the rows that are not in the device's memory: ``m / 4 + 3 (1 - x) / 4`` of the distinct
  ones. A row that was moved to the host does not come back, so that hot rows are on the device little more often than
  others.
- ``hash_caching``: before the step, missed rows are fetched and as many written back, in ``23 ns + 0.006 ns v`` for
  both; distinct rows that the cache cannot hold at once take ``100 ns + 0.017 ns v`` each.

Times of the device grow as the root of its memory's rate falls, like those of other lookups, and times of the host as
the rate at which kernels read it.

References
----------
.. [1] NVIDIA recsys-examples 43465ae, ``corelib/dynamicemb/dynamicemb``: ``key_value_table.py``
   (``create_table_state``, ``HybridStorage``), ``optimizer.py`` (``get_optimizer_state_dim``).
.. [2] ``corelib/dynamicemb/benchmark/benchmark_results.json`` of the same commit.
"""

import numpy as np

from cost_models.analytic.gpu_memory import MEASURED_RATE
from cost_models.analytic.sizes import distinct_rows, missed_rows
from cost_models.analytic.table_memory import table_memory
from cost_models.analytic.tally import Tally
from cost_models.analytic.tiers import HostMemory, host_memory
from cost_models.arrays import Bools, Floats
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.protocol import ShardWork
from cost_models.vocabulary import IS_HASHED, Evidence, Kernel, Phase

#: Where the measured launches stand.
SOURCE = "NVIDIA/recsys-examples at 43465ae, corelib/dynamicemb/benchmark: dynamicemb on one H100, 128 columns of fp32"
STATE_NUMBER_BYTES = 4.0  # fp32, which the optimizer's state is counted in by ``ShardWork``
ROW_STATE_BYTES = 16.0  # of row-wise AdaGrad, whatever the type of the weights

#: Seconds of a lookup and of a distinct row where keys are found and inserted, and of a lookup where they are found.
TRAINED_LOOKUP_SECONDS, TRAINED_ROW_SECONDS, FOUND_LOOKUP_SECONDS = 0.4e-9, 1.6e-9, 0.2e-9
#: Seconds of one row, and of each byte of its value: one way, both ways of a cache, and beyond what a cache holds.
HOST_ROW_SECONDS, HOST_BYTE_SECONDS = 33e-9, 0.011e-9
CACHED_ROW_SECONDS, CACHED_BYTE_SECONDS = 23e-9, 0.006e-9
UNHELD_ROW_SECONDS, UNHELD_BYTE_SECONDS = 100e-9, 0.017e-9
#: Rate at which kernels of the measured H100 read its host.
MEASURED_GATHER_RATE = 55.3e9
#: By how much of themselves the laws may be wrong: on the measured launches none is by more than 15%.
LAW_ERROR = 0.5
#: How much a hybrid table is like a cache, and how much like one whose rows lie anywhere.
HYBRID_CACHE_WEIGHT = 0.25


def is_hashed(work: ShardWork) -> Bools:
    """Which shards are hash tables."""
    hashed: Bools = IS_HASHED[work.kernel]
    return hashed


def state_numbers(work: ShardWork) -> Floats:
    """Numbers of optimizer state in a value, of the type of the weights, (num_shards,)."""
    of_weights = work.shard_columns * work.optimizer_element_bytes / STATE_NUMBER_BYTES
    of_row = np.where(work.optimizer_row_bytes > 0, ROW_STATE_BYTES / work.element_bytes, 0.0)
    return of_weights + of_row


def value_bytes(work: ShardWork) -> Floats:
    """Bytes of a value: weights and state of a row, (num_shards,)."""
    value: Floats = (work.shard_columns + state_numbers(work)) * work.element_bytes
    return value


def hybrid_host_share(work: ShardWork) -> Floats:
    """Share of the distinct rows of a step that a hybrid table has in host memory."""
    distinct = distinct_rows(work)
    missed = np.divide(missed_rows(work), distinct, out=np.zeros_like(distinct), where=distinct > 0)
    evenly = 1.0 - np.nan_to_num(work.cache_load_factor, nan=1.0)
    share: Floats = HYBRID_CACHE_WEIGHT * missed + (1 - HYBRID_CACHE_WEIGHT) * evenly
    return share


def host_rows(work: ShardWork) -> Floats:
    """Distinct rows of a step that kernels read in host memory, and write there, (num_shards,)."""
    share = np.where(work.kernel == Kernel.HASH_HOST, 1.0, 0.0)
    share = np.where(work.kernel == Kernel.HASH_HYBRID, hybrid_host_share(work), share)
    return distinct_rows(work) * share


def unheld_hash_rows(work: ShardWork) -> Floats:
    """Distinct rows of a step that the cache of a hash table cannot hold at once."""
    held = np.nan_to_num(work.cache_load_factor, nan=1.0) * work.shard_rows
    over = np.maximum(distinct_rows(work) - held, 0.0)
    return np.where(work.kernel == Kernel.HASH_CACHING, over, 0.0)


def add_hash_tables(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add what hash tables take beyond tables of a fixed size in the device's memory."""
    hashed = is_hashed(work)
    if not hashed.any():
        return
    by_root = (MEASURED_RATE / table_memory(hardware).rate.value) ** 0.5 * _law(hardware)
    trained = work.lookups * TRAINED_LOOKUP_SECONDS + distinct_rows(work) * TRAINED_ROW_SECONDS
    found = np.where(work.is_trained, trained, work.lookups * FOUND_LOOKUP_SECONDS)
    tally.add(Phase.FORWARD_COMPUTE, np.where(hashed, found * by_root, 0.0), Evidence.ESTIMATED)
    if np.any(hashed & (work.kernel != Kernel.HASH)):
        _add_host(tally, work, host_memory(hardware), _law(hardware))


def _law(hardware: Hardware) -> float:
    """Return what the laws' seconds are multiplied by where hardware is at a limit of its numbers, else 1."""
    return (
        Quantity(value=1.0, unit="seconds", evidence=Evidence.ESTIMATED, source=SOURCE, relative_error=LAW_ERROR)
        .at_limit(hardware.limit)
        .value
    )


def _add_host(tally: Tally, work: ShardWork, host: HostMemory, law: float) -> None:
    slower, value = law * MEASURED_GATHER_RATE / host.gather_link.value, value_bytes(work)
    on_link = np.maximum(value / host.gather_link.value, value / host.reads.value)
    direct = np.maximum((HOST_ROW_SECONDS + HOST_BYTE_SECONDS * value) * slower, on_link)
    rows = host_rows(work)
    unheld = unheld_hash_rows(work) * (UNHELD_ROW_SECONDS + UNHELD_BYTE_SECONDS * value) * slower
    tally.add(Phase.FORWARD_COMPUTE, rows * direct + unheld, Evidence.ESTIMATED)
    written = np.where(work.is_trained, rows * direct, 0.0)
    tally.add(Phase.BACKWARD_COMPUTE, written, Evidence.ESTIMATED)
    missed = np.where(work.kernel == Kernel.HASH_CACHING, missed_rows(work), 0.0)
    cached = np.maximum((CACHED_ROW_SECONDS + CACHED_BYTE_SECONDS * value) * slower, value / host.cache_link.value)
    tally.add(Phase.PREFETCH, missed * cached, Evidence.ESTIMATED)
