"""Random specs of hosts whose memories next to the accelerators are slow, so that bytes per second bind.

TorchRec's prices hide what tiers move, so that the search finds plans that no tier can serve; where requests come
fast, cheap plans do not sustain their rate. Each spec is drawn from its number alone and is small: two to six tables on
two to four ranks. Most tables may lie in several tiers, some are pinned to a slow one.
"""

from typing import Any

import numpy as np

from tests.support.planning.random_specs import Spec, with_previous

_RATES = ("ddr_bytes_per_second", "scm_bytes_per_second", "scm_write_bytes_per_second", "ssd_bytes_per_second")
_ON_HOST = ("fused_uvm", "fused_uvm_caching")
_PARTITIONERS = ("portfolio", "portfolio", "local_search", "greedy", "cp_sat", "mathopt", "ldm")


def slow_host_spec(number: int) -> Spec:
    """Return one spec without a previous plan."""
    rng = np.random.default_rng((number, 3))
    spec = _serving_spec(rng) if number % 6 == 5 else _training_spec(rng)
    spec["name"] = f"slow host {number}"
    spec["solver"] = {
        "partitioner": _one(rng, _PARTITIONERS),
        "time_limit_seconds": 600.0,  # counted work ends every search
        "work_limit_seconds": 0.1,
        "relative_gap": float(_one(rng, (0.0, 0.005, 0.05))),
        "seed": int(rng.integers(100)),
    }
    return spec


def slower_with_previous(spec: Spec, plan: Spec, number: int) -> Spec:
    """Return a drifted spec that starts from a plan of the spec, on hosts that may have become slower meanwhile."""
    rng = np.random.default_rng((number, 4))
    drifted = with_previous(spec, plan, number)
    overrides, times = drifted["hardware"]["overrides"], 10 ** -rng.uniform(-0.2, 0.8)
    for name in _RATES:
        if name in overrides:
            overrides[name] = float(round(overrides[name] * times))
    if "serving" in drifted:
        drifted["serving"]["requests_per_second"] = float(round(drifted["serving"]["requests_per_second"] / times))
    return drifted


