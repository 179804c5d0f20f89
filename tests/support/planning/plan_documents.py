"""A small plan document: two tables on two ranks, with sums that can be done by hand."""

from typing import Any

from planner.domain.formats.canonical_json import plan_digest

GB = 10**9


def shard(rank: int, rows: tuple[int, int], num_bytes: int) -> dict[str, Any]:
    """``rows`` is the offset and the number of rows; all 64 columns."""
    return {
        "rank": rank,
        "row_offset": rows[0],
        "num_rows": rows[1],
        "column_offset": 0,
        "num_columns": 64,
        "tier": "hbm",
        "bytes": num_bytes,
    }


def table(name: str, scheme: str, shards: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": name,
        "sharding_type": scheme,
        "compute_kernel": "fused",
        "cache_load_factor": None,
        "shards": shards,
    }


def rank(number: int, seconds: tuple[float, float], num_bytes: int) -> dict[str, Any]:
    return {
        "rank": number,
        "host": 0,
        "seconds": {"forward_compute": seconds[0], "forward_comm": seconds[1]},
        "bytes": {"hbm": num_bytes, "ddr": 0},
        "capacity_bytes": {"hbm": 8 * GB, "ddr": 0},
        "ledger_bytes": {"hbm": {"weights": num_bytes}},
        "reserved_bytes": {"hbm": {"margin": GB}},
    }


def document(**changes: Any) -> dict[str, Any]:
    """Table ``users`` is split over both ranks, ``items`` is on rank 1.

    forward_compute: 1 ms and 3 ms, so 3 ms, mean 2 ms; forward_comm: 2 ms and 1 ms, so 2 ms.
    step_time = 3 + 2 = 5 ms; max_rank_time = max(1 + 2, 3 + 1) = 4 ms; bound 4.5 ms, gap 11.11 %.
    """
    plan: dict[str, Any] = {
        "schema_version": 1,
        "spec_digest": "sha256:" + "0" * 64,
        "name": "two-tables",
        "world_size": 2,
        "ranks_per_host": 2,
        "objective": {
            "name": "step_time",
            "seconds": 0.005,
            "lower_bound_seconds": 0.0045,
            "relative_gap": 0.1111,
            "step_time_seconds": 0.005,
            "max_rank_time_seconds": 0.004,
        },
        "termination": {"reason": "FEASIBLE", "limit": "time", "detail": "the search was cut"},
        "tables": [
            table("users", "row_wise", [shard(0, (0, 500), 2 * GB), shard(1, (500, 500), 2 * GB)]),
            table("items", "table_wise", [shard(1, (0, 100), GB)]),
        ],
        "ranks": [rank(0, (0.001, 0.002), 2 * GB), rank(1, (0.003, 0.001), 3 * GB)],
        "phases": [
            {
                "name": name,
                "slowest_rank": slowest,
                "seconds": seconds,
                "mean_seconds": mean,
                "hidden_seconds": 0.0,
                "counted": True,
                "evidence": "measured",
            }
            for name, slowest, seconds, mean in (
                ("forward_compute", 1, 0.003, 0.002),
                ("forward_comm", 0, 0.002, 0.0015),
            )
        ],
        "provenance": {
            "cost_model": "roofline@1",
            "hardware_profile": "dgx-h100-80g",
            "partitioner": "cp_sat",
            "evidence": {
                "hardware.hbm_bytes_per_second": {
                    "value": "2e12 bytes_per_second",
                    "evidence": "measured",
                    "source": "a paper",
                },
                "model.pipeline": {"value": "none", "evidence": "default", "source": ""},
                "tables": {"value": "1 table is never looked up: items", "evidence": "note", "source": ""},
            },
            "seed": 0,
            "solver_seconds": 1.5,
            "found_seconds": 0.5,
            "versions": {},
        },
    }
    plan.update(changes)
    return {"plan_digest": plan_digest(plan), **plan}
