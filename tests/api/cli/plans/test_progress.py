"""The line of progress: on a terminal alone, in one line, gone when the search ends."""

import io
import sys

import pytest
from rich.console import Console, Group

from api.cli.plans.progress import SearchProgress, search_progress


def line(progress: SearchProgress, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(Group(progress))
    return captured.get()


def test_it_shows_plan_bound_gap_and_time() -> None:
    now = [0.0]
    progress = SearchProgress(lambda: now[0])
    progress.set_state("queued")
    now[0] = 2.5
    assert line(progress).split() == ["queued", "2.5", "s", "no", "plan", "yet"]
    progress.set_state("searching")
    progress.update(896e-6, 820e-6, 0.0927, found_by="cp_sat")
    assert " ".join(line(progress).split()) == "searching 2.5 s best 896 us bound 820 us gap 9.27% cp_sat"
    progress.update(896e-6, 0.0, None)
    assert "no bound yet" in line(progress)
    assert len(line(progress, width=30).rstrip("\n").splitlines()) == 1


def test_a_terminal_gets_the_line_and_nothing_else_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for is_terminal, is_quiet, is_shown in ((True, False, True), (True, True, False), (False, False, False)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_terminal=is_terminal: is_terminal)
        with search_progress(is_quiet=is_quiet) as progress:
            progress.update(1e-3, 1e-3, 0.0)
        captured = capsys.readouterr()
        assert ("best 1 ms" in captured.err) == is_shown
        assert captured.out == ""
