"""``improve`` and ``import``: plans from anywhere made better, or made plans of ours."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from tests.api.cli.test_cli import spec, table
from tests.support.cli.run import Run
from tests.support.paths import SHARED
from tests.support.planning.print_outs import Printed, print_out
from tests.support.thorough import thorough


def on_rank(rank: int, rows: int, columns: int) -> dict[str, Any]:
    shard = {"placement": f"rank:{rank}/cuda:{rank}", "shard_offsets": [0, 0], "shard_sizes": [rows, columns]}
    return {"sharding_type": "table_wise", "compute_kernel": "fused", "ranks": [rank], "shards": [shard]}


def _large(name: str) -> dict[str, Any]:
    return {**table(name), "num_embeddings": 10_000_000, "embedding_dim": 128}


@pytest.fixture
def spec_file(tmp_path: Path) -> Path:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec(_large("a"), _large("b"), cost_model="torchrec", objective="max_rank_time")))
    return path


@pytest.fixture
def shape(spec_file: Path) -> tuple[int, int]:
    one = json.loads(spec_file.read_text())["model"]["tables"][0]
    return one["num_embeddings"], one["embedding_dim"]


@pytest.fixture
def lopsided(tmp_path: Path, shape: tuple[int, int]) -> Path:
    """TorchRec's, with both tables on one rank."""
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps({"plan": {"ebc": {"a": on_rank(0, *shape), "b": on_rank(0, *shape)}}}))
    return path


def test_a_plan_of_torchrec_is_improved_and_the_gain_is_reported(
    run: Run, spec_file: Path, lopsided: Path, tmp_path: Path
) -> None:
    answer = run("improve", spec_file, lopsided, "-o", tmp_path / "ours.json")
    assert answer.code == 0
    assert answer.out == ""
    ours = json.loads((tmp_path / "ours.json").read_bytes())
    assert ours["plan_digest"] == plan_digest(ours)
    theirs = run("import", spec_file, lopsided).document
    assert ours["objective"]["seconds"] < theirs["objective"]["seconds"]
    gain = 1 - ours["objective"]["seconds"] / theirs["objective"]["seconds"]
    assert f"{gain:.2%} less" in answer.err
    assert "proven: the given plan takes" in answer.err
    assert "A  " in answer.err  # what changed
    assert max(map(len, answer.err.splitlines())) <= 80


def test_what_moves_must_pay_where_the_job_runs(run: Run, spec_file: Path, lopsided: Path) -> None:
    stays = run("improve", spec_file, lopsided, "--remaining-steps", 1)
    assert stays.code == 0
    assert [one["shards"][0]["rank"] for one in stays.document["tables"]] == [0, 0]
    assert "no better plan was found" in stays.err
    assert stays.document["movement"]["moved_bytes"] == 0


