"""The models of the studies are what the script writes, with the totals that papers state."""

import json
from pathlib import Path
from typing import Any

import pytest

from api.specs.parse import parse_spec
from benchmarks.papers import models


def parameters(spec: dict[str, Any]) -> float:
    return sum(table["num_embeddings"] * table["embedding_dim"] for table in spec["model"]["tables"])


def test_the_files_are_what_the_script_writes(examples: Path, tmp_path: Path) -> None:
    assert models.main(["--out", str(tmp_path)]) == 0
    folder = examples / "studies" / "models"
    assert {path.name for path in folder.iterdir()} == {path.name for path in tmp_path.iterdir()}
    for path in folder.iterdir():
        assert path.read_text() == (tmp_path / path.name).read_text(), path.name


@pytest.mark.parametrize(
    ("name", "total"),
    [("neo_a", 793e9), ("neo_f", 12e12), ("cvr", 40e9), ("terabytes", 3e12), ("checkpointed", 500e9)],
)
def test_models_have_their_totals_and_are_valid(examples: Path, name: str, total: float) -> None:
    raw = (examples / "studies" / "models" / f"{name}.json").read_bytes()
    assert parameters(json.loads(raw)) == pytest.approx(total, rel=1e-3)
    assert parse_spec(raw).problem.batch_size_per_rank == 512


def test_tables_of_model_a_are_as_the_paper_has_them(examples: Path) -> None:
    """93 columns and 15 ids a sample on average."""
    tables = json.loads((examples / "studies" / "models" / "neo_a.json").read_bytes())["model"]["tables"]
    assert len(tables) == 856
    assert sum(table["embedding_dim"] for table in tables) / 856 == pytest.approx(93, rel=0.1)
    assert sum(table["pooling_factor"] for table in tables) / 856 == pytest.approx(15, rel=0.2)
