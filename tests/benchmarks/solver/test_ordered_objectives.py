"""What memory costs in step time: the script that asks for it."""

import json
from pathlib import Path

import pytest

from benchmarks.solver import ordered_objectives
from tests.support.service.specs import tiny


def test_a_tolerance_buys_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, out = tmp_path / "spec.json", tmp_path / "out.json"
    solver = {"partitioner": "portfolio", "time_limit_seconds": 60, "work_limit_seconds": 0.5}
    spec.write_text(json.dumps(tiny(model__tables__0__num_embeddings=3_000_000, solver=solver)))
    arguments = ("--tolerances", "5", "--margins", "0.3", "--time-limit", "60", "--json", str(out))
    ordered_objectives.main([str(spec), *arguments])
    alone, within, margin = json.loads(out.read_text())
    assert within["fullest_bound_bytes"] <= within["fullest_bytes"] < alone["fullest_bytes"]
    assert alone["step_seconds"] <= within["step_seconds"] <= 6 * alone["step_seconds"]
    assert margin["fullest_bound_bytes"] is None
    assert len(capsys.readouterr().out.splitlines()) == 4
