"""The benchmark of certificates: what it plans is certified, and checked in a process of its own."""

import json
from pathlib import Path

import pytest

from benchmarks.solver.certificates import main
from tests.support.thorough import thorough


@thorough
def test_every_plan_is_certified_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A public workload and made-up tables, under both objectives; a file that is no workload is passed over."""
    folder = tmp_path / "workloads"
    folder.mkdir()
    table = {"name": "a", "num_embeddings": 1000, "embedding_dim": 32, "pooling_factor": 2}
    workload = {"name": "public", "batch_size": 128, "tables": [table, {**table, "name": "b"}]}
    (folder / "public.json").write_text(json.dumps(workload))
    (folder / "other.json").write_text("[]")
    arguments = ["--shared", str(tmp_path), "--tables", "6", "--ranks", "4", "--fill", "0.5", "--time-limit", "0.5"]
    assert main(arguments) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["plan", "own", "gap"]
    assert len(lines) == 4
    assert all(line.endswith("ACCEPTED") for line in lines)
    assert lines[0].startswith("public step_time")
