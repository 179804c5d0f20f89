"""Bodies that work as they are: the console shows them, the service hands them out, tests send them."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One body, and the address that it can be posted to."""

    id: str
    summary: str
    path: str
    body: Mapping[str, object]


SMALL_SPEC: dict[str, object] = {
    "name": "three-tables",
    "model": {
        "batch_size_per_rank": 4096,
        "tables": [
            {"name": "user_id", "num_embeddings": 20_000_000, "embedding_dim": 128, "pooling_factor": 1.0},
            {
                "name": "item_id",
                "num_embeddings": 5_000_000,
                "embedding_dim": 128,
                "features": [
                    {"name": "clicked_items", "pooling_factor": 40.0},
                    {"name": "bought_items", "pooling_factor": 5.0},
                ],
                "access": {"zipf_alpha": 1.05},
            },
            {"name": "country", "num_embeddings": 250, "embedding_dim": 32, "pooling_factor": 1.0},
        ],
    },
    "hardware": {"profile": "dgx-h100-80g", "num_hosts": 1, "ranks_per_host": 8},
    "solver": {"time_limit_seconds": 5},
}

CONSTRAINED_SPEC: dict[str, object] = {
    **SMALL_SPEC,
    "name": "three-tables-constrained",
    "constraints": {"apart": [["user_id", "item_id"]], "reserved_hbm_fraction": 0.2},
    "objective": "max_rank_time",
    "cost_model": "torchrec",
}

LOOKUP_ROW: dict[str, object] = {
    "kind": "lookup",
    "launch": 0,
    "task": "example",
    "device": "example device",
    "library": "fbgemm_gpu 1.8.0",
    "implementation": "fbgemm_tbe",
    "num_ranks": 1,
    "ranks_per_host": 1,
    "table": "t0",
    "shard_rows": 1_000_000,
    "shard_columns": 128,
    "element_bytes": 4.0,
    "lookups": 65_536.0,
    "outputs": 8192.0,
    "distinct_rows": 60_000.0,
    "forward_seconds": 0.0011,
    "backward_seconds": 0.0027,
    "seconds": 0.0038,
}

#: In an order in which each can be sent: the last needs what the one before stores.
EXAMPLES = (
    Example(id="three-tables", summary="Three tables on one host", path="/v1/solves", body=SMALL_SPEC),
    Example(id="three-tables-constrained", summary="With constraints", path="/v1/solves", body=CONSTRAINED_SPEC),
    Example(
        id="measured-launch",
        summary="One launch of one table",
        path="/v1/measurements",
        body={"rows": [LOOKUP_ROW]},
    ),
    Example(
        id="fit-of-a-device",
        summary="Fit to all measurements of a device",
        path="/v1/cost-models",
        body={"name": "example", "device": "example device", "seed": 0},
    ),
)


def bodies_for(path: str) -> dict[str, object]:
    """Return the examples of an address by what they show, as the OpenAPI document lists them."""
    return {example.summary: example.body for example in EXAMPLES if example.path == path}


SPECS = bodies_for("/v1/solves")
MEASUREMENTS = bodies_for("/v1/measurements")
COST_MODELS = bodies_for("/v1/cost-models")
