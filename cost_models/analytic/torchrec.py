r"""TorchRec's own estimate of a shard's time.

Kept to be compared with TorchRec's planner on its own terms, oddities included: no latency,
no message size, no row skew, input communication outside the total, an all-reduce that runs
over network cards even on a single host, kernels that read host memory at a tenth of what the link has.

Symbols, per local batch of one table: ``I`` ids, ``O`` expected output rows (a feature of
pooling factor L < 1 counts L rows per sample; ids where nothing is pooled), ``W`` ranks,
``G`` ranks per host, or per pod of hosts, ``H = W/G`` hosts or pods, ``d`` columns and ``R`` rows
of the shard, ``e`` bytes of a weight, ``f`` bytes of an element on the wire (the table's ``e``
where not given), ``dev`` memory rate of the kernel:

==================  =====================================================================
dense, fused        half of the device's memory rate, all of it
fused_uvm           link / 10, where the link is the device's to host memory
fused_uvm_caching   (c memory + (1 - c) link) / 10 with the cached share ``c`` of the rows;
                    all of the memory's where a pipeline prefetches
key_value           the rate of block storage, whatever is cached
==================  =====================================================================

===============  ==================================  =====================  =====================  =============
bytes            table_wise, column_wise,            row_wise               table_row_wise,        data_parallel
                 table_column_wise                                          grid_shard
===============  ==================================  =====================  =====================  =============
input            8 I W                               8 I                    8 I W / G              8 I
lookup           I W max(d, 32) e                    I d e                  I W d e / G            I d e
output           O W d f                             O W d f                O W d f                O d e
===============  ==================================  =====================  =====================  =============

- ids of weighted features count twice;
- forward compute = (input + lookup + output) x penalty / dev, where the penalty is for narrow
  columns of the first group only: 1 from 128 columns, 1.15 from 64, else 1.75;
- backward compute = 2 x forward (+ 1.1 x forward where weighted);
- forward communication = output / link; table_row_wise and grid_shard add O H d f over the
  network where there is more than one host or pod;
- backward communication is the same with the backward type, plus 2.455 output / dev for the
  copy after an all-gather (row cuts);
- data_parallel: R d e (2k-1)/k / (G network), k = min(H, 2), doubled over more than two hosts,
  plus 9.22 R d e / dev for the optimizer;
- input communication = 8 I W / link whatever the cut; none for data_parallel;
- prefetch = m u d e / link to host memory, of fused_uvm_caching alone and only if statistics say so
  the distinct rows ``u`` of all ranks' batches and the share ``m`` that the cache misses; u is divided
  by W for row_wise and by G for table_row_wise and grid_shard, not for table_column_wise or the others.
  As the phase ``prefetch`` it counts in full, with a pipeline as without, in TorchRec's own objective, the slowest
  rank's sum over phases; a sum over the slowest rank of each phase leaves out what dense compute hides of it.

The link of an exchange is the host's where all ranks of the group share a host, else the network card: TorchRec prices
the inside of a pod of several hosts as network, too. The all-reduce of data_parallel knows no pods: its G and H are of
hosts.

References
----------
meta-pytorch/torchrec release 1.8.0, ``torchrec/distributed/planner``:
``estimator/estimator.py`` (one evaluator per scheme, ``_default_prefetch_comp``), ``estimator/types.py``
(``ShardPerfContext``), ``types.py`` (``BasicCommsBandwidths``), ``constants.py`` (``kernel_bw_lookup``).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import ID_BYTES, missed_rows
from cost_models.analytic.table_memory import TableMemory, table_memory
from cost_models.analytic.tally import Tally
from cost_models.arrays import Bools, Codes, Floats
from cost_models.errors import UnsupportedWork
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.protocol import ShardSeconds, ShardWork
from cost_models.vocabulary import (
    DEVICE_KERNELS,
    IS_HASHED,
    NUM_PHASES,
    ROUTES,
    Evidence,
    Kernel,
    Phase,
    Route,
)

# TorchRec 1.8.0, planner/constants.py and estimator/estimator.py
MIN_LOOKUP_COLUMNS = 32  # of whole-row schemes
HALF_BLOCK_PENALTY = 1.15  # 64 to 127 columns
QUARTER_BLOCK_PENALTY = 1.75  # fewer than 64 columns
BACKWARD_MULTIPLIER = 2.0  # BWD_COMPUTE_MULTIPLIER
WEIGHTED_KERNEL_MULTIPLIER = 1.1
BATCHED_COPY_FACTOR = 2.455  # BATCHED_COPY_PERF_FACTOR
DATA_PARALLEL_KERNELS_FACTOR = 9.22  # DP_ELEMENTWISE_KERNELS_PERF_FACTOR
DENSE_RATE_FRACTION = 0.5  # kernel_bw_lookup
HOST_MEMORY_DIVISOR = 10.0  # kernel_bw_lookup, fused_uvm and fused_uvm_caching


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sizes:
    """Which formula each shard takes, and its bytes. All arrays (num_shards,)."""

    whole_rows: Bools
    row_wise: Bools
    host_rows: Bools
    data_parallel: Bools
    input_bytes: Floats
    lookup_bytes: Floats
    forward_output_bytes: Floats
    backward_output_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _KernelRate:
    """Bytes per second that each shard's kernel reads and writes rows at, and how well it is known."""

    bytes_per_second: Floats  # (num_shards,)
    evidence: Codes  # (num_shards,)


