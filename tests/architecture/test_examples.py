"""The examples are valid specs, and DLRM-DCNv2 is the model that it claims to be."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from api.specs.parse import parse_spec


def spec(examples: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((examples / name).read_text())
    return loaded


@pytest.mark.parametrize(
    "name",
    [
        "dlrm_dcnv2_8.json",
        "dlrm_dcnv2_2x8.json",
        "dlrm_small.json",
        "dynamicemb.json",
        "serving_6card.json",
        "hash_tables.json",
    ],
)
def test_examples_are_valid(examples: Path, name: str) -> None:
    request = parse_spec((examples / name).read_bytes())
    ranks = {"dlrm_dcnv2_8.json": 8, "dlrm_dcnv2_2x8.json": 16, "serving_6card.json": 6, "hash_tables.json": 8}
    assert request.problem.world_size == ranks.get(name, 4)


def test_dcnv2_has_the_published_totals(examples: Path) -> None:
    tables = spec(examples, "dlrm_dcnv2_8.json")["model"]["tables"]
    assert len(tables) == 26
    assert sum(table["num_embeddings"] for table in tables) == 204_184_588
    assert sum(feature["pooling_factor"] for table in tables for feature in table["features"]) == 214
    assert {table["embedding_dim"] for table in tables} == {128}


def test_dcnv2_equals_the_public_workload(examples: Path, shared: Path) -> None:
    public = json.loads((shared / "workloads" / "mlperf_dlrm_dcnv2.json").read_text())["tables"]
    tables = spec(examples, "dlrm_dcnv2_8.json")["model"]["tables"]
    assert [(t["name"], t["num_embeddings"], t["features"][0]["pooling_factor"]) for t in tables] == [
        (t["name"], t["num_embeddings"], t["pooling_factor"]) for t in public
    ]


def test_both_clusters_train_the_same_model_on_the_same_global_batch(examples: Path) -> None:
    one, two = spec(examples, "dlrm_dcnv2_8.json"), spec(examples, "dlrm_dcnv2_2x8.json")
    assert one["model"]["tables"] == two["model"]["tables"]
    assert one["model"]["batch_size_per_rank"] * 8 == two["model"]["batch_size_per_rank"] * 16 == 65_536


def test_dense_parameters_are_counted_right(examples: Path) -> None:
    # the reference architecture, as examples/README.md counts it
    def mlp(*widths: int) -> int:
        return sum(a * b + b for a, b in itertools.pairwise(widths))

    crossed = (26 + 1) * 128
    cross = 3 * (crossed * 512 + 512 * crossed + crossed)
    weights = mlp(13, 512, 256, 128) + cross + mlp(crossed, 1024, 1024, 512, 256, 1)
    assert weights == 16_044_545
    assert spec(examples, "dlrm_dcnv2_8.json")["model"]["dense"]["parameter_bytes"] == 4 * weights
