"""Random specs with more than searches are tried on: every field that a price or a byte depends on."""

import copy
from typing import Any

import numpy as np

from tests.support.oracle.hash_tables.random_tables import grow_maps, hash_ids
from tests.support.planning.random_specs import random_spec

Spec = dict[str, Any]
_KERNELS = ["dense", "fused", "fused_uvm", "fused_uvm_caching"]
_SSD = {
    "ssd_bytes": 4e12,
    "ssd_bytes_per_second": 3e9,
    "ssd_write_bytes_per_second": 1e9,
    "ssd_reads_per_second": 5e5,
    "ssd_block_bytes": 4096,
}
_SCM = {
    "scm_bytes": 1e12,
    "scm_bytes_per_second": 8e9,
    "scm_write_bytes_per_second": 2e9,
    "scm_block_bytes": 256,
}
_ACCESSES: tuple[Spec, ...] = (
    {"zipf_alpha": 0.7},
    {"zipf_alpha": 1.3, "ids": "frequency_sorted"},
    {"access_cdf": [[0.01, 0.5], [0.2, 0.8], [1, 1]], "ids": "frequency_sorted"},
    {"access_cdf": [[0.02, 0.5], [1, 1]], "distinct_rows": [[5, 5], [300, 220], [40_000, 15_000]]},
    {"row_cdf": [[0.1, 0.6], [0.7, 0.9], [1, 1]]},
    {
        "access_cdf": [[0.1, 0.7], [1, 1]],
        "row_cdf": [[0.3, 0.8], [1, 1]],
        "distinct_row_cdf": [[0.3, 0.5], [0.9, 0.9], [1, 1]],
    },
    {"reuse_histogram": [9, 4, 2, *[0] * 14], "ids": "frequency_sorted"},
    {"miss_ratio_curve": [[0, 0.9], [0.001, 0.5], [0.1, 0.2], [1, 0.1]], "row_cdf": [[0.5, 0.8], [1, 1]]},
    {"ids": "hashed"},
)


def random_job(number: int) -> Spec:
    """Return a spec by its number; some are refused by rules of their runtime."""
    spec = copy.deepcopy(random_spec(number))
    rng = np.random.default_rng((number, 3))
    is_served, is_cpu = "serving" in spec, spec["hardware"]["profile"].startswith("cpu")
    overrides = spec["hardware"].setdefault("overrides", {})
    if not is_cpu:
        overrides.update(_SSD)
    if is_served:
        overrides.update({"ddr_bytes": 1e11, "ddr_bytes_per_second": 2e10})
        spec["serving"]["samples_per_request"] = int(rng.choice([1, 5, 6, 64, 513]))
    else:
        _widen_training(rng, spec, is_cpu=is_cpu)
        _widen_dense(np.random.default_rng((number, 5)), spec, is_cpu=is_cpu)
    for table in spec["model"]["tables"]:
        _widen_table(rng, spec, table, is_cpu=is_cpu)
    if number % 10 == 4 and not is_served:
        _for_other_runtimes(rng, spec)
        grow_maps(np.random.default_rng((number, 8)), spec)
    if number % 10 in (5, 6) and not is_served and not is_cpu:
        _for_shared_caches(rng, spec)
    if number % 10 in (1, 8) and not is_served:
        hash_ids(np.random.default_rng((number, 7)), spec, is_cpu=is_cpu)
    if rng.random() < 0.3:
        spec["model"]["output_dtype"] = str(rng.choice(["fp32", "fp16", "bf16"]))
    if rng.random() < 0.2 and not is_served:
        spec["constraints"] |= {"reserved_ddr_fraction": 0.2, "reserved_collective_bytes": 123_456_789}
    if not is_served and not is_cpu:
        _join_hosts(np.random.default_rng((number, 6)), spec)
    return spec


