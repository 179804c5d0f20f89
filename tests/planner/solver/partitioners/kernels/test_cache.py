import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from planner.solver.partitioners.kernels import cache
from planner.solver.partitioners.kernels.cache import cache_folder, compiling_alone, warm_mark


def copied_partitioners(root: Path, folder: Path) -> Path:
    """Copy the partitioners alone into a package of the same name; return their folder."""
    package = folder / "planner" / "solver" / "partitioners"
    shutil.copytree(root / "planner" / "solver" / "partitioners", package, ignore=shutil.ignore_patterns("__pycache__"))
    for parent in (package.parent, package.parent.parent):
        (parent / "__init__.py").touch()
    return package


def test_the_folder_of_machine_code_follows_the_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder().parent == tmp_path / "shardplan" / "compiled"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "given"))
    assert cache_folder().parent == tmp_path / "given"


@pytest.mark.parametrize("changed", ["cost/site_choice.py", "state/state.py"])
def test_a_changed_source_has_another_folder(root: Path, tmp_path: Path, changed: str) -> None:
    """Also a change in a function that is only called from compiled functions of other files, and of a constant."""
    package = copied_partitioners(root, tmp_path)
    ask = "from planner.solver.partitioners.kernels.cache import cache_folder; print(cache_folder().name)"

    def folder() -> str:
        done = subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    before = folder()
    (package / "portfolio.py").write_text("# interpreted\n")
    assert folder() == before
    with (package / "kernels" / changed).open("a") as source:
        source.write("# another\n")
    assert folder() != before


def test_a_copy_of_the_sources_is_not_warm_where_the_original_is(root: Path, tmp_path: Path) -> None:
    """Machine code is found by the path of its source."""
    package = copied_partitioners(root, tmp_path)
    ask = "from planner.solver.partitioners.kernels.cache import warm_mark; print(*warm_mark().parts[-2:])"

    def folder_and_mark() -> tuple[str, str]:
        done = subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
        folder, mark = done.stdout.split()
        return folder, mark

    folder, mark = folder_and_mark()
    assert folder == cache_folder().name
    assert mark != warm_mark().name
    os.utime(package / "kernels" / "compiled.py", (0, 0))
    touched_folder, touched_mark = folder_and_mark()
    assert (touched_folder, touched_mark) == (folder, mark)  # times are lost on the way through a registry


_HOLD = """
import time
from planner.solver.partitioners.kernels.cache import compiling_alone
with compiling_alone():
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_lock_of_a_process_that_died_is_none(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    entered = threading.Event()

    def enter() -> None:
        with compiling_alone():
            entered.set()

    with subprocess.Popen([sys.executable, "-c", _HOLD], cwd=root, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        waiting = threading.Thread(target=enter)
        waiting.start()
        try:
            assert not entered.wait(0.3)
        finally:
            holder.kill()
        waiting.join()
        assert entered.is_set()


def test_a_process_that_hangs_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_MOST_WAIT_SECONDS", 0.2)
    with compiling_alone(), compiling_alone():
        pass


def test_a_folder_that_cannot_be_written_needs_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(file))
    with compiling_alone():
        pass
