"""Made-up instances: valid specs, of the stated size and fill, the same bytes every time."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from api.specs.parse import parse_spec
from benchmarks.inputs import instances
from benchmarks.inputs.instances import meta_family, torchrec_family, torchrec_instance

GIB = 1024**3


def weight_bytes(spec: dict[str, Any]) -> int:
    element = {"fp16": 2, "fp32": 4}
    tables = spec["model"]["tables"]
    return sum(t["num_embeddings"] * t["embedding_dim"] * element[t["data_type"]] for t in tables)


def digest(spec: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:12]


@pytest.mark.parametrize(("tables", "ranks"), [(50, 8), (200, 64), (30, 128)])
def test_torchrec_family(tables: int, ranks: int) -> None:
    spec = torchrec_family(num_tables=tables, num_ranks=ranks, seed=3)
    assert len(spec["model"]["tables"]) == tables
    assert spec["hardware"]["num_hosts"] * spec["hardware"]["ranks_per_host"] == ranks
    assert spec["model"]["batch_size_per_rank"] == max(512, 65536 // ranks)
    assert (spec["objective"], spec["cost_model"]) == ("max_rank_time", "torchrec")
    fill = weight_bytes(spec) / (80 * GIB * ranks)
    assert spec["name"] == f"torchrec-t{tables}-r{ranks}-f{round(1000 * fill)}-s3"
    # 30 tables of at most 1e8 rows are few for 10 TiB; they take what half of their limit allows
    assert (0.50 <= fill <= 0.66) if tables > 30 else 0.01 < fill < 0.50
    assert all(1e3 <= t["num_embeddings"] <= 1e8 for t in spec["model"]["tables"])
    parse_spec(json.dumps(spec).encode())


def test_torchrec_family_is_drawn_as_the_golden_instances_are() -> None:
    tables = torchrec_instance(num_tables=2000, num_ranks=64, seed=0)["tables"]
    pooling = [t["pooling_factor"] for t in tables]
    many = sorted(p for p in pooling if p > 1)
    assert 0.45 < sum(p == 1 for p in pooling) / 2000 < 0.55
    assert (many[0] >= 2.0, many[-1] <= 200.0) == (True, True)
    assert 3.5 < many[len(many) // 2] < 4.7  # median of a Pareto law from 2 with exponent 1 is 4
    assert 0.31 < sum(t["embedding_dim"] == 64 for t in tables) / 2000 < 0.39
    assert 0.21 < sum(t["data_type"] == "fp16" for t in tables) / 2000 < 0.29


@pytest.mark.parametrize(("tables", "ranks", "fill"), [(100, 8, 0.9), (40, 128, 0.5), (300, 1024, 0.95)])
def test_meta_family(tables: int, ranks: int, fill: float) -> None:
    spec = meta_family(num_tables=tables, num_ranks=ranks, fill=fill, seed=1)
    assert spec["name"] == f"roofline-dgx-h100-80g-step_time-t{tables}-r{ranks}-f{round(1000 * fill)}-s1"
    state = sum(4 * t["num_embeddings"] for t in spec["model"]["tables"])  # one fp32 per row
    # 80 GB per rank, of which 15 % stay free
    assert (weight_bytes(spec) + state) / (0.85 * 80e9 * ranks) == pytest.approx(fill, rel=1e-4)
    parse_spec(json.dumps(spec).encode())


def test_the_largest_size_is_made() -> None:
    spec = meta_family(num_tables=5000, num_ranks=1024, fill=0.9, seed=0)
    assert (len(spec["model"]["tables"]), spec["hardware"]["num_hosts"]) == (5000, 128)


def test_equal_arguments_give_equal_bytes_on_every_platform() -> None:
    # pinned: figures in reports name instances, so that a name must always mean the same tables
    assert digest(torchrec_family(num_tables=50, num_ranks=8, seed=0)) == "9b08e7560590"
    assert digest(meta_family(num_tables=60, num_ranks=16, fill=0.8, seed=0)) == "7da2c475b37e"


def test_size_and_seed_change_the_tables() -> None:
    made = [
        torchrec_family(num_tables=20, num_ranks=8, seed=0),
        torchrec_family(num_tables=20, num_ranks=8, seed=1),
        torchrec_family(num_tables=20, num_ranks=16, seed=0),
    ]
    assert len({digest(spec["model"]["tables"][:20]) for spec in made}) == 3


def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(ValueError, match="12 ranks are no multiple of 8"):
        torchrec_family(num_tables=5, num_ranks=12, seed=0)
    with pytest.raises(ValueError, match="fill must be in"):
        meta_family(num_tables=5, num_ranks=8, fill=1.5, seed=0)
    with pytest.raises(ValueError, match="all tiny"):
        meta_family(num_tables=2, num_ranks=2, fill=0.5, seed=0)


def test_command_writes_every_combination(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--out", str(tmp_path), "--tables", "5", "6", "--ranks", "4", "8", "--seed", "0", "1"]
    assert instances.main([*given, "--family", "torchrec"]) == 0
    assert len(list(tmp_path.iterdir())) == len(capsys.readouterr().out.splitlines()) == 8
    assert instances.main([*given, "--family", "roofline", "--fill", "0.5", "0.9", "--profile", "dgx-a100-80g"]) == 0
    assert len(list(tmp_path.glob("roofline-dgx-a100-80g-*.json"))) == 16
    for path in tmp_path.iterdir():
        assert json.loads(path.read_text())["name"] == path.stem
        parse_spec(path.read_bytes())


def test_command_needs_the_source_of_tasks(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        instances.main(["--out", str(tmp_path), "--family", "neuroshard"])
