r"""Rows that lie outside the device's memory: what a step moves from and to host memory and block storage.

Symbols as in :mod:`cost_models.analytic.roofline`: ``n`` lookups, ``u`` distinct rows, ``r`` bytes of a stored row;
``m`` the share of the distinct rows that a cache misses, ``c(.)`` whole cache lines of 64 bytes, ``b(.)`` whole blocks.

- ``fused_uvm``: the kernels read and write host memory through the link. Forward, a row that is looked up twice is
  read twice [1]; but of the lookups that repeat a row a GPU serves a third from its L2, where the first read is still
  under way [4]. Backward, rows and element state are read while as many are written. Row-wise state stays in the
  device's memory [2].
- ``fused_uvm`` split by heat: the same for the lookups and rows that the hot part does not serve.
- ``fused_uvm_caching``: before the step, the missed rows ``m u`` are fetched and, where rows are trained, as many are
  written back, since every row that was looked up was changed: ``max(in / link, out / return link, (in + out) / DDR)``.
  Distinct rows that a cache of ``c R`` rows cannot hold at once are read by the forward kernel itself.
  Element state of the optimizer is never cached [2]: the backward pass reads and writes it through the link.
- rows of either in storage-class memory: the same with whole blocks of that memory, and one rate of reads and another
  of writes where host memory has one for both: read in ``max(c(r) / link, b(r) / reads)``, and of caches fetched and
  returned in ``max(in / link, out / return link, in / reads + out / writes)``;
- ``key_value``: the same rows, from block storage: ``max(blocks / reads per second, bytes / rate)`` both ways.
- Before both caches the ids of a step are looked for in their tags [3]. Rows travel meanwhile: the longer time
  counts [4].

Every rate of the host's memories and storage is one rank's share, so that the ranks of a host never take more
than there is.

References
----------
.. [1] FBGEMM reads managed memory by zero copy: there is no cache between a kernel and the link but the device's L2.
.. [2] FBGEMM 1.8.0 ``split_table_batched_embeddings_ops_training.construct_split_state``.
.. [3] FBGEMM 1.8.0 ``lru_cache_find_uncached``, ``lxu_cache_lookup`` (``DEFAULT_ASSOC`` = 32 on CUDA devices).
.. [4] NVIDIA recsys-examples, ``corelib/dynamicemb/benchmark``: UVM and UVM_CACHING on one H100.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.gpu_memory import host_reads
from cost_models.analytic.sizes import distinct_rows, missed_rows, stored_row_bytes
from cost_models.analytic.table_memory import CACHE_LINE_BYTES, TAG_SET_BYTES, cache_lines, scm_block_bytes
from cost_models.analytic.tally import Tally
from cost_models.arrays import Bools, Floats
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.protocol import ShardWork
from cost_models.vocabulary import HOST_TIERS, IS_CACHED, IS_HASHED, Evidence, Kernel, Phase, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Seconds of finding ids in caches, (num_shards,), while the rows that are missing travel."""

    seconds: Floats
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory:
    """A memory of the host as a device sees it: the link, both ways, and the memory behind it, one rank's share.

    ``reads`` and ``writes`` are one and the same rate of host memory. Amounts are rows and the bytes of each: the link
    moves whole cache lines of them, the memory whole blocks.
    """

    gather_link: Quantity  # kernels read
    update_link: Quantity  # kernels read while they write as much
    cache_link: Quantity  # caches fetch
    return_link: Quantity  # and return
    reads: Quantity
    writes: Quantity
    block_bytes: float  # of memory: at least a cache line

    @property
    def memory_evidence(self) -> Evidence:
        """The weaker of the memory's own rates."""
        return Evidence(max(self.reads.evidence, self.writes.evidence))

    @property
    def gather_evidence(self) -> Evidence:
        """The weakest of what kernels read by."""
        return Evidence(max(self.gather_link.evidence, self.reads.evidence))

    @property
    def update_evidence(self) -> Evidence:
        """The weakest of what kernels read and write by."""
        return Evidence(max(self.update_link.evidence, self.memory_evidence))

    @property
    def copy_evidence(self) -> Evidence:
        """The weakest of what caches fetch and return by."""
        return Evidence(max(self.cache_link.evidence, self.return_link.evidence, self.memory_evidence))

    def read_seconds(self, rows: Floats, row_bytes: Floats) -> Floats:
        """Seconds of a kernel that reads rows itself."""
        over_link, in_memory = self._moved(rows, (row_bytes,))
        seconds: Floats = np.maximum(over_link / self.gather_link.value, in_memory / self.reads.value)
        return seconds

    def update_seconds(self, rows: Floats, *row_bytes: Floats) -> Floats:
        """Seconds of a kernel that reads rows, of one or several parts that lie apart, and writes them meanwhile."""
        over_link, in_memory = self._moved(rows, row_bytes)
        memory = in_memory / self.reads.value + in_memory / self.writes.value
        seconds: Floats = np.maximum(over_link / self.update_link.value, memory)
        return seconds

    def copy_seconds(self, fetched_rows: Floats, returned_rows: Floats, row_bytes: Floats) -> Floats:
        """Seconds of copies in both directions at once."""
        fetched, read = self._moved(fetched_rows, (row_bytes,))
        returned, written = self._moved(returned_rows, (row_bytes,))
        both: Floats = np.maximum(fetched / self.cache_link.value, returned / self.return_link.value)
        return np.maximum(both, read / self.reads.value + written / self.writes.value)

    def _moved(self, rows: Floats, row_bytes: tuple[Floats, ...]) -> tuple[Floats, Floats]:
        """Bytes over the link, and bytes in the memory."""
        lines = np.add.reduce([cache_lines(part) for part in row_bytes])
        blocks = np.add.reduce([cache_lines(part, self.block_bytes) for part in row_bytes])
        return rows * lines, rows * blocks


