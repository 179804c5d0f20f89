"""A plan of two tables on two ranks, small enough to check by eye."""

import copy

from api.client import canonical_bytes, plan_digest

_PLAN = {
    "schema_version": 1,
    "spec_digest": "sha256:" + "5" * 64,
    "name": "tiny",
    "world_size": 2,
    "ranks_per_host": 2,
    "tables": [
        {
            "name": "whole",
            "sharding_type": "table_wise",
            "compute_kernel": "fused",
            "cache_load_factor": None,
            "shards": [
                {
                    "rank": 1,
                    "row_offset": 0,
                    "num_rows": 6,
                    "column_offset": 0,
                    "num_columns": 8,
                    "tier": "hbm",
                    "bytes": 9,
                }
            ],
        },
        {
            "name": "grid",
            "sharding_type": "grid_shard",
            "compute_kernel": "fused",
            "cache_load_factor": None,
            "shards": [
                {
                    "rank": rank,
                    "row_offset": 3 * rank,
                    "num_rows": 3 - rank,  # 5 rows: 3 and 2
                    "column_offset": column,
                    "num_columns": 4,
                    "tier": "hbm",
                    "bytes": 7,
                }
                for column in (0, 4)
                for rank in (0, 1)
            ],
        },
    ],
    "provenance": {"solver_seconds": 0.25},
}


def tiny_plan() -> dict[str, object]:
    """A fresh copy, with its digest."""
    plan = copy.deepcopy(_PLAN)
    return {"plan_digest": plan_digest(plan), **plan}


def tiny_bytes() -> bytes:
    """As the service serves it."""
    return canonical_bytes(tiny_plan())
