r"""Rows that lie outside the device's memory: what a step moves from and to host memory and block storage.

Symbols as in :mod:`cost_models.analytic.roofline`: ``n`` lookups, ``u`` distinct rows, ``r`` bytes of a stored row;
``m`` the share of the distinct rows that a cache misses, ``c(.)`` whole cache lines of 64 bytes, ``b(.)`` whole blocks.

- ``fused_uvm``: the kernels read and write host memory through the link. Forward ``n c(r)``, since a row that is looked
  up twice is read twice [1]; backward ``2 u (c(r) + element state)``. Row-wise state stays in the device's memory [2].
- ``fused_uvm`` split by heat: the same for the lookups and rows that the hot part does not serve.
- ``fused_uvm_caching``: before the step, the missed rows ``m u`` are fetched and, where rows are trained, as many are
  written back, since every row that was looked up was changed: ``max(in / link, out / return link, (in + out) / DDR)``.
  Element state of the optimizer is never cached [2]: the backward pass reads and writes it through the link.
- rows of either in storage-class memory: the same with whole blocks of that memory, and one rate of reads and another
  of writes where host memory has one for both: read in ``max(c(r) / link, b(r) / reads)``, and of caches fetched and
  returned in ``max(in / link, out / return link, in / reads + out / writes)``;
- ``key_value``: the same rows, from block storage: ``max(blocks / reads per second, bytes / rate)`` both ways.
- Both caches look every id up in a set of 32 tags of 8 bytes in the device's memory and, where the batch is looked up
  ahead, sort its ids once more to find the distinct ones [3].

Every rate of the host's memories and storage is one rank's share, so that the ranks of a host never take more
than there is.

References
----------
.. [1] FBGEMM reads managed memory by zero copy: there is no cache between a kernel and the link but the device's L2.
.. [2] FBGEMM 1.8.0 ``split_table_batched_embeddings_ops_training.construct_split_state``.
.. [3] FBGEMM 1.8.0 ``lru_cache_find_uncached``, ``lxu_cache_lookup`` (``DEFAULT_ASSOC`` = 32 on CUDA devices).
"""

from dataclasses import dataclass

import numpy as np

from cost_models.analytic.sizes import distinct_rows, missed_rows, stored_row_bytes
from cost_models.analytic.table_memory import CACHE_LINE_BYTES, cache_lines, scm_block_bytes
from cost_models.analytic.tally import Tally
from cost_models.arrays import Bools, Floats
from cost_models.hardware.hardware import Hardware, Quantity
from cost_models.protocol import ShardWork
from cost_models.vocabulary import HOST_TIERS, IS_CACHED, Evidence, Kernel, Phase, Tier

TAG_SET_BYTES = 32 * 8.0  # one cache set: 32 tags of int64


