"""The command ``study`` on scenarios: every plan is the one that the answer has, and a study goes on where it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli.run import Run
from tests.support.service.specs import tiny

FACTOR = "model.tables.a.pooling_factor"
SCENARIOS = [
    {"label": "day", "set": {FACTOR: 40, "model.tables.b.pooling_factor": 1}},
    {"label": "night", "weight": 2, "set": {FACTOR: 1, "model.tables.b.pooling_factor": 30}},
]


def written(folder: Path, **fields: object) -> Path:
    path = folder / "study.json"
    document = {"kind": "scenarios", "spec": tiny(), "scenarios": SCENARIOS, "num_rounds": 2, **fields}
    path.write_text(json.dumps(document))
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_the_answer_is_what_evaluate_says_of_its_plan(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("study", written(tmp_path), "-o", out, "--processes", "1")
    assert result.code == 0, result.err
    answer = read(out / "answer.json")
    plan = out / "plans" / f"{answer['plan']['plan_digest'].replace(':', '-')}.json"
    for one, scenario in zip(answer["scenarios"], SCENARIOS, strict=True):
        sets = [f"{field}={value}" for field, value in scenario["set"].items()]  # type: ignore[attr-defined]
        spec = tmp_path / "spec.json"
        spec.write_text(json.dumps(tiny()))
        evaluated = run("evaluate", spec, plan, "--json", *(part for field in sets for part in ("--set", field)))
        assert evaluated.code == 0, evaluated.err
        assert json.loads(evaluated.out)["score"]["objective_seconds"] == pytest.approx(one["seconds"], rel=1e-12)
        assert one["own_lower_bound_seconds"] <= one["own_seconds"] <= one["seconds"]
    worst = max(one["seconds"] for one in answer["scenarios"])
    assert answer["plan"]["cost"] == worst
    assert answer["lower_bound"] <= worst <= answer["plan_of_mean"]["cost"]
    assert {point["key"] for point in read(out / "points.json")["points"]} == {
        "own/day", "own/night", "mean", "largest", "together", "robust", "chosen",
    }  # fmt: skip
    assert "day: " in result.err
    assert "of its own best (mean " in result.err
    assert all(len(line) <= 80 for line in result.err.splitlines())


def test_a_study_goes_on_where_it_was(run: Run, tmp_path: Path) -> None:
    out, path = tmp_path / "out", written(tmp_path)
    run("study", path, "-o", out, "--processes", "1")
    first = (out / "answer.json").read_bytes()
    log = (out / "study.jsonl").read_text().splitlines()
    (out / "study.jsonl").write_text("\n".join(log[:4]) + '\n{"key": "together", "cut o')
    again = run("study", path, "-o", out, "--processes", "1")
    assert again.err.count("done before") == 4
    assert (out / "answer.json").read_bytes() == first
    assert run("study", path, "-o", out, "--processes", "1").err.count("done before") == 7


def test_what_is_wrong_is_reported_with_its_place(run: Run, tmp_path: Path) -> None:
    bad = [{"label": "day", "set": {"hardware.num_hosts": 4}}, {"label": "day"}]
    result = run("study", written(tmp_path, scenarios=bad), "-o", tmp_path / "out")
    assert result.code == 1
    assert "/scenarios/0/set" in result.err
    assert "/scenarios/1/label" in result.err
