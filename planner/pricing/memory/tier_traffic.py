"""What a step moves through host memory, storage-class memory and block storage, and how long each is busy with it.

Counted from the work of shards, without cost models: a model that hides or forgets the traffic of a tier must not make
a plan that the tier cannot serve. A tier of a rank is too slow if it is busy for longer than a step takes; since the
numbers of a tier are one rank's share, the ranks of a host then never ask more of it than it has.
"""

from dataclasses import dataclass, fields

import numpy as np

from cost_models.analytic.gpu_memory import host_reads
from cost_models.analytic.hash_tables import host_rows, unheld_hash_rows, value_bytes
from cost_models.analytic.sizes import distinct_rows, missed_rows
from cost_models.analytic.table_memory import CACHE_LINE_BYTES, cache_lines, scm_block_bytes
from cost_models.analytic.tiers import unheld_rows
from cost_models.arrays import Floats
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import ShardWork
from cost_models.vocabulary import HOST_TIERS, NUM_TIERS, Kernel, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What shards, or ranks, move through each tier in one step; every array of shape (count, NUM_TIERS).

    Zero in the device's own memory, whose time is what kernels are priced by.
    """

    read_bytes: Floats
    written_bytes: Floats
    operations: Floats  # of block storage
    busy_seconds: Floats


def shard_traffic(work: ShardWork, hardware: Hardware) -> Traffic:
    """Return what each shard moves; tiers without a rate in ``hardware`` are taken as never busy."""
    moved = (
        _storage(work, hardware),
        *(_host_memory(work, hardware, tier) for tier in HOST_TIERS),
        _hash_tables(work, hardware),
    )
    columns = {field.name: sum(getattr(one, field.name) for one in moved) for field in fields(Traffic)}
    return Traffic(**columns)


def _rate(hardware: Hardware, name: str) -> float:
    return hardware.numbers[name].value if hardware.has(name) else np.inf


def _columns(tier: Tier, amount: Floats) -> Floats:
    columns = np.zeros((len(amount), NUM_TIERS))
    columns[:, tier] = amount
    return columns


def _host_memory(work: ShardWork, hardware: Hardware, tier: Tier) -> Traffic:
    """Of one memory, rows and state per weight that kernels use directly, rows that caches fetch and write back."""
    in_scm = tier is Tier.SCM
    is_here = work.in_scm == in_scm
    direct = is_here & (work.kernel == Kernel.FUSED_UVM)
    cached = is_here & (work.kernel == Kernel.FUSED_UVM_CACHING)
    block = scm_block_bytes(hardware) if in_scm else CACHE_LINE_BYTES
    row = cache_lines(work.shard_columns * work.element_bytes + work.row_overhead_bytes, block)
    state = cache_lines(work.shard_columns * work.optimizer_element_bytes, block)
    cold_rows = distinct_rows(work) * (1 - work.hot_distinct_share)
    updated = np.where((direct | cached) & work.is_trained, cold_rows, 0.0)
    changed = updated * (state + np.where(direct, row, 0.0))  # read, and written again
    fetched = np.where(cached, missed_rows(work) * row, 0.0)
    gathered = host_reads(hardware, work.lookups * (1 - work.hot_lookup_share), cold_rows)
    unheld = np.where(cached, unheld_rows(work), 0.0)
    read = np.where(direct, gathered, unheld) * row + changed + fetched
    written = changed + np.where(work.is_trained, fetched, 0.0)
    if in_scm:
        busy = read / _rate(hardware, "scm_bytes_per_second") + written / _rate(hardware, "scm_write_bytes_per_second")
    else:
        busy = (read + written) / _rate(hardware, "ddr_bytes_per_second")
    return Traffic(
        read_bytes=_columns(tier, read),
        written_bytes=_columns(tier, written),
        operations=_columns(tier, np.zeros(len(read))),
        busy_seconds=_columns(tier, busy),
    )


def _hash_tables(work: ShardWork, hardware: Hardware) -> Traffic:
    """Values of hash tables in host memory: read and written by kernels, or fetched into a cache and returned."""
    line = cache_lines(value_bytes(work))
    cached = np.where(work.kernel == Kernel.HASH_CACHING, missed_rows(work) + unheld_hash_rows(work), 0.0)
    read = (host_rows(work) + cached) * line
    written = np.where(work.is_trained, read, 0.0)
    return Traffic(
        read_bytes=_columns(Tier.DDR, read),
        written_bytes=_columns(Tier.DDR, written),
        operations=_columns(Tier.DDR, np.zeros(len(read))),
        busy_seconds=_columns(Tier.DDR, (read + written) / _rate(hardware, "ddr_bytes_per_second")),
    )


def _storage(work: ShardWork, hardware: Hardware) -> Traffic:
    """Blocks that caches over block storage read at random, and write back."""
    stored = work.kernel == Kernel.KEY_VALUE
    block = hardware.numbers["ssd_block_bytes"].value if hardware.has("ssd_block_bytes") else 1.0
    row = work.shard_columns * work.element_bytes + work.row_overhead_bytes
    operations = np.where(stored, missed_rows(work) * np.ceil(row / block), 0.0)
    read = operations * block
    written = np.where(work.is_trained, read, 0.0)
    reading = np.maximum(
        operations / _rate(hardware, "ssd_reads_per_second"), read / _rate(hardware, "ssd_bytes_per_second")
    )
    return Traffic(
        read_bytes=_columns(Tier.SSD, read),
        written_bytes=_columns(Tier.SSD, written),
        operations=_columns(Tier.SSD, operations),
        busy_seconds=_columns(Tier.SSD, reading + written / _rate(hardware, "ssd_write_bytes_per_second")),
    )
