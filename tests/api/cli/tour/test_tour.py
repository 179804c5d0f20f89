"""The tour: its commands are those of the command line, and it can be left and resumed at any step."""

import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from api.cli import app
from api.cli.tour import command
from api.cli.tour.steps import SERVER, STEPS
from tests.support.cli.run import Answer, Run
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

Process = subprocess.CompletedProcess[bytes]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, str]]]:
    """Record the commands of steps and their environments, in place of running them."""
    found: list[tuple[list[str], dict[str, str]]] = []

    def record(words: list[str], *, cwd: Path, env: dict[str, str], **_: object) -> Process:
        assert (cwd / "tables.csv").exists()
        found.append((words[3:], env))
        return Process(words, 7 if words[3] == "compare" and "FAIL" in os.environ else 0)

    monkeypatch.setattr("api.cli.tour.command.subprocess.run", record)
    monkeypatch.setattr("api.cli.tour.service.TourService.url", lambda self: "http://127.0.0.1:1")
    return found


def typed(run: Run, monkeypatch: pytest.MonkeyPatch, lines: str, *arguments: str) -> Answer:
    person = StringIO(lines)
    with monkeypatch.context() as patch:
        patch.setattr(person, "isatty", lambda: True)
        patch.setattr("sys.stdin", person)
        patch.setattr("sys.stderr.isatty", lambda: True)
        return run("tour", *arguments)


def test_every_step_is_run_with_two_lines_of_words(run: Run, ran: list[tuple[list[str], dict[str, str]]]) -> None:
    answer = run("tour", "--yes")
    assert answer.code == 0
    assert answer.out == ""
    expected = [[word.replace(SERVER, "http://127.0.0.1:1") for word in step.command] for step in STEPS]
    assert [words for words, _ in ran] == expected
    (folder,) = [line.rpartition(" in ")[2] for line in answer.err.splitlines() if line.startswith("A tour of")]
    assert not Path(folder).exists()
    assert "its folder is removed" in answer.err
    for step in STEPS:
        lines = answer.err.partition(step.title)[2].partition("  $")[0].split("\n")
        assert 1 <= len([line for line in lines if line.strip()]) <= 2, step.title


def test_steps_name_commands_that_there_are() -> None:
    assert {step.command[0] for step in STEPS} <= {one.name for one in app.registered_commands}


def test_no_setting_of_this_machine_reaches_the_tour(
    run: Run, ran: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDPLAN_DATABASE_URL", "postgresql://production")
    monkeypatch.setenv("SHARDPLAN_SERVER", "http://production")
    assert run("tour", "--yes", "--from", str(len(STEPS))).code == 0
    ((_, environment),) = ran
    assert environment["PATH"]
    assert not [name for name in environment if name.startswith("SHARDPLAN_")]


def test_a_tour_that_is_left_goes_on_at_the_same_step(
    run: Run, ran: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = typed(run, monkeypatch, "\nwhat?\ns\nq\n")
    assert answer.code == 0
    assert [words[0] for words, _ in ran] == ["init"]  # the second step was skipped
    (line,) = [line for line in answer.err.splitlines() if line.startswith("  shardplan tour")]
    words = shlex.split(line)[2:]
    assert words[-2:] == ["--from", "3"]
    again = run("tour", "--yes", *words)
    assert again.code == 0
    assert len(ran) == 1 + len(STEPS) - 2
    assert "Its files are in" in again.err
    assert Path(words[1]).is_dir()


def test_the_end_of_the_input_is_no_step(
    run: Run, ran: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert typed(run, monkeypatch, "").code == 0
    assert ran == []


def test_a_step_that_fails_ends_the_tour(
    run: Run, ran: list[tuple[list[str], dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "1")
    answer = run("tour", "--yes")
    assert answer.code == 4
    assert "exit code 7" in answer.err
    assert ran[-1][0][0] == "compare"
    assert f"--from {1 + [step.command[0] for step in STEPS].index('compare')}" in answer.err


def test_ctrl_c_ends_the_tour_and_says_how_to_go_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_choice", interrupted)
    answer = typed(run, monkeypatch, "", "--from", "2")
    assert answer.code == 130
    assert "--from 2" in answer.err


@pytest.mark.parametrize("arguments", [["--from", "99"], ["--from", "0"], ["--folder", "nowhere"]])
def test_bad_options_are_refused(run: Run, arguments: list[str]) -> None:
    assert run("tour", "--yes", *arguments).code == 1


@thorough
def test_the_whole_tour_runs_where_no_terminal_is(tmp_path: Path) -> None:
    words = [sys.executable, "-c", "from api.cli import main; main()", "tour", "--yes", "--folder", str(tmp_path)]
    answer = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == ""
    assert "warning" not in answer.stderr
    assert (tmp_path / "launcher.plan.json").read_bytes() == (tmp_path / "served.plan.json").read_bytes()
