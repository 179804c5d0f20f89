"""The documentation says what the code does: its commands run, and nothing public is left out."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli import app as command_line
from api.http.app import create_app
from api.schemas.error_kinds import ERROR_KINDS
from api.settings import Settings
from cost_models.vocabulary import Phase, Scheme, Tier
from planner.solver.partitioners.kernels.moves.move_table import MOVES
from tests.support.paths import ROOT
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]


#: Documents whose commands ``make test`` runs; ``make thorough`` runs those of all documents.
FIRST_READ = {"README.md", "docs/quickstart.md"}


def with_commands() -> list[Path]:
    return [path for path in documents() if CONSOLE.search(path.read_text())]


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands(path: Path) -> Iterator[str]:
    """Every ``$`` command of the console blocks, continued by lines that start with ``>``."""
    for block in CONSOLE.findall(path.read_text()):
        lines: list[str] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                lines.append(line.removeprefix("$ "))
            elif line.startswith(">"):
                lines.append(line.removeprefix(">").removeprefix(" "))
        yield "\n".join(lines)


@pytest.mark.parametrize(
    "path",
    [path if named(path) in FIRST_READ else pytest.param(path, marks=thorough) for path in with_commands()],
    ids=named,
)
def test_commands_run(path: Path, tmp_path: Path) -> None:
    """All console blocks of a document run in one shell, in a folder that has the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    folder = tmp_path / "examples" if path.parent.name == "examples" else tmp_path
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    script = "set -e -o pipefail\n" + "\n".join(commands(path))
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr


def test_there_are_commands_to_run() -> None:
    assert {named(path) for path in with_commands()} >= {"README.md", "docs/quickstart.md", "docs/cli.md"}


@pytest.mark.parametrize("path", documents(), ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text()):
        assert (path.parent / target).exists(), target


def test_every_setting_is_documented() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    for name in Settings.model_fields:
        assert f"`SHARDPLAN_{name.upper()}`" in text, name


def test_documented_defaults_are_the_defaults() -> None:
    text = (ROOT / "docs" / "operations.md").read_text()
    for name, field in Settings.model_fields.items():
        (reported,) = re.findall(rf"^\| `SHARDPLAN_{name.upper()}` \| `?([^|`]*?)`? \|", text, re.MULTILINE)
        if field.default is None:
            assert reported == "none", name
        elif isinstance(field.default, bool):
            assert reported == str(field.default).lower(), name
        elif isinstance(field.default, int | float):
            assert float(reported) == float(field.default), name
        else:
            assert reported == str(field.default), name


def test_every_route_is_documented(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "http-api.md").read_text()
    app = create_app(Settings(data_dir=tmp_path))
    paths = app.openapi()["paths"]
    assert paths
    for path, operations in paths.items():
        for method in operations:
            assert f"`{method.upper()} {path}`" in text, f"{method.upper()} {path}"


def test_every_problem_is_documented_with_its_status() -> None:
    text = (ROOT / "docs" / "http-api.md").read_text()
    for kind in ERROR_KINDS.values():
        assert f"| `{kind.code}` | {kind.status} |" in text, kind.code


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "cli.md").read_text()
    for command in command_line.registered_commands:
        assert f"`shardplan {command.name}" in text, command.name
    for group in command_line.registered_groups:
        for command in group.typer_instance.registered_commands:
            assert f"`shardplan {group.name} {command.name}" in text, f"{group.name} {command.name}"


def test_the_glossary_has_the_vocabulary() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    for label in (*Phase.labels(), *Tier.labels()):
        assert f"`{label}`" in text, label


def test_concepts_have_a_row_for_each_scheme() -> None:
    text = (ROOT / "docs" / "concepts.md").read_text()
    for label in Scheme.labels():
        assert f"\n| `{label}` |" in text, label


def test_the_page_of_local_search_has_the_table_of_moves() -> None:
    text = (ROOT / "docs" / "local-search.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (\d*) \| (\d*) \| ([\d.]*)%? *\|$", text, re.MULTILINE)
    assert [name for name, *_ in rows] == [move.name.lower() for move in MOVES]
    for (_, *words, without_cuts, with_cuts, percent), facts in zip(rows, MOVES.values(), strict=True):
        assert words == [facts.does, facts.when]
        weights = [float(weight or 0) for weight in (without_cuts, with_cuts)]
        assert weights == [facts.weight_without_cuts, facts.weight_with_cuts]
        assert float(percent or 0) == pytest.approx(100 * facts.most_rate)


def test_the_changelog_says_each_thing_once() -> None:
    for release in (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1:]:
        lines = [line for line in release.splitlines() if line.startswith(("### ", "- "))]
        assert [line for line, count in Counter(lines).items() if count > 1] == []
