"""The export for TorchRec; that TorchRec takes it is tested in tests/torchrec."""

import hashlib

import pytest

from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.options.runtimes.export import UnexportablePlan
from tests.support.planning.exports import exporter

export_plan = exporter("torchrec")


def document(**changes: object) -> dict[str, object]:
    """Two tables on two hosts of two ranks: one on rank 3, one on every rank."""
    plan = {
        "schema_version": 1,
        "spec_digest": "sha256:" + "1" * 64,
        "world_size": 4,
        "ranks_per_host": 2,
        "tables": [
            {
                "name": "pieces",
                "module_path": "sparse.bags",
                "sharding_type": "column_wise",
                "compute_kernel": "fused_uvm_caching",
                "cache_load_factor": 0.2,
                "shards": [
                    {
                        "rank": rank,
                        "row_offset": 0,
                        "num_rows": 10,
                        "column_offset": column,
                        "num_columns": 8,
                        "tier": "ddr",
                    }
                    for rank, column in ((3, 0), (0, 8))
                ],
            },
            {
                "name": "copied",
                "module_path": "sparse.bags",
                "sharding_type": "data_parallel",
                "compute_kernel": "dense",
                "cache_load_factor": None,
                "shards": [
                    {"rank": rank, "row_offset": 0, "num_rows": 5, "column_offset": 0, "num_columns": 4, "tier": "hbm"}
                    for rank in range(4)
                ],
            },
        ],
    } | changes
    return {"plan_digest": plan_digest(plan), **plan}


def without_paths() -> dict[str, object]:
    """The same plan from a spec that names no module."""
    tables = [{k: v for k, v in t.items() if k != "module_path"} for t in document()["tables"]]
    return document(tables=tables)


def test_rows_in_storage_class_memory_are_not_exported() -> None:
    """TorchRec would put them into host memory without a word."""
    tables = document()["tables"]
    for shard in tables[0]["shards"]:
        shard["tier"] = "scm"
    with pytest.raises(UnexportablePlan, match='"pieces" lies in scm'):
        export_plan(document(tables=tables))


def test_the_whole_export() -> None:
    export = export_plan(document())
    content = {key: value for key, value in export.items() if key != "content_sha256"}
    assert export["content_sha256"] == hashlib.sha256(canonical_bytes(content)).hexdigest()
    assert content == {
        "format": "torchrec",
        "format_version": 1,
        "torchrec_min_version": "1.8.0",
        "plan_digest": document()["plan_digest"],
        "world_size": 4,
        "local_world_size": 2,
        "device": "cuda",
        "tables": [
            {"name": "pieces", "module_path": "sparse.bags", "num_embeddings": 10, "embedding_dim": 16},
            {"name": "copied", "module_path": "sparse.bags", "num_embeddings": 5, "embedding_dim": 4},
        ],
        "plan": {
            "sparse.bags": {
                "pieces": {
                    "sharding_type": "column_wise",
                    "compute_kernel": "fused_uvm_caching",
                    "ranks": [3, 0],
                    "shards": [
                        # rank 3 is device 1 of the second host
                        {"shard_offsets": [0, 0], "shard_sizes": [10, 8], "placement": "rank:3/cuda:1"},
                        {"shard_offsets": [0, 8], "shard_sizes": [10, 8], "placement": "rank:0/cuda:0"},
                    ],
                    "cache_params": {"load_factor": 0.2},
                },
                "copied": {"sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": [0, 1, 2, 3]},
            }
        },
    }


def test_placements_on_cpu_have_no_index() -> None:
    shards = export_plan(document(), device="cpu")["plan"]["sparse.bags"]["pieces"]["shards"]
    assert [shard["placement"] for shard in shards] == ["rank:3/cpu", "rank:0/cpu"]


@pytest.mark.parametrize("path", ["bags", ""])
def test_a_path_is_taken_where_the_plan_has_none(path: str) -> None:
    assert list(export_plan(without_paths(), module_path=path)["plan"]) == [path]


def test_no_path_is_guessed() -> None:
    with pytest.raises(UnexportablePlan, match=r'Table "pieces" carries no module_path; .*--module-path'):
        export_plan(without_paths())


def test_a_path_that_contradicts_the_plan() -> None:
    with pytest.raises(UnexportablePlan, match=r'under module_path "sparse\.bags" in the plan, not "other"'):
        export_plan(document(), module_path="other")


def test_a_changed_plan_is_not_exported() -> None:
    changed = document()
    changed["tables"][0]["shards"][0]["rank"] = 2
    with pytest.raises(UnexportablePlan, match="was changed after it was published"):
        export_plan(changed)


def test_an_unknown_device() -> None:
    with pytest.raises(UnexportablePlan, match="cuda, cpu, mtia"):
        export_plan(document(), device="tpu")