def _join_hosts(rng: np.random.Generator, spec: Spec) -> None:
    """Join hosts into pods, if the runtime can; links of the larger ones are stated."""
    hardware = spec["hardware"]
    sizes = [hosts for hosts in (2, 3, 4) if hardware.get("num_hosts", 1) % hosts == 0]
    if spec["runtime"] not in ("torchrec", "generic") or not sizes or rng.random() < 0.4:
        return
    hardware["pod_size"] = int(rng.choice(sizes)) * hardware["ranks_per_host"]
    if hardware["pod_size"] > 8:
        hardware["overrides"]["intra_host_bytes_per_second"] = 1.2e11


def _widen_training(rng: np.random.Generator, spec: Spec, *, is_cpu: bool) -> None:
    hardware, overrides = spec["hardware"], spec["hardware"]["overrides"]
    if is_cpu:
        hardware["ranks_per_host"] = int(rng.choice([1, 2, 4]))
        for table in spec["model"]["tables"]:
            table.get("constraints", {}).pop("hosts", None)
    if not is_cpu and not {"hbm_bytes_by_rank", "relative_speed_by_rank"} & overrides.keys():
        hardware.update(num_hosts=int(rng.choice([1, 1, 2, 3, 4])), ranks_per_host=int(rng.choice([1, 2, 3, 8])))
        for table in spec["model"]["tables"]:  # which were asked for on another cluster
            for name in ("pinned", "ranks", "hosts"):
                table.get("constraints", {}).pop(name, None)
    spec["model"]["batch_size_per_rank"] = int(rng.choice([1, 7, 512, 20_000]))
    spec["runtime"] = str(rng.choice(["generic", "generic", "torchrec", "torchrec", "torcheasyrec"]))
    links = {
        "intra_host_bytes_per_second": 1.5e11,
        "inter_host_bytes_per_second": 2e12,  # faster than what is inside a host
        "host_link_return_bytes_per_second": 5e9,
    }
    overrides.update({name: rate for name, rate in links.items() if rng.random() < 0.25 and not is_cpu})
    if spec["runtime"] == "generic" and spec["cost_model"] == "roofline" and rng.random() < 0.5 and not is_cpu:
        overrides.update(_SCM)
    spec.pop("checkpoint", None)
    if spec["cost_model"] == "roofline" and rng.random() < 0.4:
        policy = str(rng.choice(["full", "one_shot", "consecutive", "intermittent", "intermittent"]))
        spec["checkpoint"] = {
            "interval_steps": int(rng.choice([1, 20, 3000])),
            "policy": policy,
            "balance": True,
            "intervals_between_failures": float(rng.choice([3, 20])),
        }
        if policy != "full" and rng.random() < 0.7:
            spec["checkpoint"]["full_every"] = int(rng.choice([2, 7, 40, 200]))
        if rng.random() < 0.5:
            spec["checkpoint"] |= {"bits": int(rng.choice([16, 8, 4])), "upload_bytes_per_second": 3e8}


def _widen_dense(rng: np.random.Generator, spec: Spec, *, is_cpu: bool) -> None:
    """Give operations or layers in place of seconds, where the hardware has rates of them."""
    how = str(rng.choice(["as it is", "operations", "layers"]))
    if is_cpu or how == "as it is":
        return
    dense: Spec = {"compute_dtype": str(rng.choice(["bf16", "fp16", "tf32", "fp32"]))}
    if how == "operations":
        dense |= {"forward_flops_per_sample": float(rng.choice([0, 1e5, 3e7])), "parameter_bytes": 30_000_000}
        if rng.random() < 0.5:
            dense["backward_flops_per_sample"] = 7e7
    else:
        dense["layers"] = {"mlp_widths": [[13, 512, 64], [700, 1024, 256, 1]]}
        if rng.random() < 0.5:
            rank = None if rng.random() < 0.5 else 128
            dense["layers"]["cross_layers"] = {"num_layers": 3, "width": 700, "rank": rank}
    if rng.random() < 0.5:
        dense["gradient_dtype"] = str(rng.choice(["fp32", "fp16", "bf16"]))
    if rng.random() < 0.5:
        dense["activation_bytes"] = float(rng.choice([0, 2e8, 3e9]))
    rates = {f"{dense['compute_dtype']}_flops_per_second": 9e14, "dense_efficiency": 0.5}
    if rng.random() < 0.5:
        rates["step_overhead_seconds"] = 3e-4
    spec["model"]["dense"] = dense
    spec["hardware"]["overrides"].update(rates)


