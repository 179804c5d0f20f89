"""Lines for people at a terminal of 80 columns, whichever command writes them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from api.cli.errors import MAX_COLUMNS, echo
from tests.support.cli.run import Run
from tests.support.service.specs import tiny

Echoed = Callable[..., list[str]]


@pytest.fixture
def echoed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Echoed:
    """Return the lines that stderr gets of a text, if it is a terminal or a file."""

    def lines(text: str, *, is_terminal: bool = True) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stderr.isatty", lambda: is_terminal)
            echo(text)
        return capsys.readouterr().err.splitlines()

    return lines


def test_a_long_line_hangs_deeper_than_it_begins(echoed: Echoed) -> None:
    lines = echoed("  " + "word " * 30 + "\nshort  and   aligned")
    assert lines == ["  " + "word " * 14 + "word", "    " + "word " * 14 + "word", "short  and   aligned"]


def test_a_word_that_fits_no_line_is_not_broken(echoed: Echoed) -> None:
    digest = "sha256:" + "0" * 100
    assert echoed(f"the plan is {digest} and no other") == ["the plan is", f"  {digest}", "  and no other"]


def test_a_file_gets_every_message_in_one_line(echoed: Echoed) -> None:
    assert echoed("word " * 40, is_terminal=False) == ["word " * 40]


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "missing" * 30 + ".json"),
        ("plan", "SPEC", "--set", "model.tables.no_such_table_of_this_name.embedding_dim=3"),
        ("plan", "SPEC", "-o", "no/such/folder/of/plans/plan.json"),
        ("export", "PLAN", "--format", "torchrec"),
        ("export", "PLAN", "--format", "a_format_that_nobody_has_heard_of"),
        ("evaluate", "SPEC", "OTHER"),
        ("evaluate", "PLAN", "SPEC"),
        ("plan", "SPEC", *("another.json" for _ in range(12))),
        ("plan", "SPEC", "--form", "a_form_that_nobody_has_heard_of_and_that_no_plan_was_ever_written_in"),
        ("a_command_that_nobody_has_heard_of", *("argument" for _ in range(3))),
        ("fetch", "a/channel", "-o", "fetched.json", "--server", "http://127.0.0.1:1", "--attempts", "1"),
    ],
)
def test_commands(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("SPEC").write_text(json.dumps(tiny()))
    assert run("plan", "SPEC", "-o", "PLAN").code == 0
    plan = json.loads(Path("PLAN").read_text())
    table = {**plan["tables"][0], "name": "a_table_with_a_rather_long_name_that_is_not_in_the_spec"}
    Path("OTHER").write_text(json.dumps({**plan, "tables": [*plan["tables"], table], "plan_digest": None}))
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr.isatty", lambda: True)
        answer = run(*arguments)
    assert answer.code
    assert len(answer.err) > MAX_COLUMNS
    assert [line for line in answer.err.splitlines() if len(line) > MAX_COLUMNS and " " in line.strip()] == []
