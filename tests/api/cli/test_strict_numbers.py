"""Numbers of a command line: every option of every command refuses what only Python reads as a number."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import typer

from api.cli import _COMMANDS
from api.cli.strict_numbers import with_strict_numbers
from tests.support.cli.run import Run


def commands() -> Iterator[Any]:
    for name, (module, _) in _COMMANDS.items():
        found = import_module(f"api.cli.{module}")
        group = getattr(found, "app", None)
        if group is None:
            group = typer.Typer()
            group.command()(getattr(found, f"{name}_command"))
        command = with_strict_numbers(typer.main.get_command(group))
        yield from getattr(command, "commands", {"": command}).values()


def test_every_number_of_every_command_is_read_strictly() -> None:
    numeric = [
        (command, parameter)
        for command in commands()
        for parameter in command.params
        if getattr(parameter.type_descriptor, "annotation", None) in (int, float)
    ]
    assert len(numeric) > 10
    for command, parameter in numeric:
        context = typer.Context(command)
        for text in ("1_0", "\uff11", " 1", "nan", "inf", "1e400"):
            with pytest.raises(typer.BadParameter, match="is not a"):
                parameter.process_value(context, text)
        assert parameter.process_value(context, "2") == 2


@pytest.mark.parametrize("seed", ["1_0", "\uff11", "nan"])
def test_a_command_says_which_option_is_no_number(run: Run, seed: str) -> None:
    answer = run("plan", "spec.json", "--seed", seed)
    assert answer.code == 1
    assert "--seed" in answer.err
    assert "is not a whole number" in answer.err


def test_a_number_beyond_the_limits_of_an_option_is_repeated(run: Run) -> None:
    answer = run("explain", "spec.json", "plan.json", "--tables", "-17")
    assert answer.code == 1
    assert "greater than or equal to 0, not -17" in answer.err


def test_a_number_beyond_the_limits_of_a_setting_is_repeated_and_no_text(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDPLAN_PORT", "99999")
    assert "setting port: Input should be less than or equal to 65535, not 99999" in run("serve").err
    monkeypatch.setenv("SHARDPLAN_PORT", "s3cr3t")
    answer = run("serve")
    assert "setting port" in answer.err
    assert "s3cr3t" not in answer.err
