"""A handful of measured rows of every kind, small enough to know by heart."""

from cost_models.measurements.json_rows import rows_from_json
from cost_models.measurements.schema import Measurements

Row = dict[str, object]

MACHINE: Row = {
    "device": "Test CPU, 1 thread",
    "library": "fbgemm_gpu 1.8.0",
    "task": "seed0-round0",
    "num_ranks": 1,
    "ranks_per_host": 1,
    "repeats": 5,
}


def lookup(launch: int = 0, table: str = "t0", **changes: object) -> Row:
    """1,000 lookups of 8 columns of fp32: 32 kB in 2 ms."""
    return {
        **MACHINE,
        "kind": "lookup",
        "launch": launch,
        "implementation": "fbgemm_tbe",
        "table": table,
        "shard_rows": 5_000,
        "shard_columns": 8,
        "element_bytes": 4.0,
        "lookups": 1_000.0,
        "outputs": 100.0,
        "distinct_rows": 600.0,
        "reuse_0": 0.75,
        "reuse_1": 0.25,
        **{f"reuse_{i}": 0.0 for i in range(2, 17)},
        "forward_seconds": 0.0005,
        "backward_seconds": 0.0015,
        "seconds": 0.002,
        **changes,
    }


def collective(launch: int, rank: int, **changes: object) -> Row:
    """One of two ranks of an all-to-all of 1 MB in 1 ms."""
    return {
        **MACHINE,
        "kind": "collective",
        "launch": launch,
        "implementation": "gloo",
        "num_ranks": 2,
        "ranks_per_host": 2,
        "operation": "all_to_all",
        "direction": "forward",
        "rank": rank,
        "sent_bytes": 1e6,
        "received_bytes": 1e6,
        "seconds": 0.001 + 0.0001 * rank,
        **changes,
    }


def copy(launch: int, **changes: object) -> Row:
    """A gather of 1 MB in rows of 64 bytes."""
    return {
        **MACHINE,
        "kind": "copy",
        "launch": launch,
        "implementation": "torch_index_select",
        "operation": "gather",
        "copied_bytes": 1e6,
        "row_bytes": 64.0,
        "contending": 1,
        "seconds": 0.0003,
        **changes,
    }


def some_rows() -> list[Row]:
    """A fused launch of two tables, a single one, a collective of two ranks, a copy."""
    return [lookup(0), lookup(0, "t1"), lookup(1), collective(2, 0), collective(2, 1), copy(3)]


def some_measurements() -> Measurements:
    """The same as columns."""
    return rows_from_json(some_rows())