def host_links(hardware: Hardware, *, needed_for: str) -> tuple[Quantity, Quantity]:
    """Return the rates to a device and back; raises ``MissingHardwareNumber`` where none is known."""
    link = hardware.quantity("host_link_bytes_per_second", needed_for=needed_for)
    return link, return_link(hardware, needed_for=needed_for)


def return_link(hardware: Hardware, *, needed_for: str) -> Quantity:
    """Return the rate from a device to its host; a link whose way back is not known returns as fast as it fetches."""
    back = "host_link_return_bytes_per_second"
    return hardware.quantity(back if hardware.has(back) else "host_link_bytes_per_second", needed_for=needed_for)


def host_memory(hardware: Hardware, tier: Tier = Tier.DDR) -> HostMemory:
    """Return the numbers of a memory of the host; raises ``MissingHardwareNumber`` where one is not known."""
    in_scm = tier is Tier.SCM
    needed_for = "rows in storage-class memory" if in_scm else "rows in host memory"
    link, back = host_links(hardware, needed_for=needed_for)

    def of_kernels(use: str, otherwise: Quantity) -> Quantity:
        name = f"host_link_{use}_bytes_per_second"
        return hardware.quantity(name, needed_for=needed_for) if hardware.has(name) else otherwise

    reads = hardware.quantity(f"{tier.label}_bytes_per_second", needed_for=needed_for)
    return HostMemory(
        gather_link=of_kernels("gather", link),
        update_link=of_kernels("update", link),
        cache_link=of_kernels("cache", link),
        return_link=of_kernels("cache", back),
        reads=reads,
        writes=hardware.quantity("scm_write_bytes_per_second", needed_for=needed_for) if in_scm else reads,
        block_bytes=scm_block_bytes(hardware) if in_scm else CACHE_LINE_BYTES,
    )


def add_tiers(tally: Tally, work: ShardWork, hardware: Hardware, sought: Sought) -> None:
    """Add what each shard moves outside the device's memory, and the seconds in which caches are searched."""
    for tier in HOST_TIERS:
        is_here = work.in_scm == (tier is Tier.SCM)
        _add_direct(tally, work, hardware, tier, is_here)
        _add_copies(tally, work, hardware, tier, is_here, sought)
    _add_storage(tally, work, hardware, sought)


def tag_bytes(work: ShardWork) -> Floats:
    """Bytes of tags that a step reads in the device's memory, once for every id."""
    return np.where(is_cached(work), work.lookups * TAG_SET_BYTES, 0.0)


