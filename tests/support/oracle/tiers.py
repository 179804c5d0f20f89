"""What a step moves through the tiers next to the device: docs/memory-tiers.md#bytes-and-bytes-per-second."""

import math
from dataclasses import dataclass

from tests.support.oracle.hash_tables.dynamicemb import KERNELS, host_rows, unheld_rows, value_bytes
from tests.support.oracle.machine import Machine, up_to
from tests.support.oracle.shards import Shard


@dataclass
class Moved:
    """What a rank moves through a tier."""

    read: float = 0.0
    written: float = 0.0
    operations: float = 0.0
    busy: float = 0.0


def add_shard(machine: Machine, shard: Shard, moved: Moved) -> None:
    """Add what a shard moves through the tier of its rows."""
    numbers, trained = machine.numbers, shard.table.is_trained
    fetched = shard.missed_rows
    returned = fetched if trained else 0.0
    if shard.kernel == "key_value":
        block = numbers["ssd_block_bytes"]
        blocks, blocks_back = (rows * math.ceil(shard.r / block) for rows in (fetched, returned))
        moved.read += blocks * block
        moved.written += blocks_back * block
        moved.operations += blocks
        moved.busy += max(blocks / numbers["ssd_reads_per_second"], blocks * block / numbers["ssd_bytes_per_second"])
        moved.busy += blocks_back * block / numbers["ssd_write_bytes_per_second"]
        return
    if shard.kernel in KERNELS:
        in_cache = fetched + unheld_rows(shard) if shard.kernel == "hash_caching" else 0.0
        read = (host_rows(shard) + in_cache) * up_to(value_bytes(shard), 64)
        moved.read += read
        moved.written += read if trained else 0.0
        moved.busy += read * (2 if trained else 1) / numbers["ddr_bytes_per_second"]
        return
    in_scm = shard.tier == "scm"
    grain = max(64.0, numbers.get("scm_block_bytes", 0.0)) if in_scm else 64.0
    row, state = up_to(shard.r, grain), up_to(shard.columns * shard.s, grain)
    cold = shard.u * (1 - shard.hot_distinct) if trained else 0.0
    if shard.kernel == "fused_uvm":
        gathered = machine.host_reads(shard.n * (1 - shard.hot_lookups), shard.u * (1 - shard.hot_distinct))
        read, written = gathered * row + cold * (row + state), cold * (row + state)
    else:
        read, written = (fetched + shard.unheld_rows) * row + cold * state, returned * row + cold * state
    moved.read += read
    moved.written += written
    reads, writes = ("scm_bytes_per_second", "scm_write_bytes_per_second") if in_scm else ("ddr_bytes_per_second",) * 2
    moved.busy += read / numbers[reads] + written / numbers[writes]
