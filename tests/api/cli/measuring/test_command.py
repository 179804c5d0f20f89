"""``shardplan measure``: rows of this machine in a given time, and a file that later runs go on with."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from api.cli import main
from api.cli.measuring import machine
from cost_models.measurements.csv_rows import csv_text
from cost_models.measurements.files import read_measurements
from tests.support.cost_models.measured_rows import some_measurements
from tests.support.paths import ROOT
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(["measure", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "60"), "--budget takes a number and s, m or h"),
        (("--budget", "0.5s"), "use 1s to 24h"),
        (("--budget", "48h"), "use 1s to 24h"),
        (("--budget", "nans"), "--budget takes"),
        (("--resume",), "name it with -o"),
        (("-o", "rows.csv.gz"), "compress it afterwards"),
        (("-o", "nowhere/rows.csv"), "there is no folder"),
        (("--seed", "-1"), "--seed"),
        (("--only", "plans"), "--only"),
    ],
)
def test_bad_arguments(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert message in err


def test_a_file_is_not_overwritten(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    code, _, err = run(capsys, "-o", path)
    assert code == 1
    assert "--resume" in err
    assert path.read_text() == "mine"


def test_a_file_that_holds_no_rows_of_ours_is_not_gone_on_with(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")
    path = tmp_path / "rows.csv"
    path.write_text("my,own\nfile")
    code, _, err = run(capsys, "-o", path, "--resume")
    assert code == 1
    assert "does not begin as a file of shardplan measure" in err
    assert path.read_text() == "my,own\nfile"
    path.write_text(csv_text(some_measurements()).replace("0.002", "nan", 1))
    code, _, err = run(capsys, "-o", path, "--resume")
    assert code == 1
    assert "1 problem in the measurements" in err
    assert "row 1, seconds (nan): expected a number" in err


def test_without_torch_it_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "find_spec", lambda name: None)
    code, _, err = run(capsys)
    assert code == 1
    assert "pip install 'shardplan[train]'" in err


def test_more_ranks_than_cores(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")
    code, _, err = run(capsys, "--ranks", "1024")
    assert code == 1
    assert "this machine has" in err


def test_a_time_too_short_for_anything_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")
    monkeypatch.setattr("api.cli.measuring.session.Plan.gone", lambda _: 1.0)
    code, out, err = run(capsys, "--only", "lookups", "--budget", "1s")
    assert (code, out) == (0, "")
    assert "give a larger --budget" in err


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", "from api.cli import main; main()", "measure", *(str(item) for item in arguments)]


@thorough
def test_rows_of_a_killed_run_are_gone_on_with(tmp_path: Path) -> None:
    """A run is killed as soon as it has rows; the next one keeps all of them, and adds more."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")
    path = tmp_path / "rows.csv"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    first = subprocess.Popen(command("--budget", "300s", "--only", "lookups", "-q", "-o", path), env=environment)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and not (path.exists() and path.read_bytes().count(b"\n") > 5):
            time.sleep(0.1)
    finally:
        first.kill()
        first.wait()
    before = path.read_text()
    again = command("--budget", "10s", "--only", "lookups", "--resume", "-o", path)
    result = subprocess.run(
        again, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
    )
    assert result.returncode == 0, result.stderr
    assert all(len(line) <= 80 for line in result.stderr.splitlines() if str(path) not in line)
    assert "rows measured in" in result.stderr
    whole = before[: before.rfind("\n") + 1]
    assert path.read_text().startswith(whole)
    rows = read_measurements(path)
    assert rows.num_rows > whole.count("\n") - 1
    assert set(rows.text("kind")) == {"lookup"}
    assert (rows.numbers("distinct_rows") <= rows.numbers("lookups")).all()


@thorough
def test_ranks_of_this_machine_exchange_and_copy(tmp_path: Path) -> None:
    """Two ranks over gloo; their rows agree on what one gives and the other takes."""
    pytest.importorskip("torch", reason="torch is not installed: pip install 'shardplan[train]'")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core has one rank, which exchanges with nobody")
    path = tmp_path / "rows.csv"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = subprocess.run(
        command("--budget", "40s", "-o", path),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert found.returncode == 0, found.stderr
    assert "Warning" not in found.stderr
    rows = read_measurements(path)
    assert set(rows.text("kind")) == {"collective", "copy", "lookup"}
    exchange = rows.take(rows.text("kind") == "collective")
    assert set(exchange.text("implementation")) == {"gloo"}
    assert (exchange.counts("num_ranks") == 2).all()
    for launch in np.unique(exchange.counts("launch")):
        both = exchange.take(exchange.counts("launch") == launch)
        assert both.counts("rank").tolist() == [0, 1]
        if both.text("operation")[0] == "all_to_all":
            assert both.numbers("sent_bytes").sum() == both.numbers("received_bytes").sum()
