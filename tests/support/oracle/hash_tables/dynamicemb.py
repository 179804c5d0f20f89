"""Hash tables of dynamicemb: docs/cost-models.md#hash-tables-of-dynamicemb."""

import math
from collections import Counter

from tests.support.oracle.machine import Machine, up_to
from tests.support.oracle.shards import Job, Shard

KERNELS = ("hash", "hash_host", "hash_hybrid", "hash_caching")
_DEVICE_PAGE, _HOST_PAGE = 2 * 2**20, 4096


def value_bytes(shard: Shard) -> float:
    """v of the page."""
    if shard.t:  # row-wise AdaGrad
        return shard.columns * shard.e + 16
    return (shard.columns + shard.columns * shard.s / 4) * shard.e


def host_rows(shard: Shard) -> float:
    """Rows that kernels read and write in host memory."""
    if shard.kernel == "hash_host":
        return shard.u
    if shard.kernel == "hash_hybrid":
        c = shard.cached or 0.0
        return (shard.missed_rows + 3 * shard.u * (1 - c)) / 4
    return 0.0


def unheld_rows(shard: Shard) -> float:
    """Rows of a step that a cache cannot hold at once."""
    return shard.unheld_rows if shard.kernel == "hash_caching" else 0.0


def added_seconds(machine: Machine, shard: Shard) -> dict[str, float]:
    """Return the seconds beyond those of ``fused``."""
    if shard.kernel not in KERNELS:
        return {}
    v, slower = value_bytes(shard), machine.by_root
    found = {"forward_compute": slower * shard.n * 0.2e-9}
    if shard.table.is_trained:
        found["forward_compute"] = slower * (shard.n * 0.4e-9 + shard.u * 1.6e-9)
    if shard.kernel == "hash":
        return found
    gather, cache = machine.link("gather"), machine.link("cache")
    g = 55.3e9 / gather
    near_host = host_rows(shard) * max(
        g * (33e-9 + 0.011e-9 * v), v / gather, v / machine.numbers["ddr_bytes_per_second"]
    )
    found["forward_compute"] += near_host
    found["backward_compute"] = near_host if shard.table.is_trained else 0.0
    found["forward_compute"] += unheld_rows(shard) * g * (100e-9 + 0.017e-9 * v)
    if shard.kernel == "hash_caching":
        found["prefetch"] = shard.missed_rows * max(g * (23e-9 + 0.006e-9 * v), v / cache)
    return found


def lines_of(job: Job, shard: Shard) -> Counter[tuple[str, str]]:
    """Return the bytes of a shard by tier and line, but for its buffers of ids and outputs."""
    device, table, v = job.machine.device, shard.table, value_bytes(shard)
    given, kernel, c = table.hash_table, shard.kernel, shard.cached or 0.0
    bucket = given.get("bucket_size") or 128
    words = 2 if given.get("eviction") == "timestamp_lfu" else 1
    whole = up_to(-(-table.num_rows // job.machine.world), bucket)

    def index(slots: float, size: float) -> float:
        return (13 + 8 * words) * slots + 4 * slots / size

    asked = max(1, math.floor((1 - c) * whole)) if kernel == "hash_hybrid" else whole
    slots = up_to(asked, bucket)
    start = given.get("initial_capacity_per_rank")
    keys = values = slots
    growth = 0.0
    if given.get("eviction", "none") == "none":
        keys, values = up_to(2 * asked, bucket), asked
    if start is not None and up_to(start, bucket) < slots:
        first = last = up_to(start, bucket)
        while 2 * last < slots:
            last *= 2
        growth = index(last, bucket) + last * v
        if given.get("eviction", "none") == "none":
            keys, values = 4 * last, 4 * last - first
            growth = index(2 * last, bucket)
    pages = up_to(values * v, _DEVICE_PAGE if kernel == "hash" else _HOST_PAGE)
    state = values * (v - shard.columns * shard.e)
    tier = device if kernel == "hash" else "ddr"
    found: Counter[tuple[str, str]] = Counter(
        {
            (tier, "weights"): pages - state,
            (tier, "optimizer_state"): state,
            (device, "row_keys"): index(keys, bucket),
            (device, "growth"): growth,
        }
    )
    if kernel in ("hash_hybrid", "hash_caching"):
        near = up_to(max(1, math.floor(c * whole)), 1024)
        overflow = 3072 if kernel == "hash_caching" else 0
        found[device, "cache"] = up_to((near + overflow) * v, _DEVICE_PAGE)
        found[device, "cache_index"] = index(near + overflow, 1024) - (8 if overflow else 0)
    f = max(job.wire_bytes("output_dtype") or 4.0, shard.e)
    of_row = shard.columns * f + 16 + (2 * v if kernel in ("hash_host", "hash_hybrid") else 0)
    found[device, "distinct_rows"] = math.ceil(shard.u) * of_row + 8 * math.ceil(shard.n)
    return found
