"""Seconds on the device and beside it: docs/cost-models.md#on-the-device, #beside-the-device and #serving."""

import math

from tests.support.oracle.machine import Machine, up_to
from tests.support.oracle.shards import CACHED, Job, Shard

Seconds = dict[str, float]


def lookup_seconds(job: Job, shard: Shard) -> Seconds:
    """Return the seconds of a training step but for communication."""
    machine, f = job.machine, job.wire_bytes("output_dtype") or 4.0
    w, d, sort = shard.table.id_bytes, shard.columns, _sort_bytes(shard)
    a = shard.hot_lookups if shard.kernel == "fused_uvm" else 1.0
    b = shard.hot_distinct if shard.kernel == "fused_uvm" else 1.0
    forward = shard.n * (w + a * machine.gather(shard.r)) + shard.o * d * f
    if shard.hot_rows:
        forward += shard.n * machine.small_state(4)
    backward = shard.n * (machine.gather(d * f) + w + sort)
    if shard.kernel == "dense":
        backward += shard.u * machine.gather(shard.h)
        backward += 2 * shard.rows * (shard.h + shard.r + d * shard.s + shard.t)
    else:
        with_state = 0.0 if shard.kernel == "fused_uvm_caching" else b
        state = with_state * machine.gather(d * shard.s) + machine.small_state(shard.t)
        backward += 2 * shard.u * (b * machine.gather(shard.r) + state)
    found = {
        "forward_compute": forward / machine.memory_rate,
        "backward_compute": backward / machine.memory_rate,
        "prefetch": shard.n * (256 + sort) / machine.memory_rate if shard.kernel in CACHED else 0.0,
    }
    for phase, seconds in off_device_seconds(machine, shard).items():
        found[phase] += seconds
    return found


def request_seconds(job: Job, shard: Shard) -> Seconds:
    """Return the seconds of a request, without its messages."""
    machine = job.machine
    ids = shard.n * shard.table.id_bytes
    moved = ids + shard.o * shard.columns * (job.wire_bytes("output_dtype") or 4.0)
    if shard.kernel != "fused_uvm":
        moved += shard.n * machine.gather(shard.r)
    if shard.kernel == "fused_uvm_caching":
        moved += shard.n * 256
    returned = shard.o * shard.columns * (job.wire_bytes("forward_comm_dtype") or 4.0)
    off_device = off_device_seconds(machine, shard)
    return {
        "input_comm": ids / machine.numbers["host_link_bytes_per_second"],
        "prefetch": off_device.get("prefetch", 0.0),
        "forward_compute": moved / machine.memory_rate + off_device.get("forward_compute", 0.0),
        "forward_comm": returned / machine.return_link,
    }


def off_device_seconds(machine: Machine, shard: Shard) -> Seconds:
    """Return what rows in the host's memories and in block storage add."""
    if shard.kernel not in ("fused_uvm", "fused_uvm_caching", "key_value"):
        return {}
    numbers = machine.numbers
    link, back = numbers["host_link_bytes_per_second"], machine.return_link
    in_scm = shard.tier == "scm"
    reads = numbers["scm_bytes_per_second" if in_scm else "ddr_bytes_per_second"]
    writes = numbers["scm_write_bytes_per_second" if in_scm else "ddr_bytes_per_second"]
    block = max(64.0, numbers.get("scm_block_bytes", 0.0)) if in_scm else 64.0
    state = shard.columns * shard.s
    fetched = shard.missed_rows
    returned = fetched if shard.table.is_trained else 0.0

    def direct(rows: float, parts: list[float], rate: float) -> float:
        lines, blocks = (sum(up_to(part, grain) for part in parts) for grain in (64.0, block))
        return rows * max(lines / link, blocks / rate)

    def copied() -> float:
        line, part = up_to(shard.r, 64), up_to(shard.r, block)
        return max(fetched * line / link, returned * line / back, fetched * part / reads + returned * part / writes)

    cold = shard.u * (1 - shard.hot_distinct)
    if shard.kernel == "fused_uvm":
        parts = [shard.r, state] if shard.table.is_trained else []
        return {
            "forward_compute": direct(shard.n * (1 - shard.hot_lookups), [shard.r], reads),
            "backward_compute": direct(cold, parts, reads) + direct(cold, parts, writes),
        }
    if shard.kernel == "fused_uvm_caching":
        return {
            "backward_compute": direct(cold, [state], reads) + direct(cold, [state], writes),
            "prefetch": copied(),
        }
    size = numbers["ssd_block_bytes"]
    blocks, blocks_back = (rows * math.ceil(shard.r / size) for rows in (fetched, returned))
    reading = max(blocks / numbers["ssd_reads_per_second"], blocks * size / numbers["ssd_bytes_per_second"])
    return {"prefetch": max(reading + blocks_back * size / numbers["ssd_write_bytes_per_second"], copied())}


def _sort_bytes(shard: Shard) -> float:
    return 8 + 24 * math.ceil(math.log2(max(shard.rows, 2)) / 8)
