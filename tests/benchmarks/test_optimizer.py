"""The command: a table within 120 columns, all figures as JSON, and its exit status."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import optimizer
from benchmarks.peers.peers import PeerFigure
from benchmarks.solver.suites import SUITES
from planner.solver.partitioners.registry import make_partitioner, partitioner_names


def test_smoke(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    given = ["--suite", "smoke", "--time-limit", "0.2", "--partitioner", "greedy", "local_search", "--profile"]
    assert optimizer.main([*given, "--json", str(out)]) == 0
    reported = capsys.readouterr().out.splitlines()
    assert max(map(len, reported)) <= 120
    assert sum(text.startswith("  greedy ") for text in reported) == 3 + 1  # and once in the summary
    assert sum("s: parse " in text for text in reported) == 6
    figures = json.loads(out.read_text())
    assert figures["protocol"]["reproducible"] is True
    rows = figures["suites"]["smoke"]
    assert [found["partitioner"] for found in rows] == ["greedy", "local_search"] * 3
    assert rows[0]["peers"][0]["who"] == "TorchRec 1.8.0, re-made"
    assert all(found["objective_seconds"] >= found["lower_bound_seconds"] > 0 for found in rows)


def test_limit_and_default_partitioners(capsys: pytest.CaptureFixture[str]) -> None:
    assert optimizer.main(["--suite", "smoke", "--limit", "1", "--time-limit", "0.1"]) == 0
    reported = capsys.readouterr().out
    assert reported.count("limit 0.1 s") == 1
    for name in {make_partitioner(name).name for name in partitioner_names()}:
        assert reported.count(f"\n  {name} ") == 2


def test_a_better_peer_is_reported_by_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    perfect = PeerFigure(who="a perfect peer", evidence="", objective_seconds=1e-9, seconds=1.0)
    smoke = SUITES["smoke"]
    beaten = replace(
        smoke, instances=lambda sources: (replace(one, peers=(lambda _: perfect,)) for one in smoke.instances(sources))
    )
    monkeypatch.setitem(SUITES, "smoke", beaten)
    given = ["--suite", "smoke", "--limit", "1", "--time-limit", "0.1"]
    assert optimizer.main([*given, "--partitioner", partitioner_names()[0]]) == 1
    assert optimizer.main([*given, "--partitioner", "greedy"]) == 0  # the default alone is judged


def test_live_needs_torchrec(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(optimizer, "has_torchrec", lambda: False)
    assert optimizer.main(["--suite", "smoke", "--live"]) == 2
    assert "needs TorchRec" in capsys.readouterr().err
