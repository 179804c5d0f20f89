"""The compiler of the searches: one at a time, and none without its server."""

import os
import signal
import threading
import time
from importlib import import_module
from pathlib import Path

import pytest

from api.execution.processes.compile_searches import compile_once
from planner.solver.partitioners.kernels.cache import warm_mark
from tests.support.service.server import Server
from tests.support.waiting import wait_until


def processes_with(cache: Path) -> dict[int, bytes]:
    """Command lines of the processes that live and keep machine code in a folder."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            is_zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            if not is_zombie and f"NUMBA_CACHE_DIR={cache}\0".encode() in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes()
        except OSError:  # it is gone, or somebody else's
            continue
    return found


def test_a_server_that_is_killed_during_a_cold_start_leaves_no_process(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(cache))
    server = Server(root, tmp_path / "data").wait_until_ready()
    assert any(b"compile_searches" in command for command in processes_with(cache).values())
    server.stop(signal.SIGKILL)
    wait_until(lambda: not processes_with(cache))
    monkeypatch.undo()
    assert not list(cache.rglob("warm-*"))  # it was not done


def test_one_compile_serves_all_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiled: list[int] = []

    def warm() -> None:
        compiled.append(threading.get_ident())
        time.sleep(0.2)  # others come meanwhile
        warm_mark().touch()

    monkeypatch.setattr(import_module("planner.solver.partitioners.kernels.warm_up"), "warm", warm)
    starts = [threading.Thread(target=compile_once) for _ in range(4)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert len(compiled) == 1
    assert os.listdir(tmp_path) == [warm_mark().parent.name]