class TorchRecModel:
    """TorchRec's ``EmbeddingPerfEstimator`` as columns of numbers."""

    name = "torchrec"
    version = "1.8.0"  # the release that it reproduces
    rounding = 0.0

    @property
    def counted_phases(self) -> Bools:
        """All but input communication, which TorchRec computes and leaves out of its total."""
        counted = np.ones(NUM_PHASES, dtype=np.bool_)
        counted[Phase.INPUT_COMM] = False
        return counted

    def predict(self, work: ShardWork, hardware: Hardware) -> ShardSeconds:
        """Price every row of ``work``; see :class:`cost_models.protocol.CostModel`."""
        tally = Tally(work.num_shards)
        if work.num_shards == 0:
            return tally.result()
        sizes = _sizes(work)
        rate = _kernel_rate(work, table_memory(hardware), hardware)
        _add_compute(tally, work, sizes, rate)
        _add_prefetch(tally, work, hardware)
        _add_exchange(tally, work, sizes, hardware)
        _add_data_parallel(tally, work, sizes, hardware)
        copied = np.where(sizes.row_wise | sizes.host_rows, sizes.backward_output_bytes, 0.0)
        tally.add(Phase.BACKWARD_COMM, copied * BATCHED_COPY_FACTOR / rate.bytes_per_second, rate.evidence)
        dense_passes = _table_bytes(work, sizes) * DATA_PARALLEL_KERNELS_FACTOR
        tally.add(Phase.BACKWARD_COMM, dense_passes / rate.bytes_per_second, rate.evidence)
        return tally.result()