def unheld_rows(work: ShardWork) -> Floats:
    """Distinct rows of a step that a cache in the device's memory cannot hold at once, so that kernels read them."""
    held = np.nan_to_num(work.cache_load_factor, nan=1.0) * work.shard_rows
    return np.where(work.kernel == Kernel.FUSED_UVM_CACHING, np.maximum(distinct_rows(work) - held, 0.0), 0.0)


def is_cached(work: ShardWork) -> Bools:
    """Which shards have a cache of FBGEMM's in the device's memory; hash tables find what they hold by key."""
    cached: Bools = IS_CACHED[work.kernel] & ~IS_HASHED[work.kernel]
    return cached


def _add_direct(tally: Tally, work: ShardWork, hardware: Hardware, tier: Tier, is_here: Bools) -> None:
    """Kernels that read and write the host themselves: all rows of fused_uvm, element state of cached tables."""
    uncached = is_here & (work.kernel == Kernel.FUSED_UVM)
    unheld = np.where(is_here, unheld_rows(work), 0.0)
    state = work.shard_columns * work.optimizer_element_bytes
    with_state = (uncached | (is_here & (work.kernel == Kernel.FUSED_UVM_CACHING))) & (state > 0)
    if not (uncached | with_state | (unheld > 0)).any():
        return
    host, row = host_memory(hardware, tier), stored_row_bytes(work)
    cold_rows = distinct_rows(work) * (1 - work.hot_distinct_share)
    read = host_reads(hardware, work.lookups * (1 - work.hot_lookup_share), cold_rows)
    updated = np.where(uncached & work.is_trained, row, 0.0), np.where(with_state, state, 0.0)
    read_seconds = host.read_seconds(np.where(uncached, read, unheld), row)
    tally.add(Phase.FORWARD_COMPUTE, read_seconds, host.gather_evidence)
    tally.add(Phase.BACKWARD_COMPUTE, host.update_seconds(cold_rows, *updated), host.update_evidence)


def _add_copies(tally: Tally, work: ShardWork, hardware: Hardware, tier: Tier, is_here: Bools, sought: Sought) -> None:
    """Missed rows of caches over the host's memory."""
    cached = is_here & (work.kernel == Kernel.FUSED_UVM_CACHING)
    if not cached.any():
        return
    host = host_memory(hardware, tier)
    fetched = np.where(cached, missed_rows(work), 0.0)
    returned = np.where(work.is_trained, fetched, 0.0)
    copied = host.copy_seconds(fetched, returned, stored_row_bytes(work))
    _add_longer(tally, cached, copied, host.copy_evidence, sought)


def _add_longer(tally: Tally, cached: Bools, copied: Floats, evidence: Evidence, sought: Sought) -> None:
    """Add the longer one of copies and of the search for ids, with its own evidence."""
    seconds = np.where(cached, np.maximum(copied, sought.seconds), 0.0)
    tally.add(Phase.PREFETCH, seconds, np.where(copied >= sought.seconds, evidence, sought.evidence).astype(np.int8))


def _add_storage(tally: Tally, work: ShardWork, hardware: Hardware, sought: Sought) -> None:
    """Missed rows of caches over block storage: whole blocks at random, then the link."""
    stored = work.kernel == Kernel.KEY_VALUE
    if not stored.any():
        return
    needed_for = "rows in block storage"
    block = hardware.quantity("ssd_block_bytes", needed_for=needed_for)
    reads = hardware.quantity("ssd_reads_per_second", needed_for=needed_for)
    rate = hardware.quantity("ssd_bytes_per_second", needed_for=needed_for)
    written = hardware.quantity("ssd_write_bytes_per_second", needed_for=needed_for)
    host = host_memory(hardware)
    rows = np.where(stored, missed_rows(work), 0.0)
    blocks = rows * np.ceil(stored_row_bytes(work) / block.value)
    fetched_bytes = blocks * block.value
    returned_bytes = np.where(work.is_trained, fetched_bytes, 0.0)
    seconds = np.maximum(blocks / reads.value, fetched_bytes / rate.value) + returned_bytes / written.value
    written_rows = np.where(work.is_trained, rows, 0.0)
    seconds = np.maximum(seconds, host.copy_seconds(rows, written_rows, stored_row_bytes(work)))
    evidence = Evidence(max(host.copy_evidence, *(one.evidence for one in (block, reads, rate, written))))
    _add_longer(tally, stored, seconds, evidence, sought)