def test_a_plan_that_breaks_rules_is_reported_and_repaired(
    run: Run, spec_file: Path, shape: tuple[int, int], tmp_path: Path
) -> None:
    rows, columns = shape
    blocks = [rows // 2 - 1, rows - rows // 2 + 1]  # uneven: TorchRec trains them wrongly
    shards = [
        {
            "placement": f"rank:{rank}/cuda:{rank}",
            "shard_offsets": [rank * blocks[0], 0],
            "shard_sizes": [size, columns],
        }
        for rank, size in enumerate(blocks)
    ]
    uneven = {"sharding_type": "row_wise", "compute_kernel": "fused", "ranks": [0, 1], "shards": shards}
    path = tmp_path / "uneven.json"
    path.write_text(json.dumps({"plan": {"": {"a": uneven, "b": on_rank(0, *shape)}}}))
    answer = run("improve", spec_file, path)
    assert answer.code == 0
    assert "train silently wrong" in answer.err
    assert "/plan/plan//a" in answer.err
    assert "the given plan breaks rules" in answer.err
    assert run("evaluate", spec_file, path).code == 1
    refused = run("import", spec_file, path)
    assert (refused.code, refused.out) == (1, "")


def test_a_plan_without_one_of_the_tables_is_refused(
    run: Run, spec_file: Path, shape: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / "dropped.json"
    path.write_text(json.dumps({"plan": {"": {"a": on_rank(0, *shape)}}}))
    for command in ("improve", "import", "evaluate"):
        answer = run(command, spec_file, path)
        assert answer.code == 1
        assert 'table "b"' in answer.err


def test_what_is_imported_is_a_plan_that_shardplan_wrote(
    run: Run, spec_file: Path, lopsided: Path, tmp_path: Path
) -> None:
    path = tmp_path / "imported.json"
    assert run("import", spec_file, lopsided, "-o", path).code == 0
    document = json.loads(path.read_bytes())
    assert path.read_bytes() == canonical_bytes(document)
    assert document["objective"]["relative_gap"] is None
    assert run("compare", path, path).code == 0
    assert run("certify", spec_file, path).code == 0
    exported = run("export", path, "--module-path", "ebc").document
    assert exported["plan"] == json.loads(lopsided.read_text())["plan"]


def test_a_job_that_runs_torchrecs_plan_is_planned_on_from_it(run: Run, spec_file: Path, lopsided: Path) -> None:
    planned = run("plan", spec_file, "--previous", lopsided)
    assert planned.code == 0
    assert planned.document["movement"]["kept_bytes"] > 0


def test_a_print_out_of_torchrec_is_evaluated_improved_and_imported(run: Run, spec_file: Path, tmp_path: Path) -> None:
    log, previous = tmp_path / "training.log", tmp_path / "next.json"
    tables = [Printed(path=f"m.{name}", sharding="TW", ranks="0", rows=10_000_000, columns="128") for name in "ab"]
    log.write_text("loading\n" + print_out(tables, ["0.0", "0.0"]))
    evaluated = run("evaluate", spec_file, log)
    assert evaluated.code == 0
    warnings = {warning["code"]: warning["message"] for warning in evaluated.document["warnings"]}
    assert set(warnings) == {"print-out-inferred", "print-out-memory"}
    assert "HBM of 2 ranks against the print-out" in warnings["print-out-memory"]
    imported = run("import", spec_file, log)
    assert [shard["rank"] for table in imported.document["tables"] for shard in table["shards"]] == [0, 0]
    improved = run("improve", spec_file, log)
    assert improved.document["objective"]["seconds"] < imported.document["objective"]["seconds"]
    assert run("plan", spec_file, "--previous", log, "-o", previous, "--quiet").code == 0


def test_memory_that_agrees_with_the_print_out_is_reported(run: Run, spec_file: Path, tmp_path: Path) -> None:
    log, document = tmp_path / "training.log", json.loads(spec_file.read_text())
    document["model"]["pipeline"] = "none"
    spec_file.write_text(json.dumps(document))
    tables = [Printed(path=f"m.{name}", sharding="TW", ranks=rank, rows=10_000_000, columns="128")
              for name, rank in (("a", "0"), ("b", "1"))]  # fmt: skip
    ledger = run("import", spec_file, _written(log, print_out(tables, ["0.0", "0.0"]))).document["ranks"][0]["bytes"]
    answer = run("evaluate", spec_file, _written(log, print_out(tables, [f"{ledger['hbm'] / 2**30:.3f}"] * 2)))
    assert "HBM of 2 ranks against the print-out, by TorchRec's ledger" in answer.err
    assert [warning["code"] for warning in answer.document["warnings"]] == ["print-out-inferred"]


def test_a_plan_of_hugectr_is_improved(run: Run, spec_file: Path, tmp_path: Path) -> None:
    path = _written(
        tmp_path / "h.json", json.dumps({"shard_matrix": [["a", "b"], []], "shard_strategy": [["mp", ["a", "b"]]]})
    )
    imported = run("import", spec_file, path).document
    assert [shard["rank"] for table in imported["tables"] for shard in table["shards"]] == [0, 0]
    improved = run("improve", spec_file, path).document
    assert improved["objective"]["seconds"] < imported["objective"]["seconds"]


@thorough
def test_a_public_log_of_1935_tables_is_improved(run: Run, tmp_path: Path) -> None:
    folder = SHARED / "cases/models/torchrec-1935-tables-96-ranks"
    if not folder.is_dir():
        pytest.skip(f"{folder} is absent: public logs are not part of the repository")
    spec_path, log = tmp_path / "spec.json", tmp_path / "training.log"
    spec_path.write_bytes(gzip.decompress((folder / "spec_tr_none.json.gz").read_bytes()))
    log.write_bytes(gzip.decompress((folder / "planner_statistics.txt.gz").read_bytes()))
    answer = run("improve", spec_path, log, "--time-limit", "5", "-o", tmp_path / "better.json")
    assert answer.code == 0
    assert "HBM of 96 ranks against the print-out, by TorchRec's ledger" in answer.err
    theirs = run("evaluate", spec_path, log).document["score"]["objective_seconds"]
    assert json.loads((tmp_path / "better.json").read_bytes())["objective"]["seconds"] < theirs


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
