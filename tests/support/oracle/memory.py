"""Bytes of every rank by tier and line: docs/cost-models.md#memory."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from tests.support.oracle.deduplication import index_dedup_bytes
from tests.support.oracle.dense import parameter_bytes
from tests.support.oracle.hash_tables import hugectr
from tests.support.oracle.hash_tables.dynamicemb import KERNELS, lines_of
from tests.support.oracle.hash_tables.managed_collisions import slot_bytes
from tests.support.oracle.shards import CACHED, FETCHES_AHEAD, OF_TORCHREC, Job, Shard, Table

Lines = Counter[tuple[str, str]]  # by tier and line


def rank_lines(job: Job, shards: list[Shard]) -> list[Lines]:
    """Return what each rank holds."""
    found: list[Lines] = [Counter() for _ in range(job.machine.world)]
    for shard in shards:
        if not shard.is_hot_part:
            found[shard.rank].update(_shard_lines(job, shard))
    for rank, operator in _operators(job, shards):
        found[rank].update(_cache_lines(job, operator))
    return found


def _shard_lines(job: Job, shard: Shard) -> Lines:
    device, table, y, d = job.machine.device, shard.table, shard.stored_rows, shard.columns
    weights, state = y * shard.r, y * d * shard.s
    hot = [round(part * (shard.hot_rows / y)) for part in (weights, state)]
    times = {"none": 1, "train_sparse_dist": 2, FETCHES_AHEAD: 3}[job.pipeline]
    if shard.kernel in (*CACHED, "hash_hybrid", "hash_caching") and job.pipeline == FETCHES_AHEAD:
        times += 7
    element = job.wire_bytes("output_dtype") or 4.0
    buffers = Counter(
        {
            (device, "input_buffers"): _whole(shard.n * table.id_bytes) * times,
            (device, "output_buffers"): _whole(shard.o * d * element),
        }
    )
    if shard.kernel in KERNELS:
        return lines_of(job, shard) + buffers
    if hugectr.has_maps(shard):
        return Counter({(device, line): held for line, held in hugectr.lines_of(shard).items()}) + buffers
    slots = Counter({(device, line): held for line, held in slot_bytes(shard).items()})
    return (
        slots
        + buffers
        + Counter(
            {
                (shard.tier, "weights"): weights - hot[0],
                (shard.tier, "optimizer_state"): state - hot[1],
                (device, "row_optimizer_state"): y * shard.t,
                (device, "row_keys"): 8 * y if job.runtime == "hugectr" else 0,
                (device, "gradients"): y * shard.h if shard.kernel == "dense" and table.is_trained else 0,
                (device, "hot_rows"): sum(hot),
                (device, "remap"): 4 * y if shard.hot_rows else 0,
            }
        )
    )


def _whole(amount: float) -> int:
    return math.ceil(amount * (1 - 1e-12))


def _operators(job: Job, shards: list[Shard]) -> Iterator[tuple[int, list[Shard]]]:
    """Yield rank and cached shards of each operator."""
    groups: dict[tuple[Any, ...], list[Shard]] = defaultdict(list)
    for number, shard in enumerate(shards):
        if shard.kernel not in CACHED:
            continue
        table: Table = shard.table
        key: tuple[Any, ...] = (shard.rank, table.name, shard.columns, number if shard.kernel == "key_value" else None)
        if job.runtime in OF_TORCHREC:
            by_width = shard.kernel == "key_value" or job.pipeline == FETCHES_AHEAD
            key = (
                *(shard.rank, table.module_path, shard.scheme, shard.kernel, shard.e, table.pooling),
                *(table.is_weighted, table.optimizer, shard.reserved, shard.columns if by_width else None),
                max(math.floor((shard.cached or 0.0) * shard.rows / 32), 1) if shard.kernel == "key_value" else None,
            )
        groups[key].append(shard)
    for key, group in groups.items():
        yield key[0], group


def _cache_lines(job: Job, group: list[Shard]) -> Lines:
    """Return the bytes of one operator's cache."""
    device, first = job.machine.device, group[0]
    rows = sum(one.stored_rows for one in group)
    blocks = sum(one.rows for one in group)
    whole = sum(one.table.num_rows for one in group)
    c = sum((one.cached or 0.0) * one.table.num_rows for one in group) / whole
    if first.kernel == "key_value":
        if job.runtime in OF_TORCHREC:  # one table's bound is the operator's
            c, blocks = first.cached or 0.0, first.rows
        sets = min(max(1, math.floor(c * blocks / 32)), math.floor(max(c, 0.2) * rows / 32))
    else:
        sets = math.ceil(math.floor(c * rows) / 32)
    slots = 32 * max(1, sets)
    w = first.row_bytes(max(one.columns for one in group))
    per_slot = 20 if job.pipeline == FETCHES_AHEAD else 16
    found: Lines = Counter({(device, "cache"): slots * w, (device, "cache_index"): slots * per_slot})
    if first.kernel != "key_value":
        found[device, "cache_index"] += 4 * rows
    elif job.runtime in OF_TORCHREC:
        found["ddr", "eviction_buffers"] += 2 * (slots * (w + 12) + 4)
        found["ddr", "write_buffers"] += 2 * 1024**3
    return found


def reserved(job: Job, rank: int) -> Counter[tuple[str, str]]:
    """Return what is taken off a rank's memory before tables, by tier and line."""
    machine, constraints = job.machine, job.spec.get("constraints") or {}
    by_rank = (job.spec["hardware"].get("overrides") or {}).get("hbm_bytes_by_rank")
    capacity = by_rank[rank] if by_rank else machine.numbers[f"{machine.device}_bytes"]
    margin, is_served = constraints.get("reserved_hbm_fraction", 0.15), job.samples_of_request is not None
    tables = [Table.of(index, one) for index, one in enumerate(job.model["tables"])]
    ids = sum(factor for table in tables for factor, _ in table.features) * job.batch
    dense = parameter_bytes(job.dense)
    device = machine.device
    found = Counter(
        {
            (device, "margin"): capacity - math.floor((1 - margin) * capacity),
            (device, "dense_parameters"): dense * (1 if is_served else 6),
            (device, "input_batches"): math.ceil(8 * ids) * (1 if is_served else 20),
            (device, "collective_buffers"): constraints.get("reserved_collective_bytes") or 0.0,
            (device, "activations"): job.dense.get("activation_bytes") or 0.0,
        }
    )
    if job.deduplicates:
        found[device, "index_dedup"] = index_dedup_bytes(job)
    ddr = machine.numbers.get("ddr_bytes", 0.0)
    if device != "ddr" and ddr:
        found["ddr", "margin"] = ddr - math.floor((1 - constraints.get("reserved_ddr_fraction", 0.05)) * ddr)
    return found
