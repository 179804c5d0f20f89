"""Completion by shells: the protocol of each shell, names that the package knows, and channels of a service."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cost_models.hardware.profiles_loader import profile_ids
from planner.options.runtimes.registry import RUNTIMES
from planner.output.exporters.registry import FORMATS
from planner.solver.partitioners.registry import partitioner_names
from tests.support.cli.run import Run
from tests.support.service.live import Live
from tests.support.service.specs import tiny
from tests.support.waiting import PATIENCE_SECONDS

#: What each shell's script has, and no other's.
SHELLS = {"bash": "complete -o", "zsh": "#compdef", "fish": "complete --command"}
TINY_SERVER = "http://planner"

Completed = Callable[..., str]


@pytest.fixture
def completed(run: Run, monkeypatch: pytest.MonkeyPatch) -> Completed:
    """What a shell gets for a line of which the last word is not finished."""

    def answer(line: str, shell: str = "bash") -> str:
        with monkeypatch.context() as patch:
            patch.setenv("_SHARDPLAN_COMPLETE", f"complete_{shell}")
            patch.setenv("COMP_WORDS", line)
            patch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            patch.setenv("_TYPER_COMPLETE_ARGS", line)
            patch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
            found = run()
        assert found.err == ""
        return found.out

    return answer


def values(text: str) -> set[str]:
    return set(text.split())


@pytest.mark.parametrize("shell", SHELLS)
def test_every_shell_gets_commands_options_and_values(completed: Completed, shell: str) -> None:
    assert "validate" in completed("shardplan val", shell)
    assert "--warm-start" in completed("shardplan plan spec.json --warm", shell)
    assert "dgx-h100-80g" in completed("shardplan init --profile dgx-h1", shell)
    assert "revoke" in completed("shardplan keys ", shell)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("plan s.json --profile ", {*profile_ids()}),
        ("plan s.json --profile dgx-h", {name for name in profile_ids() if name.startswith("dgx-h")}),
        ("plan s.json --partitioner ", {*partitioner_names()}),
        ("plan s.json --objective ", {"step_time", "max_rank_time", "request_latency"}),
        ("evaluate s.json p.json --cost-model ro", {"roofline"}),
        ("export p.json --format ", {*FORMATS}),
        ("init --optimizer adam", {"adam"}),
        ("no-such-command x", set()),
        ("plan s.json --profile none", set()),
    ],
)
def test_values_are_those_that_the_package_knows(completed: Completed, line: str, expected: set[str]) -> None:
    assert values(completed(f"shardplan {line}")) == expected


def test_formats_have_the_runtimes() -> None:
    assert set(FORMATS) >= {*RUNTIMES} - {"generic"}


def test_channels_are_those_of_the_service(completed: Completed, run: Run, service: Live, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(tiny()))
    plan = run("plan", tmp_path / "spec.json", "--server", TINY_SERVER, "-q").document
    for channel in ("ads/ranker/prod", "feed/prod"):
        assert run("promote", channel, plan["plan_digest"], "--server", TINY_SERVER).code == 0
    assert values(completed(f"shardplan rollback --server {TINY_SERVER} ")) == {"ads/ranker/prod", "feed/prod"}
    assert values(completed("shardplan channels show ads")) == {"ads/ranker/prod"}
    assert values(completed("shardplan fetch feed")) == {"feed/prod"}


def test_a_service_that_is_not_there_completes_nothing(completed: Completed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_SERVER", "http://127.0.0.1:9")
    assert completed("shardplan promote ads").strip() == ""


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_a_shell_is_shown(run: Run, shell: str) -> None:
    answer = run("--show-completion", shell)
    assert answer.code == 0
    assert "shardplan" in answer.out
    assert [name for name, words in SHELLS.items() if words in answer.out] == [shell]


def test_a_shell_must_be_named(run: Run) -> None:
    assert run("--show-completion").code == run("--install-completion", "tcsh").code == 1


def test_bash_completes_after_it_is_installed(tmp_path: Path) -> None:
    command = tmp_path / "shardplan"
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from api.cli import main; main()' \"$@\"\n")
    command.chmod(0o755)
    script = (
        'PATH="$PWD:$PATH"\nshardplan --install-completion bash >/dev/null\n. "$HOME/.bashrc"\n'
        'COMP_WORDS=(shardplan mode)\nCOMP_CWORD=1\n_shardplan_completion shardplan\necho "${COMPREPLY[*]}"\n'
    )
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[3])}
    answer = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert answer.stdout.split() == ["model"], answer.stderr
