"""The benchmark of real steps, whole: two processes train a small model under a few plans."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torchrec", reason="torchrec is not installed: pip install 'shardplan[torchrec]'")

from benchmarks import real_steps
from benchmarks.prices.real_steps.measured import Effort, TrainingFailed, measure
from benchmarks.prices.real_steps.models import StepModel, TableShape
from tests.support.thorough import thorough

pytestmark = [pytest.mark.torchrec, pytest.mark.filterwarnings("ignore::FutureWarning")]

SMALL = StepModel(
    name="small",
    batch_size_per_rank=8,
    tables=tuple(
        TableShape(name=f"t{index}", rows=50 + index, columns=16, pooling_factor=2.0, zipf_alpha=0.5)
        for index in range(3)
    ),
)
FEW = ["--plans", "6", "--rounds", "2", "--steps", "1", "--solve", "0.2"]


@thorough
def test_two_processes_train_a_model_under_every_plan(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_steps, "step_models", lambda: {"small": SMALL})
    monkeypatch.setattr(real_steps, "bare_model", lambda: replace(SMALL, name="bare"))
    code = real_steps.main([*FEW, "--models", "small", "--json", str(tmp_path / "out.json")])
    assert code in (0, 1)  # how fast plans are is no matter of a test
    document = json.loads((tmp_path / "out.json").read_text())
    assert "table_wise" in {one["kind"] for one in document["starts"]}
    assert set(document["collectives"]) == {"all_to_all", "reduce_scatter", "all_gather", "all_reduce"}
    (model,) = document["models"]
    names = [name for plan in model["plans"] for name in plan["names"]]
    assert {"torchrec planner", "table-wise by size", "ours: roofline", "ours: learned"} <= set(names)
    assert len(model["plans"]) == 7  # six different ones, and TorchRec's once more
    assert model["rounds"] == 2
    for plan in model["plans"]:
        assert plan["measured_seconds"] > 0
        assert plan["busy_seconds"] > 0
        assert plan["predicted"].keys() == {"roofline", "learned"}
        assert "forward_compute" in plan["measured_phases"]
    printed = capsys.readouterr().out
    assert "small: 6 plans, 2 rounds of 1 steps" in printed
    assert "bare: 6 plans, 2 rounds of 1 steps" in printed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--processes", "1"], "expected at least 2, got 1"),
        (["--plans", "4"], "expected at least 5, got 4"),
        (["--profile", "dgx-h100-80g"], "invalid choice: 'dgx-h100-80g'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        real_steps.main(options)
    assert text in capsys.readouterr().err


def test_a_model_that_is_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.json").write_text("{}")
    assert real_steps.main(["--model", str(tmp_path / "model.json")]) == 2
    assert capsys.readouterr().err.strip()


def test_a_rank_that_fails_is_reported() -> None:
    broken = {"schema_version": 1, "tables": []}
    with pytest.raises(TrainingFailed, match=r"small: the ranks failed:[\s\S]*PlanRejected"):
        measure(SMALL, [broken], Effort(world_size=2, rounds=1, steps=1, seconds=1.0))