def _kernel_rate(work: ShardWork, memory: TableMemory, hardware: Hardware) -> _KernelRate:
    """Return TorchRec's rate of each shard's kernel.

    Raises
    ------
    MissingHardwareNumber
        The rate of the link to host memory, or of block storage, is needed and not known.
    UnsupportedWork
        TorchRec has no rate for storage-class memory, for hash tables, nor for kernels beyond the device's memory where
        there is no accelerator.
    """
    if work.in_scm.any():
        raise UnsupportedWork(TorchRecModel.name, "rows in storage-class memory")
    hashed = work.kernel[IS_HASHED[work.kernel]]
    if len(hashed):
        raise UnsupportedWork(TorchRecModel.name, f"kernel {Kernel(int(hashed[0])).label}")
    beyond = np.setdiff1d(work.kernel, tuple(DEVICE_KERNELS))
    if not memory.is_accelerator and len(beyond):
        raise UnsupportedWork(TorchRecModel.name, f"kernel {Kernel(int(beyond[0])).label} without an accelerator")
    value = memory.rate.value * np.where(work.kernel == Kernel.DENSE, DENSE_RATE_FRACTION, 1.0)
    evidence = np.full(work.num_shards, memory.rate.evidence, dtype=np.int8)
    cached = (work.kernel == Kernel.FUSED_UVM_CACHING) & (not work.prefetches)
    over_link = cached | (work.kernel == Kernel.FUSED_UVM)
    if over_link.any():
        link = _host_link(hardware)
        share = np.where(cached, work.cache_load_factor, 0.0)
        mixed = (share * memory.rate.value + (1.0 - share) * link.value) / HOST_MEMORY_DIVISOR
        value = np.where(over_link, mixed, value)
        weaker = np.maximum(link.evidence, np.where(cached, evidence, np.int8(Evidence.MEASURED)))
        evidence = np.where(over_link, weaker, evidence).astype(np.int8)
    stored = work.kernel == Kernel.KEY_VALUE
    if stored.any():
        storage = hardware.quantity("ssd_bytes_per_second", needed_for="TorchRec's price of rows in block storage")
        value = np.where(stored, storage.value, value)
        evidence = np.where(stored, np.int8(storage.evidence), evidence)
    return _KernelRate(bytes_per_second=value, evidence=evidence)


def _host_link(hardware: Hardware) -> Quantity:
    return hardware.quantity("host_link_bytes_per_second", needed_for="TorchRec's price of rows in host memory")


def _sizes(work: ShardWork) -> _Sizes:
    """Count the bytes of the table in the module docstring."""
    route = ROUTES[work.scheme]
    data_parallel, whole_rows = route == Route.NONE, route == Route.WHOLE
    row_wise, host_rows = route == Route.WORLD_SUM, route == Route.HOST_SUM
    ranks = np.where(data_parallel, 1.0, float(work.num_ranks))  # whose batches the shard serves
    # TorchRec divides the ids evenly over the ranks that share a column range.
    shared_by = np.where(row_wise, float(work.num_ranks), np.where(host_rows, float(work.ranks_per_group), 1.0))
    ids = work.batch_ids / shared_by * ranks
    input_bytes = np.ceil(ids * ID_BYTES) * np.where(work.is_weighted, 2.0, 1.0)
    columns = work.shard_columns.astype(np.float64)
    lookup_columns = np.where(whole_rows, np.maximum(columns, MIN_LOOKUP_COLUMNS), columns)
    outputs = np.where(work.is_pooled, work.expected_outputs, work.expected_outputs / shared_by) * ranks
    # Sequences of row cuts inside a host travel as stored: only pooled reduce-scatters have codecs.
    as_stored = data_parallel | (host_rows & ~work.is_pooled)
    forward = _wire_bytes(work.forward_comm_element_bytes, work, as_stored)
    backward = _wire_bytes(work.backward_comm_element_bytes, work, as_stored)
    return _Sizes(
        whole_rows=whole_rows,
        row_wise=row_wise,
        host_rows=host_rows,
        data_parallel=data_parallel,
        input_bytes=input_bytes,
        lookup_bytes=ids * lookup_columns * work.element_bytes,
        forward_output_bytes=outputs * columns * forward,
        backward_output_bytes=outputs * columns * backward,
    )


def _wire_bytes(given: Floats, work: ShardWork, as_stored: Bools) -> Floats:
    """Bytes of an element on the wire: as given, else as the table stores it."""
    return np.where(np.isnan(given) | as_stored, work.element_bytes, given)


