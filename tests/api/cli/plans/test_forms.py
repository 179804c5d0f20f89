"""``--form``: what is written, and that every command takes either form."""

import json
from pathlib import Path

import pytest

from planner.domain.formats.compact_form import long_document
from tests.api.cli.test_cli import spec
from tests.support.cli.run import Run


@pytest.fixture
def files(run: Run, tmp_path: Path) -> dict[str, Path]:
    """A spec, and its plan in both forms."""
    found = {name: tmp_path / f"{name}.json" for name in ("spec", "long", "compact")}
    found["spec"].write_text(json.dumps(spec()))
    assert run("plan", found["spec"], "-o", found["compact"], "--form", "compact", "--quiet").code == 0
    assert run("export", found["compact"], "--format", "json", "-o", found["long"]).code == 0
    return found


def test_a_plan_is_long_unless_it_is_asked_for_in_compact_form(run: Run, files: dict[str, Path]) -> None:
    compact, long = (json.loads(files[form].read_bytes()) for form in ("compact", "long"))
    assert compact["form"] == "compact"
    assert long == long_document(compact)
    given = run("plan", files["spec"], "-o", files["long"], "--quiet")
    assert given.code == 0
    assert json.loads(files["long"].read_bytes())["plan_digest"] == compact["plan_digest"]
    assert "form" not in json.loads(files["long"].read_bytes())


def test_export_gives_either_form_of_either(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    for form in ("long", "compact"):
        for given in ("long", "compact"):
            output = tmp_path / "output.json"
            assert run("export", files[given], "--format", "json", "--form", form, "-o", output).code == 0
            assert output.read_bytes() == files[form].read_bytes()
    refused = run("export", files["long"], "--format", "torchrec", "--form", "compact")
    assert refused.code == 1
    assert "--form says nothing to the format torchrec" in refused.err


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "{spec}", "{plan}", "--json"),
        ("explain", "{spec}", "{plan}", "--json"),
        ("certify", "{spec}", "{plan}"),
        ("export", "{plan}", "--format", "torchrec", "--module-path", "sparse"),
        ("compare", "{plan}", "{plan}", "--json"),
        ("import", "{spec}", "{plan}"),
    ],
    ids=lambda command: command[0],
)
def test_commands_say_the_same_of_both_forms(run: Run, files: dict[str, Path], command: tuple[str, ...]) -> None:
    answers = []
    for form in ("long", "compact"):
        paths = {"spec": files["spec"], "plan": files[form]}
        answers.append(run(*(argument.format(**paths) for argument in command)))
    long, compact = answers
    assert long.code == compact.code == 0, compact.err
    assert (compact.out, compact.err) == (long.out, long.err)


def test_commands_that_write_a_plan_take_a_form(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    for command in ("import", "improve"):
        output = tmp_path / "output.json"
        options = ["--time-limit", "1"] if command == "improve" else []
        answer = run(command, files["spec"], files["long"], "-o", output, "--form", "compact", *options)
        assert answer.code == 0, answer.err
        assert json.loads(output.read_bytes())["form"] == "compact"
    folder = tmp_path / "batch"
    assert run("batch", files["spec"], "-o", folder, "--form", "compact", "--quiet").code == 0
    (written,) = folder.glob("*.plan.json")
    assert json.loads(written.read_bytes())["form"] == "compact"


def test_a_plan_to_move_away_from_has_either_form(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    moved = []
    for form in ("long", "compact"):
        output = tmp_path / f"after-{form}.json"
        assert run("plan", files["spec"], "--previous", files[form], "-o", output, "--quiet").code == 0
        moved.append(json.loads(output.read_bytes())["movement"]["previous_plan_digest"])
    assert moved == [json.loads(files["long"].read_bytes())["plan_digest"]] * 2


def test_check_takes_the_plan_in_either_form(run: Run, files: dict[str, Path], tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    assert run("certify", files["spec"], files["compact"], "-o", certificate).code == 0
    for form in ("long", "compact"):
        answer = run("check", certificate, files[form])
        assert answer.code == 0, answer.err
    changed = json.loads(files["compact"].read_bytes())
    changed["tables"][0]["shards"][0]["row_offset"] += 1
    files["compact"].write_text(json.dumps(changed))
    assert run("check", certificate, files["compact"]).code == 1
