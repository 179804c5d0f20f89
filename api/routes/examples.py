"""Bodies that work as they are: the console shows them, tests send them."""

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

SPECS: dict[str, object] = {"Three tables on one host": SMALL_SPEC, "With constraints": CONSTRAINED_SPEC}