def _for_other_runtimes(rng: np.random.Generator, spec: Spec) -> None:
    """Leave what runtimes train that are not TorchRec: pooled tables of fp32 weights on the device."""
    spec["runtime"] = str(rng.choice(["hugectr", "distributed_embeddings", "sparsecore"]))
    links = {"intra_host_bytes_per_second": 8e10, "inter_host_bytes_per_second": 2e10}
    spec["hardware"]["overrides"] = links if rng.random() < 0.5 else {}
    on_tpus = spec["runtime"] == "sparsecore"
    spec["hardware"]["overrides"] |= links if on_tpus else {}
    spec["hardware"].update(profile="tpu-v5p" if on_tpus else "dgx-h100-80g", num_hosts=2, ranks_per_host=4)
    spec["constraints"] = {}
    spec.pop("checkpoint", None)
    for table in spec["model"]["tables"]:
        table.pop("constraints", None)
        table.pop("data_type", None)
        table.pop("is_weighted", None)
        table.update(pooling="sum", optimizer=str(rng.choice(["sgd", "adagrad"])), module_path="")
        table["num_embeddings"] = max(table["num_embeddings"], 5000)
        table["embedding_dim"] = 8 * -(-table["embedding_dim"] // 8)


def _for_shared_caches(rng: np.random.Generator, spec: Spec) -> None:
    """Let all tables be cached, so that many may share an operator."""
    spec["runtime"] = str(rng.choice(["torchrec", "torchrec", "torchrec", "torcheasyrec"]))
    spec["model"]["pipeline"] = str(rng.choice(["none", "train_sparse_dist", "train_prefetch_sparse_dist"]))
    spec["constraints"] = {}
    spec["hardware"].update(num_hosts=1, ranks_per_host=2)
    for name in ("hbm_bytes_by_rank", "relative_speed_by_rank"):
        spec["hardware"]["overrides"].pop(name, None)
    for table in spec["model"]["tables"]:
        table.pop("is_weighted", None)
        table.update(pooling="sum", optimizer="rowwise_adagrad", module_path="m.ebc")
        table["constraints"] = {"compute_kernels": ["fused_uvm_caching"], "sharding_types": ["table_wise", "row_wise"]}
        table["constraints"]["cache_load_factors"] = [0.2] if spec["runtime"] == "torcheasyrec" else [0.01, 0.1, 0.3]


def _widen_table(rng: np.random.Generator, spec: Spec, table: Spec, *, is_cpu: bool) -> None:
    constraints = table.setdefault("constraints", {})
    if spec.get("runtime") not in ("generic", None):
        constraints.pop("hot_row_fractions", None)
    if "pinned" not in constraints and rng.random() < 0.4:
        table["num_embeddings"] = int(table["num_embeddings"] * rng.uniform(1, 1000)) + 16
    if rng.random() < 0.4:
        table["access"] = copy.deepcopy(_ACCESSES[int(rng.integers(len(_ACCESSES)))])
        table["num_embeddings"] = (
            max(table["num_embeddings"], 16) if "pinned" not in constraints else table["num_embeddings"]
        )
    if rng.random() < 0.05 and "features" not in table:
        table["pooling_factor"] = 0
    if rng.random() < 0.25 and table["pooling"] != "none":
        table.update(is_weighted=True, module_path=f"{table['module_path']}.weighted")
    if rng.random() < 0.6 and not is_cpu and not constraints.keys() & {"pinned", "hot_row_fractions"}:
        constraints.pop("compute_kernels", None)
        constraints["compute_kernels"] = _KERNELS if "serving" in spec else [*_KERNELS, "key_value"]
        constraints["cache_load_factors"] = [float(rng.choice([0.003, 0.1, 0.2]))]
        if spec.get("runtime") == "generic" and rng.random() < 0.5:
            constraints["hot_row_fractions"] = [0.01, 0.4]
    if not constraints:
        del table["constraints"]