def _one(rng: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _slower(rng: np.random.Generator, bytes_per_second: float) -> float:
    """Return a rate up to 10,000 times lower, every power of ten as likely."""
    return float(round(bytes_per_second * 10 ** -rng.uniform(0.5, 4.0)))


def _training_spec(rng: np.random.Generator) -> Spec:
    hosts, local = _one(rng, ((1, 2), (1, 2), (1, 4), (2, 2), (2, 1)))
    cost_model = _one(rng, ("torchrec", "torchrec", "torchrec", "roofline"))
    has_scm = cost_model == "roofline" and rng.random() < 0.5
    has_ssd = rng.random() < 0.4
    runtime = "generic" if has_scm else _one(rng, ("torchrec", "generic"))
    tables = [_table(rng, index) for index in range(int(rng.integers(2, 7)))]
    world = hosts * local
    held = sum(table["num_embeddings"] * table["embedding_dim"] * 4 for table in tables)
    overrides = {
        "hbm_bytes": int(held * float(_one(rng, (0.1, 0.3, 0.8, 2.0))) / world + 40e6),
        "ddr_bytes_per_second": _slower(rng, 5e10),
        "host_link_bytes_per_second": _slower(rng, 3e10),
    }
    if has_scm:
        overrides |= {"scm_bytes": 4e11, "scm_bytes_per_second": _slower(rng, 1e10), "scm_block_bytes": 256}
        overrides["scm_write_bytes_per_second"] = overrides["scm_bytes_per_second"] / 3
    if has_ssd:
        overrides |= {"ssd_bytes": 4e12, "ssd_bytes_per_second": _slower(rng, 6e9), "ssd_block_bytes": 4096}
        overrides["ssd_write_bytes_per_second"] = overrides["ssd_bytes_per_second"] / 2
        overrides["ssd_reads_per_second"] = _slower(rng, 1e6)
    spec: Spec = {
        "model": {
            "batch_size_per_rank": int(_one(rng, (64, 1024, 4096))),
            "tables": tables,
            "pipeline": _one(rng, ("none", "train_sparse_dist", "train_prefetch_sparse_dist")),
        },
        "hardware": {"profile": "dgx-h100-80g", "num_hosts": hosts, "ranks_per_host": local, "overrides": overrides},
        "constraints": {"reserved_hbm_fraction": 0.0},
        "runtime": runtime,
        "objective": _one(rng, ("step_time", "step_time", "max_rank_time")),
        "cost_model": cost_model,
    }
    if rng.random() < 0.6:
        seconds = float(_one(rng, (1e-5, 1e-4, 1e-3)))
        spec["model"]["dense"] = {"forward_seconds": seconds, "backward_seconds": 2 * seconds}
    for table in tables:
        _constrain(rng, table, world, has_scm=has_scm, has_ssd=has_ssd)
    return spec


def _table(rng: np.random.Generator, index: int) -> Spec:
    table: Spec = {
        "name": f"t{index}",
        "num_embeddings": int(_one(rng, (2000, 20_000, 100_000, 300_000))),
        "embedding_dim": int(_one(rng, (16, 32, 64, 128))),
        "pooling_factor": round(float(np.exp(rng.normal(1.5, 1.2))), 3),
        "optimizer": _one(rng, ("rowwise_adagrad", "rowwise_adagrad", "adam", "sgd")),
        "module_path": "m.ebc",
    }
    kind = int(rng.integers(4))
    if kind == 0:
        table["access"] = {"zipf_alpha": 1.05}
    elif kind == 1:
        table["access"] = {"miss_ratio_curve": [[0.1, 0.4], [0.5, 0.1]]}
    return table


def _constrain(rng: np.random.Generator, table: Spec, world: int, *, has_scm: bool, has_ssd: bool) -> None:
    """Offer the kernels of several tiers, or pin a table to one of them."""
    draw = rng.random()
    asked: Spec = {}
    if draw < 0.15:
        asked["pinned"] = _pin(rng, table, int(rng.integers(world)), has_scm=has_scm, has_ssd=has_ssd)
    elif draw < 0.3 and has_ssd:
        table["optimizer"] = "rowwise_adagrad"
        asked["compute_kernels"] = ["key_value", *(("fused", *_ON_HOST) if rng.random() < 0.6 else ())]
        asked["cache_load_factors"] = [0.05, 0.1, 0.2]
    elif draw < 0.55:
        asked["compute_kernels"] = ["fused", *_ON_HOST]
        asked["cache_load_factors"] = [0.1, 0.3, 0.7]
    elif draw < 0.7:
        asked["compute_kernels"] = list(_ON_HOST)
        asked["cache_load_factors"] = [0.02, 0.2, 0.9]
    elif draw < 0.8:
        asked["compute_kernels"] = ["fused_uvm"]
    if "pinned" not in asked and rng.random() < 0.4:
        asked["sharding_types"] = list(_one(rng, (("table_wise",), ("table_wise", "row_wise"), ("column_wise",))))
    if asked:
        table["constraints"] = asked


def _pin(rng: np.random.Generator, table: Spec, rank: int, *, has_scm: bool, has_ssd: bool) -> Spec:
    kernel = _one(rng, ("fused_uvm", "fused_uvm_caching", *(("key_value",) if has_ssd else ())))
    shard: Spec = {
        "rank": rank,
        "row_offset": 0,
        "num_rows": table["num_embeddings"],
        "column_offset": 0,
        "num_columns": table["embedding_dim"],
    }
    if kernel == "key_value":
        table["optimizer"] = "rowwise_adagrad"
    elif has_scm and rng.random() < 0.5:
        shard["tier"] = "scm"
    cached = {} if kernel == "fused_uvm" else {"cache_load_factor": 0.1}
    return {"sharding_type": "table_wise", "compute_kernel": kernel, **cached, "shards": [shard]}


def _serving_spec(rng: np.random.Generator) -> Spec:
    """Requests that come about as fast as plans sustain."""
    tables = [_table(rng, index) for index in range(int(rng.integers(2, 7)))]
    for table in tables:
        table.update(optimizer="none", data_type=_one(rng, ("fp32", "fp16")))
        del table["module_path"]
        if rng.random() < 0.4:
            table["constraints"] = {"compute_kernels": ["fused", "fused_uvm"]}
    overrides = {"host_link_bytes_per_second": _slower(rng, 1e10), "ddr_bytes_per_second": _slower(rng, 5e10)}
    return {
        "model": {"pipeline": "none", "tables": tables},
        "hardware": {"profile": "inference-6card-m2", "overrides": overrides},
        "objective": "request_latency",
        "cost_model": "serving",
        "serving": {
            "samples_per_request": int(_one(rng, (1, 64, 512))),
            "requests_per_second": float(round(10 ** rng.uniform(1.5, 4.5))),
            "utilization_limit": 0.7,
        },
    }
