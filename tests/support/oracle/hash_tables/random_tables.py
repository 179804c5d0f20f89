"""Random hash tables in the place of a job's tables."""

from typing import Any

import numpy as np

Spec = dict[str, Any]
_BY_ROW = ("row_cdf", "distinct_row_cdf", "ids")
_KERNELS = (None, ["hash"], ["hash_caching"], ["hash_hybrid"], ["hash_host"])


def hash_ids(rng: np.random.Generator, spec: Spec, *, is_cpu: bool) -> None:
    """Give most tables hash tables: of managed collisions, or of dynamicemb."""
    keyed = not is_cpu and rng.random() < 0.6
    spec["runtime"] = "dynamicemb" if keyed else "torchrec"
    spec["constraints"] = {}
    if keyed:
        spec["cost_model"] = "roofline"
        for name in [one for one in spec["hardware"]["overrides"] if one.startswith("scm")]:
            del spec["hardware"]["overrides"][name]
    kernels = _KERNELS[int(rng.integers(len(_KERNELS)))]
    ranks = spec["hardware"].get("num_hosts", 1) * spec["hardware"]["ranks_per_host"]
    for table in spec["model"]["tables"]:
        table.pop("constraints", None)
        table.pop("data_type", None)
        if rng.random() < 0.25:
            continue
        for name in _BY_ROW:
            table.get("access", {}).pop(name, None)
        if not table.get("access"):
            table.pop("access", None)
        if keyed:
            _find_by_key(rng, table, kernels, ranks)
        else:
            _collide(rng, table, ranks, is_cpu=is_cpu)


def grow_maps(rng: np.random.Generator, spec: Spec) -> None:
    """Make dynamic tables of HugeCTR's of all tables of half of its jobs."""
    if spec["runtime"] != "hugectr" or rng.random() < 0.5:
        return
    optimizer = str(rng.choice(["sgd", "adagrad", "adam"]))
    for table in spec["model"]["tables"]:
        table.update(optimizer=optimizer, hash_table={"mode": "hugectr"})
        table["num_embeddings"] = int(table["num_embeddings"] * rng.choice([1, 10, 40]))
        for name in _BY_ROW:
            table.get("access", {}).pop(name, None)
        if not table.get("access"):
            table.pop("access", None)


def _find_by_key(rng: np.random.Generator, table: Spec, kernels: list[str] | None, ranks: int) -> None:
    eviction = str(rng.choice(["none", "timestamp", "step", "lfu", "timestamp_lfu", "customized"]))
    table["optimizer"] = str(rng.choice(["none", "sgd", "adam", "adagrad", "rowwise_adagrad"]))
    table.pop("is_weighted", None)
    found: Spec = {"mode": "dynamicemb", "eviction": eviction}
    slots = table["num_embeddings"]
    if rng.random() < 0.5:
        found["capacity"] = slots = int(slots * rng.uniform(1, 3))
    if rng.random() < 0.4:
        found["initial_capacity_per_rank"] = max(1, int(-(-slots // ranks) * rng.uniform(0.01, 1)))
    table["hash_table"] = found
    table["constraints"] = {"cache_load_factors": [0.15]} | ({} if kernels is None else {"compute_kernels": kernels})


def _collide(rng: np.random.Generator, table: Spec, ranks: int, *, is_cpu: bool) -> None:
    table["module_path"] = f"m.mc.{table['name']}"
    if is_cpu:
        table["optimizer"] = "adagrad"
    size = 16 * int(rng.integers(1, 5))
    slots = int(table["num_embeddings"] * rng.choice([1.0, 1.4])) // (size * ranks) * size * ranks
    slots = max(slots, size * ranks)
    table["num_embeddings"] = min(table["num_embeddings"], slots)
    if is_cpu or rng.random() < 0.5:
        found: Spec = {"mode": "zch", "eviction": str(rng.choice(["lfu", "lru", "distance_lfu"]))}
        found["eviction_interval"] = int(rng.integers(1, 20))
    else:
        found = {"mode": "mpzch", "eviction": str(rng.choice(["none", "single_ttl", "per_feature_ttl", "lru"]))}
        found |= {"metadata_bytes_per_slot": int(rng.choice([0, 8, 24]))}
        found |= {"bucket_size": size} if rng.random() < 0.5 else {}
        found |= {"max_probe": int(rng.integers(1, 300))} if rng.random() < 0.5 else {}
        if found["eviction"] == "none" and rng.random() < 0.7:
            table["constraints"] = {"compute_kernels": ["fused_uvm_caching"], "cache_load_factors": [0.1]}
    if table["optimizer"] == "none" and found["eviction"] != "none":
        table["optimizer"] = "sgd"
    table["hash_table"] = found | {"capacity": slots}
