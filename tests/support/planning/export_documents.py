"""Plan documents made by hand, with the tables that a test of an export wants."""

from collections.abc import Sequence
from typing import Any

from planner.domain.formats.canonical_json import plan_digest

Rectangle = tuple[int, int, int, int, int]  # rank, row_offset, num_rows, column_offset, num_columns
_FIELDS = ("rank", "row_offset", "num_rows", "column_offset", "num_columns")
_TIERS = {"fused_uvm": "ddr", "fused_uvm_caching": "ddr"}


def table(name: str, scheme: str, shards: Sequence[Rectangle], **changes: object) -> dict[str, Any]:
    """A table of a plan document: sums of fp32 rows, where its kernel keeps them."""
    kernel = str(changes.get("compute_kernel", "dense" if scheme == "data_parallel" else "fused"))
    tier = _TIERS.get(kernel, "hbm")
    return {
        "name": name,
        "pooling": "sum",
        "data_type": "fp32",
        "sharding_type": scheme,
        "compute_kernel": kernel,
        "cache_load_factor": 0.2 if kernel == "fused_uvm_caching" else None,
        "shards": [{**dict(zip(_FIELDS, shard, strict=True)), "tier": tier} for shard in shards],
    } | changes


def document(*tables: dict[str, Any], world_size: int = 4, ranks_per_host: int = 2) -> dict[str, Any]:
    """A plan document of these tables."""
    plan = {
        "schema_version": 1,
        "spec_digest": "sha256:" + "1" * 64,
        "world_size": world_size,
        "ranks_per_host": ranks_per_host,
        "tables": list(tables),
    }
    return {"plan_digest": plan_digest(plan), **plan}
