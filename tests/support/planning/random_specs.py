"""Random specs that use every feature of the spec, small enough to be planned in a fraction of a second.

Each is drawn from its number alone. Most are solvable: no field asks for what another one rules out, so that a spec is
refused only by rules of its runtime.
"""

import copy
from typing import Any

import numpy as np

from cost_models.vocabulary import Scheme

Spec = dict[str, Any]

_DIMS = (4, 8, 16, 24, 32, 64, 96, 128, 256)
_PARTITIONERS = ("portfolio", "portfolio", "local_search", "greedy", "ldm", "cp_sat", "mathopt")
_PROFILES = ("dgx-h100-80g", "dgx-a100-80g", "zionex-a100-40g", "cpu-2s-genoa-200g", "mi300x-8x-400g")
_SSD = {
    "ssd_bytes": 4e12,
    "ssd_bytes_per_second": 3e9,
    "ssd_write_bytes_per_second": 1e9,
    "ssd_reads_per_second": 5e5,
    "ssd_block_bytes": 4096,
}


def random_spec(number: int) -> Spec:
    """Return one spec without a previous plan."""
    rng = np.random.default_rng((number, 1))
    spec = _serving_spec(rng) if number % 8 == 7 else _training_spec(rng)
    spec["name"] = f"random {number}"
    spec["solver"] = {
        "partitioner": _one(rng, _PARTITIONERS),
        "time_limit_seconds": 600.0,  # counted work ends every search
        "work_limit_seconds": 0.1,
        "relative_gap": float(_one(rng, (0.0, 0.005, 0.05))),
        "seed": int(rng.integers(100)),
    }
    return spec


def with_previous(spec: Spec, plan: Spec, number: int) -> Spec:
    """Return a drifted spec that starts from a plan of the spec, some with little that may move."""
    rng = np.random.default_rng((number, 2))
    drifted = copy.deepcopy(spec)
    for table in drifted["model"]["tables"]:
        for feature in table.get("features") or [table]:
            feature["pooling_factor"] = round(feature["pooling_factor"] * float(np.exp(rng.normal(0, 0.7))), 3)
    fields = ("name", "sharding_type", "compute_kernel", "cache_load_factor", "shards", "data_type")
    tables = [{key: table[key] for key in fields if key in table} for table in plan["tables"]]
    if rng.random() < 0.15 and len(tables) > 1:
        del tables[int(rng.integers(len(tables)))]
    previous: Spec = {
        "plan": {key: plan[key] for key in ("world_size", "ranks_per_host", "pod_size") if key in plan}
        | {"tables": tables},
        "remaining_steps": int(_one(rng, (1, 1000, 10**9, 10**12))),
        "min_relative_gain": float(_one(rng, (0.0, 0.01, 0.2))),
    }
    if rng.random() < 0.7:
        total = sum(shard["bytes"] for table in plan["tables"] for shard in table["shards"])
        previous["max_moved_bytes"] = int(total * float(_one(rng, (0.0, 0.02, 0.2, 1.0))))
    return {**drifted, "previous_plan": previous}


