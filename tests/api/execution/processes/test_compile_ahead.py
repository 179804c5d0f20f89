"""Machine code that is not there yet costs a solve nothing but patience."""

import logging
import sys
import threading
from pathlib import Path

import pytest

from api.execution.processes import compile_ahead as compiling
from api.execution.processes.compile_ahead import Compiling
from api.execution.solves import runner as solve_runner
from tests.support.service.live import Live
from tests.support.service.specs import TINY, tiny
from tests.support.thorough import thorough

#: Stands for a compiler that takes its time: it ends when the file is there.
_WAIT_FOR = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says that all is compiled, which it is not yet."""
    path = tmp_path / "compiled"
    monkeypatch.setattr(compiling, "is_warm", path.exists)
    return path


def compile_with(monkeypatch: pytest.MonkeyPatch, program: str, *arguments: str) -> None:
    command = [sys.executable, "-c", program, *arguments]
    monkeypatch.setattr(solve_runner, "Compiling", lambda: Compiling(command))


@thorough
def test_solves_wait_for_the_compiler_and_then_have_all_their_time(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_with(monkeypatch, _WAIT_FOR, str(mark))
    with Live.of(tmp_path) as live:
        waiting, unwanted = (live.post("/v1/solves", tiny(name=name)).json()["id"] for name in ("wanted", "unwanted"))
        assert live.get(f"/v1/solves/{waiting}?wait=2").json()["state"] == "queued"
        store = live.app.state.services.store
        assert store.solve(waiting).attempts == 0
        assert live.post(f"/v1/solves/{unwanted}:cancel").json()["state"] == "cancelled"
        mark.touch()
        assert live.get(f"/v1/solves/{waiting}?wait=60").json()["state"] == "succeeded"
        assert store.solve(waiting).attempts == 1


@thorough
@pytest.mark.parametrize("command", [[sys.executable, "-c", "raise SystemExit(1)"], ["no-such-compiler"]])
def test_a_compiler_that_fails_is_reported_once_and_stops_no_one(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, command: list[str]
) -> None:
    monkeypatch.setattr(solve_runner, "Compiling", lambda: Compiling(command))
    with caplog.at_level(logging.WARNING, "api.execution.processes.compile_ahead"), Live.of(tmp_path) as live:
        for name in ("first", "second"):
            assert live.solve(tiny(name=name))["state"] == "succeeded"
    assert not mark.exists()
    assert len([line for line in caplog.messages if "solver processes compile what they need" in line]) == 1


@thorough
def test_a_server_that_stops_does_not_wait_for_the_compiler(
    tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_with(monkeypatch, _WAIT_FOR, str(mark))
    with Live.of(tmp_path) as live:
        solve_id = live.post("/v1/solves", TINY).json()["id"]
    monkeypatch.undo()
    with Live.of(tmp_path) as live:
        assert live.get(f"/v1/solves/{solve_id}?wait=30").json()["state"] == "succeeded"


def test_a_compiler_that_hangs_is_not_waited_for_for_ever(mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_MOST_SECONDS", 0.3)
    hanging = Compiling([sys.executable, "-c", _WAIT_FOR, str(mark)])
    assert hanging.begin()
    compiler = hanging._process  # noqa: SLF001
    hanging.wait(threading.Event())
    assert compiler.returncode is not None  # it would only compete
    hanging.wait(threading.Event())


def test_what_is_compiled_is_not_compiled_again(mark: Path) -> None:
    mark.touch()
    idle = Compiling([sys.executable, "-c", "pass"])
    assert not idle.begin()
    idle.wait(threading.Event())
    idle.stop()