def _add_compute(tally: Tally, work: ShardWork, sizes: _Sizes, rate: _KernelRate) -> None:
    """Forward and backward kernels."""
    columns = work.shard_columns
    narrow = np.where(columns >= 128, 1.0, np.where(columns >= 64, HALF_BLOCK_PENALTY, QUARTER_BLOCK_PENALTY))
    penalty = np.where(sizes.whole_rows, narrow, 1.0)
    moved = sizes.input_bytes + sizes.lookup_bytes + sizes.forward_output_bytes
    forward = moved * penalty / rate.bytes_per_second
    weighted = np.where(work.is_weighted, WEIGHTED_KERNEL_MULTIPLIER, 0.0)
    tally.add(Phase.FORWARD_COMPUTE, forward, rate.evidence)
    tally.add(Phase.BACKWARD_COMPUTE, forward * (BACKWARD_MULTIPLIER + weighted), rate.evidence)


def _add_prefetch(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Missed rows of caches over host memory, if statistics say how many there are."""
    known = (work.kernel == Kernel.FUSED_UVM_CACHING) & ~np.isnan(work.missed_share)
    if not known.any():
        return
    link = _host_link(hardware)
    # A miss-ratio curve alone says nothing of distinct rows: its share is one of the most there can be.
    missed = np.where(known, missed_rows(work), 0.0)
    tally.add(Phase.PREFETCH, missed * work.shard_columns * work.element_bytes / link.value, link.evidence)


def _add_exchange(tally: Tally, work: ShardWork, sizes: _Sizes, hardware: Hardware) -> None:
    """Communication of every scheme but data_parallel."""
    world_wide = sizes.whole_rows | sizes.row_wise
    exchanged = ~sizes.data_parallel
    if not exchanged.any():
        return
    one_host = work.num_ranks <= work.ranks_per_host
    world = _link(hardware, inside=one_host, needed_for="exchanging ids and rows among all ranks")
    ids = np.where(exchanged, np.ceil(work.batch_ids * work.num_ranks * ID_BYTES), 0.0)
    tally.add(Phase.INPUT_COMM, ids / world.value, world.evidence)
    ways = (
        (Phase.FORWARD_COMM, sizes.forward_output_bytes, work.forward_comm_element_bytes),
        (Phase.BACKWARD_COMM, sizes.backward_output_bytes, work.backward_comm_element_bytes),
    )
    for phase, output_bytes, given in ways:
        tally.add(phase, np.where(world_wide, output_bytes, 0.0) / world.value, world.evidence)
        if not sizes.host_rows.any():
            continue
        in_host = work.ranks_per_group <= work.ranks_per_host
        near = _link(hardware, inside=in_host, needed_for="exchanging rows among the ranks of a host or pod")
        tally.add(phase, np.where(sizes.host_rows, output_bytes, 0.0) / near.value, near.evidence)
        if work.num_groups > 1:
            element_bytes = _wire_bytes(given, work, np.zeros_like(sizes.host_rows))
            across = work.expected_outputs * work.num_groups * work.shard_columns * element_bytes
            tally.add(phase, np.where(sizes.host_rows, across, 0.0) / world.value, world.evidence)


def _add_data_parallel(tally: Tally, work: ShardWork, sizes: _Sizes, hardware: Hardware) -> None:
    """All-reduce of dense gradients, one network card per rank, even on a single host."""
    if not sizes.data_parallel.any():
        return
    network = _link(hardware, inside=False, needed_for="TorchRec's all-reduce of data_parallel gradients")
    hosts = min(work.num_hosts, 2)
    rounds = (2 * hosts - 1) / hosts * (2 if work.num_hosts > 2 else 1)
    seconds = _table_bytes(work, sizes) * rounds / (network.value * work.ranks_per_host)
    tally.add(Phase.BACKWARD_COMM, seconds, network.evidence)


def _table_bytes(work: ShardWork, sizes: _Sizes) -> Floats:
    """Stored bytes of replicated tables, 0 for the others."""
    return np.where(
        sizes.data_parallel, work.shard_rows.astype(np.float64) * work.shard_columns * work.element_bytes, 0.0
    )


def _link(hardware: Hardware, *, inside: bool, needed_for: str) -> Quantity:
    level = "intra_host" if inside else "inter_host"
    return hardware.quantity(f"{level}_bytes_per_second", needed_for=needed_for)
