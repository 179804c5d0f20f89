"""What every rank takes and holds to leave out repeated ids: docs/deduplication.md#prices."""

import math

from tests.support.oracle.shards import FETCHES_AHEAD, Job, Table


def _tables(job: Job) -> list[Table]:
    listed = enumerate(job.model["tables"])
    found = [Table.of(index, one, deduplicates=job.deduplicates) for index, one in listed]
    return [one for one in found if one.is_deduplicated]


def index_dedup_seconds(job: Job) -> dict[str, float]:
    """Return the seconds of every rank by phase."""
    moved = {"input_comm": 0.0, "forward_comm": 0.0, "backward_comm": 0.0}
    for table in _tables(job):
        n, unique = job.batch * table.ids, table.sent_ids(job.batch)
        r = table.num_columns * (job.wire_bytes("output_dtype") or 4.0)
        moved["input_comm"] += 372 * n + 24 * unique
        moved["forward_comm"] += n * (8 + 2 * r)
        moved["backward_comm"] += n * (8 + 3 * r) + unique * r
    rate = job.machine.numbers.get("hbm_bytes_per_second", math.inf)
    return {phase: amount / rate for phase, amount in moved.items()}


def index_dedup_bytes(job: Job) -> float:
    """Return what every rank holds of unique ids and places, of all batches on their way."""
    numbers = sum(job.batch * table.ids + table.sent_ids(job.batch) for table in _tables(job))
    return math.ceil(8 * numbers) * {"none": 1, "train_sparse_dist": 2, FETCHES_AHEAD: 3}[job.pipeline]