def _one(rng: np.random.Generator, choices: tuple[Any, ...]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _training_spec(rng: np.random.Generator) -> Spec:
    profile = _one(rng, _PROFILES)
    hosts = int(_one(rng, (1, 1, 2)))
    local = 1 if profile.startswith("cpu") else int(_one(rng, (2, 4)))
    if profile.startswith("cpu"):
        hosts = int(_one(rng, (2, 4)))
    runtime = _one(rng, ("torchrec", "torchrec", "generic", "generic", "torcheasyrec", "distributed_embeddings"))
    tables = [_table(rng, index) for index in range(int(rng.integers(2, 11)))]
    hardware: Spec = {"profile": profile, "num_hosts": hosts, "ranks_per_host": local, "overrides": {}}
    spec: Spec = {
        "model": {
            "batch_size_per_rank": int(_one(rng, (64, 1024, 4096))),
            "tables": tables,
            "pipeline": _one(rng, ("none", "train_sparse_dist", "train_prefetch_sparse_dist")),
        },
        "hardware": hardware,
        "constraints": {"reserved_hbm_fraction": float(_one(rng, (0.0, 0.15)))},
        "runtime": runtime,
        "objective": _one(rng, ("step_time", "step_time", "max_rank_time")),
        "cost_model": _one(rng, ("roofline", "roofline", "torchrec")),
    }
    if rng.random() < 0.5:
        spec["model"]["dense"] = {"forward_seconds": 1e-4, "backward_seconds": 2e-4, "parameter_bytes": 10_000_000}
    if rng.random() < 0.4:
        spec["model"]["forward_comm_dtype"] = _one(rng, ("fp32", "fp16", "bf16"))
        spec["model"]["backward_comm_dtype"] = _one(rng, ("fp32", "bf16"))
    _shape_cluster(rng, spec, hosts * local)
    _constrain(rng, spec, hosts, local)
    if rng.random() < 0.3 and spec["cost_model"] == "roofline" and not profile.startswith("cpu"):
        policy = _one(rng, ("full", "one_shot", "consecutive", "intermittent"))
        spec["checkpoint"] = {"interval_steps": 1000, "policy": policy, "balance": bool(rng.random() < 0.5)}
    return spec


def _shape_cluster(rng: np.random.Generator, spec: Spec, world: int) -> None:
    """Leave ranks little memory, or make them differ."""
    overrides = spec["hardware"]["overrides"]
    if spec["hardware"]["profile"].startswith("cpu"):
        return
    bytes_in_all = sum(table["num_embeddings"] * table["embedding_dim"] * 4 for table in spec["model"]["tables"])
    roomy = 1.0 + bytes_in_all * float(_one(rng, (0.6, 1.3, 3.0, 20.0))) / world + 150e6
    if rng.random() < 0.5:
        overrides["hbm_bytes"] = int(roomy)
    elif rng.random() < 0.4:
        overrides["hbm_bytes_by_rank"] = [int(2 * roomy * float(_one(rng, (0.7, 1.0)))) for _ in range(world)]
    if rng.random() < 0.2:
        overrides["relative_speed_by_rank"] = [float(_one(rng, (0.5, 1.0))) for _ in range(world)]
    if rng.random() < 0.3:
        overrides.update(_SSD)


def _table(rng: np.random.Generator, index: int) -> Spec:
    rows = int(_one(rng, (20, 300, 5000, 40_000, 200_000)))
    table: Spec = {
        "name": f"t{index}",
        "num_embeddings": rows,
        "embedding_dim": int(_one(rng, _DIMS)),
        "optimizer": _one(
            rng, ("rowwise_adagrad", "rowwise_adagrad", "adam", "sgd", "adagrad", "partial_rowwise_adam")
        ),
        "pooling": _one(rng, ("sum", "sum", "sum", "mean", "none")),
        "module_path": _one(rng, ("m.ebc", "m.other")),
    }
    if table["pooling"] == "none":
        table["module_path"] = f"m.ec{table['embedding_dim']}"  # sequences of one width each
    factor = round(float(np.exp(rng.normal(1.0, 1.2))), 3)
    if rng.random() < 0.3 and table["pooling"] != "none":
        table["features"] = [
            {"name": f"t{index}a", "pooling_factor": factor},
            {"name": f"t{index}b", "pooling_factor": 1.0, "num_poolings": 2.0},
        ]
    else:
        table["pooling_factor"] = factor
    kind = int(rng.integers(6))
    if kind == 0:
        table["access"] = {"zipf_alpha": 1.05}
    elif kind == 1:
        table["access"] = {"access_cdf": [[0.05, 0.6], [0.3, 0.9], [1, 1]]}
    elif kind == 2:
        table["access"] = {"miss_ratio_curve": [[0.1, 0.4], [0.5, 0.1]]}
    elif kind == 3:
        table["access"] = {"reuse_histogram": [9, 5, 2, 1, *[0] * 13]}
    elif kind == 4:
        table["access"] = {"zipf_alpha": 1.05, "row_cdf": [[0.1, 0.6], [0.9, 0.7], [1, 1]]}
    return table


def _constrain(rng: np.random.Generator, spec: Spec, hosts: int, local: int) -> None:
    """Ask for kernels, schemes, ranks, groups and pins of some tables: no two things of one table that disagree."""
    tables, world = spec["model"]["tables"], hosts * local
    on_host = not spec["hardware"]["profile"].startswith("cpu")
    free = [int(index) for index in rng.permutation(len(tables))]
    if len(free) >= 6 and rng.random() < 0.4:
        pair = [free.pop(), free.pop()]
        for index in pair:
            tables[index].update(embedding_dim=32, pooling="sum", module_path="m.ebc")
        spec["constraints"]["same_rank"] = [[tables[index]["name"] for index in pair]]
    if len(free) >= 4 and rng.random() < 0.4:
        pair = [free.pop(), free.pop()]
        spec["constraints"]["apart"] = [[tables[index]["name"] for index in pair]]
    for index in free:
        table, draw = tables[index], rng.random()
        wide = table["embedding_dim"]
        asked: Spec = {}
        if draw < 0.1:
            asked["sharding_types"] = sorted({"table_wise", _one(rng, Scheme.labels())})
        elif draw < 0.2:
            asked["ranks"] = sorted({int(rank) for rank in rng.integers(world, size=2)})
        elif draw < 0.25:
            asked["hosts"] = [int(rng.integers(hosts))]
        elif draw < 0.35 and wide >= 16:
            asked["min_partition"] = int(_one(rng, (8, 16)))
        elif draw < 0.45 and on_host:
            asked["compute_kernels"] = ["fused", "fused_uvm", "fused_uvm_caching"]
            asked["cache_load_factors"] = [0.1, 0.3]
        elif draw < 0.5 and on_host and spec["hardware"]["overrides"].get("ssd_bytes"):
            table["optimizer"] = "rowwise_adagrad"
            asked["compute_kernels"] = ["fused", "key_value"]
        elif draw < 0.55 and on_host and spec["runtime"] == "generic":
            asked["compute_kernels"], asked["hot_row_fractions"] = ["fused_uvm"], [0.1, 0.5]
        elif draw < 0.62:
            asked["data_types"] = ["fp32", "fp16"]
        elif draw < 0.7:
            rank = int(rng.integers(world))
            asked["pinned"] = {
                "sharding_type": "table_wise",
                "compute_kernel": "fused",
                "shards": [
                    {"rank": rank, "row_offset": 0, "num_rows": table["num_embeddings"], "column_offset": 0}
                    | {"num_columns": wide}
                ],
            }
        if asked:
            table["constraints"] = asked


def _serving_spec(rng: np.random.Generator) -> Spec:
    tables = [_table(rng, index) for index in range(int(rng.integers(2, 9)))]
    for table in tables:
        table.update(optimizer="none", data_type=_one(rng, ("fp32", "fp16", "int8", "int4")))
    serving: Spec = {"samples_per_request": int(_one(rng, (1, 64, 512)))}
    if rng.random() < 0.6:
        serving.update(requests_per_second=float(_one(rng, (50.0, 3000.0, 12_000.0))), utilization_limit=0.7)
    return {
        "model": {"pipeline": "none", "tables": tables},
        "hardware": {"profile": "inference-6card-m2"},
        "objective": "request_latency",
        "cost_model": "serving",
        "serving": serving,
    }
