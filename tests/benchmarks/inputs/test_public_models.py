"""Public models as specs: of examples, of workloads, of outsiders; each one valid and under a name of its own."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from api.specs.parse import parse_spec
from benchmarks.inputs.public_models import dcnv2_specs, outsiders_specs, workload_specs

TABLE = {"name": "a", "num_embeddings": 100, "embedding_dim": 16, "pooling_factor": 1.0}
SPEC: dict[str, Any] = {
    "model": {"batch_size_per_rank": 4, "tables": [TABLE]},
    "hardware": {"profile": "dgx-h100-80g", "num_hosts": 2},
}


def test_dcnv2_has_one_global_batch_on_every_shape() -> None:
    specs = list(dcnv2_specs())
    assert [spec["name"] for spec in specs] == ["dlrm_dcnv2_1x8", "dlrm_dcnv2_2x8", "dlrm_dcnv2_8x8"]
    batches = {spec["model"]["batch_size_per_rank"] * 8 * spec["hardware"]["num_hosts"] for spec in specs}
    assert batches == {65536}


def test_specs_are_those_of_folders_that_hold_tables_and_hardware(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "spec.json").write_text(json.dumps(SPEC))
    (tmp_path / "one" / "plan.json").write_text(json.dumps({"tables": []}))
    (tmp_path / "two" / "big.json.gz").write_bytes(gzip.compress(json.dumps(SPEC).encode()))
    found = list(outsiders_specs(tmp_path))
    assert [spec["name"] for spec in found] == ["one", "two/big"]
    assert found[0]["hardware"] == {"profile": "dgx-h100-80g", "num_hosts": 2, "ranks_per_host": 8}
    assert {spec["objective"] for spec in found} == {"step_time"}


def test_files_that_describe_no_tables_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"name": "a", "batch_size": 64, "tables": [TABLE]}))
    (tmp_path / "b.json").write_text(json.dumps([1]))
    assert [spec["name"] for spec in workload_specs(tmp_path)] == ["a"]


def test_every_public_model_is_a_valid_spec(shared: Path) -> None:
    folders = shared / "workloads", shared / "cases" / "models"
    if not all(folder.is_dir() for folder in folders):
        pytest.skip("no ../shared/workloads and ../shared/cases/models")
    specs = [*dcnv2_specs(), *workload_specs(folders[0]), *outsiders_specs(folders[1])]
    names = [spec["name"] for spec in specs]
    assert len(names) == len(set(names)) >= 20
    for spec in specs:
        parse_spec(json.dumps(spec).encode())
