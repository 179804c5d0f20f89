"""The files of tests that start first are there, and do start first."""

from types import SimpleNamespace
from typing import Any

from tests.support.longest import LONGEST, longest_first
from tests.support.paths import ROOT


def test_the_longest_files_are_there() -> None:
    assert [name for name in LONGEST if not (ROOT / "tests" / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)


def test_they_start_first_and_others_keep_their_order() -> None:
    names = ["tests/b.py::one", f"tests/{LONGEST[1]}::x", "tests/a.py::two", f"tests/{LONGEST[0]}::y"]
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in names]
    assert [item.nodeid for item in longest_first(items)] == [names[3], names[1], names[0], names[2]]


def test_processes_take_files_in_that_order() -> None:
    """The default of the plugin is by the number of tests, and a file of one long test would be the last one."""
    assert "--dist loadfile --no-loadscope-reorder" in (ROOT / "Makefile").read_text()
