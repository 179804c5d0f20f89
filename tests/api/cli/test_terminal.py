"""What people see where standard output is a terminal: words, and JSON only where they ask for it."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from api.store.database import Database
from tests.api.cli.test_cli import spec
from tests.support.cli.run import Answer, Run
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

Terminal = Callable[..., Answer]


@pytest.fixture
def terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Run a command as if somebody read its standard output; no line is wider than 80 columns."""

    def answer(*arguments: str | Path) -> Answer:
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout.isatty", lambda: True)
            reported = run(*arguments)
        assert [line for line in reported.err.splitlines() if len(line) > 80] == []
        return reported

    return answer


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a spec, a plan, a database and nothing else; the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARDPLAN_WEBHOOK_HOSTS", "hooks.test")
    (tmp_path / "spec.json").write_text(json.dumps(spec()))
    Database.of_file(tmp_path / "shardplan.sqlite").close()
    return tmp_path


@pytest.fixture
def plan(run: Run, folder: Path) -> str:
    assert run("plan", "spec.json", "-o", "plan.json").code == 0
    return "plan.json"


COMMANDS = [
    (["evaluate", "spec.json", "plan.json"], "the plan may be used"),
    (["explain", "spec.json", "plan.json"], "Why the plan of"),
    (["compare", "plan.json", "plan.json"], "The same plan"),
    (["validate", "spec.json"], "2 tables on 2 ranks"),
    (["doctor"], "this installation can do its work"),
    (["keys", "list", "--data-dir", "."], "no keys yet"),
    (["keys", "create", "--name", "n", "--scope", "read", "--data-dir", "."], "  key      shardplan_"),
    (["webhooks", "list", "--data-dir", "."], "no webhooks yet"),
    (["webhooks", "create", "https://hooks.test/x", "--name", "n", "--data-dir", "."], "  secret   whsec_"),
    (["prune", "--dry-run", "--data-dir", "."], "nothing is old enough"),
    (["backup", "b.zip", "--data-dir", "."], "b.zip: backup"),
]


@thorough
@pytest.mark.usefixtures("plan")
@pytest.mark.parametrize(("command", "reported"), COMMANDS, ids=[" ".join(command[:2]) for command, _ in COMMANDS])
def test_people_get_words_and_the_json_where_they_ask(terminal: Terminal, command: list[str], reported: str) -> None:
    answer = terminal(*command)
    assert (answer.code, answer.out) == (0, "")
    assert reported in answer.err
    Path("b.zip").unlink(missing_ok=True)
    assert isinstance(terminal(*command, "--json").document, dict)


@pytest.mark.usefixtures("plan")
def test_commands_with_a_file_say_how_to_keep_what_is_not_shown(terminal: Terminal) -> None:
    command = ["export", "plan.json", "--format", "json"]
    answer = terminal(*command)
    assert (answer.code, answer.out) == (0, "")
    assert "-o FILE writes it" in answer.err
    assert terminal(*command, "-o", "-").document["name"] == "two tables"


def test_a_plan_is_written_to_a_file_of_its_own_and_never_over_another(
    terminal: Terminal, run: Run, folder: Path
) -> None:
    answer = terminal("plan", "spec.json")
    assert (answer.code, answer.out) == (0, "")
    assert "the plan is in spec.plan.json" in answer.err
    assert terminal("plan", "spec.json").code == 0  # the same plan takes the same file
    first = (folder / "spec.plan.json").read_bytes()
    assert [path.name for path in folder.glob("*.plan.json")] == ["spec.plan.json"]
    other = terminal("plan", "spec.json", "--ranks-per-host", "1")
    assert "the plan is in spec-2.plan.json" in other.err
    assert (folder / "spec.plan.json").read_bytes() == first
    assert json.loads((folder / "spec-2.plan.json").read_bytes())["world_size"] == 1
    assert terminal("plan", "spec.json", "-o", "-").document["name"] == "two tables"
    run("import", "spec.json", "spec.plan.json", "-o", "imported.json")
    (folder / "spec.plan.json").unlink()
    assert "the plan is in spec.plan.json" in terminal("improve", "spec.json", "imported.json").err


def test_a_plan_named_like_a_path_stays_in_the_folder(
    terminal: Terminal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = json.dumps({**json.loads((folder / "spec.json").read_text()), "name": "_/../../ads / ranker"})
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(content.encode())))
    assert terminal("plan", "-").code == 0
    assert (folder / "_-..-..-ads-ranker.plan.json").exists()


def test_a_folder_that_takes_no_plan_is_refused_before_the_search(
    terminal: Terminal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    answer = terminal("plan", "spec.json")
    assert answer.code == 1
    assert "name one elsewhere with -o" in answer.err
    assert not list(folder.glob("*.plan.json"))


@pytest.mark.usefixtures("folder")
def test_an_infeasible_spec_is_reported_in_words(terminal: Terminal) -> None:
    rows = [f"model.tables.{name}.num_embeddings=10000000" for name in ("a", "b")]  # 2.56 GB each, on two ranks of 2 GB
    changes = ["hardware.overrides.hbm_bytes=2000000000", "hardware.overrides.ddr_bytes=0", *rows]
    command = ("plan", "spec.json", *(word for change in changes for word in ("--set", change)))
    answer = terminal(*command)
    assert (answer.code, answer.out) == (3, "")
    assert "-o FILE" not in answer.err  # a file gets no such answer
    assert terminal(*command, "-o", "-").document["termination"]["reason"] == "INFEASIBLE"


@thorough
@pytest.mark.usefixtures("folder")
def test_keys_and_webhooks_are_listed_and_ended_in_words(terminal: Terminal, run: Run) -> None:
    data = ("--data-dir", ".")
    key = run("keys", "create", "--name", "launchers", "--scope", "read,solve,promote,admin", *data).document
    hook = run("webhooks", "create", "https://hooks.test/x", "--name", "pager", *data)
    assert hook.document["secret"] not in hook.err  # a program has it from the document
    assert "the secret is told this once" in hook.err
    assert f"GET /v1/webhooks/{hook.document['id']}/deliveries" in hook.err
    listed = run("keys", "list", *data), run("webhooks", "list", *data)
    assert len(listed[0].document["keys"]) == len(listed[1].document["webhooks"]) == 1
    reported = terminal("webhooks", "list", *data).err
    assert f"{hook.document['id']}  active  pager" in reported
    assert "solve.succeeded, solve.failed" in reported
    assert f"{key['id']}  launchers" in terminal("keys", "list", *data).err
    assert "is revoked for good" in terminal("keys", "revoke", key["id"], *data).err
    assert "revoked 20" in terminal("keys", "list", *data).err
    assert "is told again" in terminal("webhooks", "enable", hook.document["id"], *data).err
    assert "is deleted" in terminal("webhooks", "delete", hook.document["id"], *data).err


@thorough
def test_a_real_terminal_and_a_real_pipe(folder: Path) -> None:
    command = [sys.executable, "-c", "from api.cli import main; main()", "keys", "list", "--data-dir", "."]
    piped = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    assert json.loads(piped.stdout) == {"keys": []}
    assert piped.stderr == ""
    ours, theirs = pty.openpty()
    shown = subprocess.run(
        command, stdout=theirs, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        assert os.read(ours, 100) == b""
    except OSError:
        pass  # nothing was written before the other end was closed
    finally:
        os.close(ours)
    assert "no keys yet" in shown.stderr
