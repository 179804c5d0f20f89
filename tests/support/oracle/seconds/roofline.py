"""Seconds on the device and next to it: docs/cost-models.md#on-the-device, #beside-the-device and #serving."""

import math

from tests.support.oracle.hash_tables.dynamicemb import added_seconds, host_rows
from tests.support.oracle.hash_tables.hugectr import find_seconds, has_maps
from tests.support.oracle.hash_tables.managed_collisions import slot_seconds
from tests.support.oracle.machine import Machine, up_to
from tests.support.oracle.shards import CACHED, ROW_CUTS, Job, Shard

Seconds = dict[str, float]


def lookup_seconds(job: Job, shard: Shard) -> Seconds:
    """Return the seconds of a training step but for communication."""
    machine, f = job.machine, job.wire_bytes("output_dtype") or 4.0
    w, d, sort = shard.table.id_bytes, shard.columns, _sort_bytes(shard)
    rate, is_uvm, is_cached = machine.memory_rate, shard.kernel == "fused_uvm", shard.kernel in CACHED
    a, b, part = 1.0, 1.0, 1.0
    if is_uvm:
        a, b, part = shard.hot_lookups, shard.hot_distinct, shard.hot_rows / shard.table.num_rows
    forward = (shard.n * w + shard.o * d * f) / rate
    forward += machine.gather_seconds(a * shard.n, b * shard.u, part * shard.rows, shard.r)
    if shard.hot_rows:
        forward += shard.n * machine.whole(4) / rate
    forward = _with_outputs(machine, shard, forward)
    gradients = min(shard.o, shard.n)
    backward = shard.n * (w + sort) / rate + machine.gradient_seconds(shard.n, gradients, d * f)
    backward += shard.n * machine.of_gpu("backward_lookup_seconds", 94e-12)
    if is_cached and machine.is_gpu:
        backward += shard.n * 256 / rate
    if shard.kernel == "dense":
        whole_pass = 2 * shard.rows * (shard.h + shard.r + d * shard.s + shard.t)
        backward += (shard.u * machine.whole(shard.h) + whole_pass) / rate
    else:
        on_device = shard.u - host_rows(shard)
        with_state = 0.0 if shard.kernel == "fused_uvm_caching" else b
        moved = b * machine.whole(shard.r) + with_state * machine.whole(d * shard.s) + machine.whole(shard.t)
        pace = machine.of_gpu("update_bytes_per_second", 0.825 * rate) or rate
        widest, of_column = shard.launch_columns, machine.of_gpu("update_column_seconds", 4.25e-12 * machine.by_root)
        wide = (min(widest, 128) + max(widest - 128, 0) / 2) * of_column
        least = machine.of_gpu("update_row_seconds", 127e-12 * machine.by_root)
        if shard.s * with_state and shard.s + shard.t >= 8:
            least = max(least, machine.of_gpu("moment_row_seconds", 1.18e-9))
        least = max(least, wide if shard.t else 0.0)
        backward += on_device * max(b * least, 2 * moved / pace)
    sought = 0.0
    if is_cached:
        sought = shard.n * (machine.of_gpu("cache_lookup_seconds", 5700 / rate) or (256 + sort) / rate)
    index = 0.0 if shard.is_replica or machine.world == 1 else machine.of_gpu("index_lookup_seconds", 85 / rate)
    bucketize = machine.numbers.get("bucketize_lookup_seconds", 0.0)
    bucketized = shard.batch_ids if shard.scheme in ROW_CUTS and machine.world > 1 else 0.0
    off_device = off_device_seconds(machine, shard) | added_seconds(machine, shard)
    forward += find_seconds(machine, shard) if has_maps(shard) else slot_seconds(machine, shard)
    return {
        "input_comm": shard.n * index + bucketized * bucketize,
        "forward_compute": forward + off_device.get("forward_compute", 0.0),
        "backward_compute": backward + off_device.get("backward_compute", 0.0),
        "prefetch": max(sought, off_device.get("prefetch", 0.0)),
    }


