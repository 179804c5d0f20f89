"""The benchmark of starts: its models are small ones that parse, and both plans are judged with starts."""

import json

import pytest

from api.specs.parse import parse_spec
from benchmarks.prices import starts


@pytest.mark.parametrize("seed", range(5))
def test_models_parse_and_repeat(seed: int) -> None:
    spec = starts.small_model(seed)
    assert spec == starts.small_model(seed) != starts.small_model(seed + 1)
    problem = parse_spec(json.dumps(spec).encode()).problem
    assert problem.counts_starts
    assert 6 <= len(problem.tables) <= 24


def test_a_worse_plan_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    gains = iter((0.2, 0.1, 0.05, -0.01))
    monkeypatch.setattr(starts, "_row", lambda number, seed, limits: {"gain": next(gains)})
    monkeypatch.setattr("sys.argv", ["starts.py", "--models", "4"])
    assert starts.main() == 1
    assert "2 of 4 models gain 10% or more; 1 are worse" in capsys.readouterr().out


def test_a_plan_with_starts_is_no_worse(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["starts.py", "--models", "1", "--seed", "19", "--work", "0.2"])
    assert starts.main() == 0
    assert "us" in capsys.readouterr().out
