"""Seconds of collectives: docs/cost-models.md#communication."""

from collections import Counter

from tests.support.oracle.seconds.roofline import Seconds
from tests.support.oracle.shards import Job, Shard, Table


def exchange_seconds(job: Job, shard: Shard) -> Seconds:
    """Return what a shard takes in each phase of communication."""
    machine, table, d = job.machine, shard.table, shard.columns
    found: Counter[str] = Counter()

    def add(phase: str, operation: str, group: str, num_bytes: float, message: float) -> None:
        ranks = {"all": machine.world, "inside": machine.per_group, "across": machine.groups}[group]
        if ranks > 1 and num_bytes > 0:
            found[phase] += num_bytes * machine.pace(operation, group, message)

    if shard.is_replica:
        gradient = shard.rows * shard.h
        add("backward_comm", "all_reduce", "all", gradient, max(gradient, 25 * 2**20))
        return found
    add("input_comm", "all_to_all", "all", shard.n * table.id_bytes, _id_message(job))
    bags = job.batch * table.outputs
    for phase, field, ring in (
        ("forward_comm", "forward_comm_dtype", "reduce_scatter"),
        ("backward_comm", "backward_comm_dtype", "all_gather"),
    ):
        f = job.wire_bytes(field) or 4.0
        message = _row_message(job, f)
        if not table.is_pooled:
            add(phase, "all_to_all", "all", shard.n * d * f, message)
        elif shard.scheme == "row_wise":
            add(phase, ring, "all", machine.world * bags * d * f, machine.world * message)
        elif shard.scheme in ("table_row_wise", "grid_shard"):
            add(phase, ring, "inside", machine.world * bags * d * f, machine.per_group * message)
            add(phase, "all_to_all", "across", machine.groups * bags * d * f, message)
        else:
            add(phase, "all_to_all", "all", machine.world * bags * d * f, message)
    return found


def _tables(job: Job) -> list[Table]:
    listed = enumerate(job.model["tables"])
    return [Table.of(index, one, deduplicates=job.deduplicates) for index, one in listed]


def _id_message(job: Job) -> float:
    return sum(one.sent_ids(job.batch) * one.id_bytes for one in _tables(job))


def _row_message(job: Job, element_bytes: float) -> float:
    rows = [job.batch * one.outputs if one.is_pooled else one.sent_ids(job.batch) for one in _tables(job)]
    return sum(sent * one.num_columns for sent, one in zip(rows, _tables(job), strict=True)) * element_bytes
