"""TorchRec's estimator of seconds and bytes: docs/cost-models.md#torchrec and #memory."""

import math
from collections import Counter

from tests.support.oracle.seconds.roofline import Seconds
from tests.support.oracle.shards import CACHED, FETCHES_AHEAD, ROW_CUTS, Job, Shard

_STATE = {"none": 0.0, "sgd": 0.0, "adam": 2.0}


def torchrec_seconds(job: Job, shard: Shard) -> Seconds:
    """Return the seconds of a shard by TorchRec's formulas."""
    machine, table, d, numbers = job.machine, shard.table, shard.columns, job.machine.numbers
    w, g, h = machine.world, machine.per_host, machine.hosts
    near = "intra_host_bytes_per_second" if machine.per_group == g else "inter_host_bytes_per_second"
    by_host = shard.scheme in ("table_row_wise", "grid_shard")
    served = 1 if shard.is_replica else w
    ids, rows = shard.batch_ids * served / shard.k, job.batch * table.expected_outputs * served
    rows = rows if table.is_pooled else rows / shard.k
    as_stored = shard.is_replica or (by_host and not table.is_pooled)
    rate = _kernel_rate(job, shard)
    output = {
        phase: rows * d * (shard.e if as_stored else job.wire_bytes(field) or shard.e)
        for phase, field in (("forward_comm", "forward_comm_dtype"), ("backward_comm", "backward_comm_dtype"))
    }
    is_whole = not shard.is_replica and shard.scheme not in ROW_CUTS
    moved = math.ceil(ids * 8) * (2 if table.is_weighted else 1)
    moved += ids * (max(d, 32) if is_whole else d) * shard.e + output["forward_comm"]
    narrow = (1.0 if d >= 128 else 1.15 if d >= 64 else 1.75) if is_whole else 1.0
    forward = moved * narrow / rate
    found: Counter[str] = Counter(
        forward_compute=forward, backward_compute=forward * (3.1 if table.is_weighted else 2.0)
    )
    if shard.is_replica:
        held = shard.rows * d * shard.e
        j = min(h, 2)
        rounds = (2 * j - 1) / j * (2 if h > 2 else 1)
        found["backward_comm"] += held * rounds / (g * numbers["inter_host_bytes_per_second"]) + 9.22 * held / rate
    else:
        world_link = numbers["intra_host_bytes_per_second" if h == 1 else "inter_host_bytes_per_second"]
        found["input_comm"] += math.ceil(8 * w * shard.batch_ids) / world_link
        for phase, field in (("forward_comm", "forward_comm_dtype"), ("backward_comm", "backward_comm_dtype")):
            if by_host:
                found[phase] += output[phase] / numbers[near]
                if machine.groups > 1:
                    element = job.wire_bytes(field) or shard.e
                    found[phase] += machine.groups * job.batch * table.expected_outputs * d * element / world_link
            else:
                found[phase] += output[phase] / world_link
        if shard.scheme in ROW_CUTS:
            found["backward_comm"] += 2.455 * output["backward_comm"] / rate
    if shard.kernel == "fused_uvm_caching" and shard.m is not None:
        found["prefetch"] += shard.missed_rows * d * shard.e / numbers["host_link_bytes_per_second"]
    return found


def _kernel_rate(job: Job, shard: Shard) -> float:
    memory, numbers = job.machine.memory_rate, job.machine.numbers
    if shard.kernel == "dense":
        return memory / 2
    if shard.kernel == "fused_uvm":
        return numbers["host_link_bytes_per_second"] / 10
    if shard.kernel == "fused_uvm_caching" and job.pipeline != FETCHES_AHEAD:
        c = shard.cached or 0.0
        return (c * memory + (1 - c) * numbers["host_link_bytes_per_second"]) / 10
    return numbers["ssd_bytes_per_second"] if shard.kernel == "key_value" else memory


def torchrec_bytes(job: Job, shard: Shard) -> Counter[str]:
    """Return what TorchRec's planner counts, by tier."""
    machine, table, device = job.machine, shard.table, job.machine.device
    found: Counter[str] = Counter()

    def state(num_bytes: float) -> float:
        of_rows = 1 / table.num_columns if table.optimizer == "rowwise_adagrad" else _STATE.get(table.optimizer, 1.0)
        return math.ceil(num_bytes * of_rows)

    weights = shard.stored_rows * shard.r
    hot = [round(part * (shard.hot_rows / shard.stored_rows)) for part in (weights, state(weights))]
    found[shard.tier] += weights + state(weights) - sum(hot)
    found[device] += sum(hot) + (4 * shard.stored_rows if shard.hot_rows else 0)
    c = shard.cached or 0.0
    if shard.kernel == "fused_uvm_caching":
        of_table = table.num_rows * (table.num_columns * shard.e + shard.overhead)
        part = shard.stored_rows * shard.columns / (table.num_rows * table.num_columns)
        cache = math.ceil(round(of_table * c) * part)
        found[device] += cache + state(cache)
    if shard.kernel in CACHED:
        index = math.ceil(shard.stored_rows * (4 + 16 * c))
        found["ssd" if shard.kernel == "key_value" else device] += index
    times = {"none": 1, "train_sparse_dist": 2, FETCHES_AHEAD: 3}[job.pipeline]
    if shard.kernel in CACHED and job.pipeline == FETCHES_AHEAD:
        times += 7
    served = 1 if shard.is_replica else machine.world
    found[device] += math.ceil(shard.batch_ids * served / shard.k * 8) * times
    if job.pipeline == "none":
        rows = job.batch * table.expected_outputs * served / (1 if table.is_pooled else shard.k)
        found[device] += math.ceil(rows * shard.columns * (job.wire_bytes("output_dtype") or shard.e))
    return found