def request_seconds(job: Job, shard: Shard) -> Seconds:
    """Return the seconds of a request, without its messages."""
    machine = job.machine
    ids = shard.n * shard.table.id_bytes
    moved = ids + shard.o * shard.columns * (job.wire_bytes("output_dtype") or 4.0)
    if shard.kernel == "fused_uvm_caching":
        moved += shard.n * 256
    forward = moved / machine.memory_rate
    if shard.kernel != "fused_uvm":
        forward += machine.gather_seconds(shard.n, shard.u, shard.rows, shard.r)
    forward = _with_outputs(machine, shard, forward)
    returned = shard.o * shard.columns * (job.wire_bytes("forward_comm_dtype") or 4.0)
    off_device = off_device_seconds(machine, shard)
    return {
        "input_comm": ids / machine.numbers["host_link_bytes_per_second"],
        "prefetch": off_device.get("prefetch", 0.0),
        "forward_compute": forward + off_device.get("forward_compute", 0.0),
        "forward_comm": returned / machine.return_link,
    }


def off_device_seconds(machine: Machine, shard: Shard) -> Seconds:
    """Return what rows in the host's memories and in block storage add."""
    if shard.kernel not in ("fused_uvm", "fused_uvm_caching", "key_value"):
        return {}
    numbers = machine.numbers
    fetching = machine.link("cache")
    returning = numbers.get("host_link_cache_bytes_per_second", machine.return_link)
    in_scm = shard.tier == "scm"
    reads = numbers["scm_bytes_per_second" if in_scm else "ddr_bytes_per_second"]
    writes = numbers["scm_write_bytes_per_second" if in_scm else "ddr_bytes_per_second"]
    block = max(64.0, numbers.get("scm_block_bytes", 0.0)) if in_scm else 64.0
    state = shard.columns * shard.s
    fetched = shard.missed_rows
    returned = fetched if shard.table.is_trained else 0.0

    def moved(parts: list[float]) -> tuple[float, float]:
        lines, blocks = (sum(up_to(part, grain) for part in parts) for grain in (64.0, block))
        return lines, blocks

    def gathered(rows: float) -> float:
        lines, blocks = moved([shard.r])
        return rows * max(lines / machine.link("gather"), blocks / reads)

    def updated(rows: float, parts: list[float]) -> float:
        lines, blocks = moved(parts)
        return rows * max(lines / machine.link("update"), blocks / reads + blocks / writes)

    def copied() -> float:
        lines, blocks = moved([shard.r])
        both = max(fetched * lines / fetching, returned * lines / returning)
        return max(both, fetched * blocks / reads + returned * blocks / writes)

    cold = shard.u * (1 - shard.hot_distinct)
    if shard.kernel == "fused_uvm":
        parts = [shard.r, state] if shard.table.is_trained else []
        return {
            "forward_compute": gathered(machine.host_reads(shard.n * (1 - shard.hot_lookups), cold)),
            "backward_compute": updated(cold, parts),
        }
    if shard.kernel == "fused_uvm_caching":
        return {
            "forward_compute": gathered(shard.unheld_rows),
            "backward_compute": updated(cold, [state]),
            "prefetch": copied(),
        }
    size = numbers["ssd_block_bytes"]
    blocks, blocks_back = (rows * math.ceil(shard.r / size) for rows in (fetched, returned))
    reading = max(blocks / numbers["ssd_reads_per_second"], blocks * size / numbers["ssd_bytes_per_second"])
    return {"prefetch": max(reading + blocks_back * size / numbers["ssd_write_bytes_per_second"], copied())}


def _with_outputs(machine: Machine, shard: Shard, moving: float) -> float:
    """Return the time of a forward kernel that moves bytes so long."""
    if shard.table.is_pooled:
        return moving + shard.o * machine.of_gpu("bag_seconds", 292e-12)
    return max(moving, shard.o * machine.of_gpu("sequence_lookup_seconds", 158e-12))


def _sort_bytes(shard: Shard) -> float:
    return 8 + 24 * math.ceil(math.log2(max(shard.rows, 2)) / 8)