@dataclass(frozen=True, slots=True, kw_only=True)
class HostMemory:
    """A memory of the host as a device sees it: the link, both ways, and the memory behind it, one rank's share.

    ``reads`` and ``writes`` are one and the same rate of host memory. Amounts are rows and the bytes of each: the link
    moves whole cache lines of them, the memory whole blocks.
    """

    link: Quantity
    return_link: Quantity
    reads: Quantity
    writes: Quantity
    block_bytes: float  # of memory: at least a cache line

    @property
    def evidence(self) -> Evidence:
        """The weakest of all."""
        return Evidence(max(one.evidence for one in (self.link, self.return_link, self.reads, self.writes)))

    def read_seconds(self, rows: Floats, *row_bytes: Floats) -> Floats:
        """Seconds of a kernel that reads rows itself, of one or several parts that lie apart."""
        return self._direct(rows, row_bytes, self.reads)

    def update_seconds(self, rows: Floats, *row_bytes: Floats) -> Floats:
        """Seconds of a kernel that reads rows and writes them again."""
        return self._direct(rows, row_bytes, self.reads) + self._direct(rows, row_bytes, self.writes)

    def _direct(self, rows: Floats, row_bytes: tuple[Floats, ...], rate: Quantity) -> Floats:
        over_link, in_memory = self._moved(rows, row_bytes)
        seconds: Floats = np.maximum(over_link / self.link.value, in_memory / rate.value)
        return seconds

    def copy_seconds(self, fetched_rows: Floats, returned_rows: Floats, row_bytes: Floats) -> Floats:
        """Seconds of copies in both directions at once."""
        fetched, read = self._moved(fetched_rows, (row_bytes,))
        returned, written = self._moved(returned_rows, (row_bytes,))
        both: Floats = np.maximum(fetched / self.link.value, returned / self.return_link.value)
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
    reads = hardware.quantity(f"{tier.label}_bytes_per_second", needed_for=needed_for)
    return HostMemory(
        link=link,
        return_link=back,
        reads=reads,
        writes=hardware.quantity("scm_write_bytes_per_second", needed_for=needed_for) if in_scm else reads,
        block_bytes=scm_block_bytes(hardware) if in_scm else CACHE_LINE_BYTES,
    )


def add_tiers(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
    """Add what each shard moves outside the device's memory."""
    for tier in HOST_TIERS:
        is_here = work.in_scm == (tier is Tier.SCM)
        _add_direct(tally, work, hardware, tier, is_here)
        _add_copies(tally, work, hardware, tier, is_here)
    _add_storage(tally, work, hardware)


def tag_bytes(work: ShardWork) -> Floats:
    """Bytes of tags that a step reads in the device's memory, once for every id."""
    return np.where(is_cached(work), work.lookups * TAG_SET_BYTES, 0.0)


def is_cached(work: ShardWork) -> Bools:
    """Which shards keep a part of their rows in the device's memory."""
    cached: Bools = IS_CACHED[work.kernel]
    return cached


def _add_direct(tally: Tally, work: ShardWork, hardware: Hardware, tier: Tier, is_here: Bools) -> None:
    """Kernels that read and write the host themselves: all rows of fused_uvm, element state of cached tables."""
    uncached = is_here & (work.kernel == Kernel.FUSED_UVM)
    state = work.shard_columns * work.optimizer_element_bytes
    with_state = (uncached | (is_here & (work.kernel == Kernel.FUSED_UVM_CACHING))) & (state > 0)
    if not (uncached | with_state).any():
        return
    host, row = host_memory(hardware, tier), stored_row_bytes(work)
    cold_lookups = work.lookups * (1 - work.hot_lookup_share)
    cold_rows = distinct_rows(work) * (1 - work.hot_distinct_share)
    updated = np.where(uncached & work.is_trained, row, 0.0), np.where(with_state, state, 0.0)
    tally.add(Phase.FORWARD_COMPUTE, host.read_seconds(np.where(uncached, cold_lookups, 0.0), row), host.evidence)
    tally.add(Phase.BACKWARD_COMPUTE, host.update_seconds(cold_rows, *updated), host.evidence)


def _add_copies(tally: Tally, work: ShardWork, hardware: Hardware, tier: Tier, is_here: Bools) -> None:
    """Missed rows of caches over the host's memory."""
    cached = is_here & (work.kernel == Kernel.FUSED_UVM_CACHING)
    if not cached.any():
        return
    host = host_memory(hardware, tier)
    fetched = np.where(cached, missed_rows(work), 0.0)
    returned = np.where(work.is_trained, fetched, 0.0)
    tally.add(Phase.PREFETCH, host.copy_seconds(fetched, returned, stored_row_bytes(work)), host.evidence)


def _add_storage(tally: Tally, work: ShardWork, hardware: Hardware) -> None:
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
    evidence = Evidence(max(host.evidence, *(one.evidence for one in (block, reads, rate, written))))
    tally.add(Phase.PREFETCH, seconds, evidence)
