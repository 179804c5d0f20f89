"""What is declared is used, what is used is declared, and all of it is pinned."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.sources import files_of, nodes_of

OURS = {"api", "planner", "cost_models"}
#: Import names that differ from the distribution's.
DISTRIBUTION_OF = {
    "pydantic_core": "pydantic",
    "starlette": "fastapi",
    "jwt": "pyjwt",
    "opentelemetry": "opentelemetry-api",
}
#: Packages of files that are served, not of code that is imported.
ASSETS = {"fastapi-offline"}
#: Drivers that SQLAlchemy imports by the address of a database.
DRIVERS = {"psycopg"}
#: Imported lazily by the launcher's adapter and by what measures a machine, in environments that have them.
OF_THE_TRAINING_ENVIRONMENT = {"torch", "torchrec", "fbgemm-gpu"}
#: Imported where they are needed, and extras of ours: traces and measured rows in Parquet, solves on a Ray cluster.
OF_AN_EXTRA = {"pyarrow", "ray"}
#: Modules of type checkers, which nothing imports when it runs.
OF_TYPE_CHECKERS = {"_typeshed"}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=! ;]", name, maxsplit=1)[0]).lower()


@pytest.fixture(scope="module")
def declared(root: Path) -> set[str]:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    return {canonical(line) for line in project["dependencies"]}


@pytest.fixture(scope="module")
def imported() -> set[str]:
    names = set()
    for source in files_of(OURS):
        for node in nodes_of(source):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    outside = names - OURS - OF_TYPE_CHECKERS - set(sys.stdlib_module_names)
    return {canonical(DISTRIBUTION_OF.get(name, name)) for name in outside}


def test_what_is_imported_is_declared(imported: set[str], declared: set[str]) -> None:
    assert imported - declared - OF_THE_TRAINING_ENVIRONMENT == OF_AN_EXTRA


def test_what_is_declared_is_imported(root: Path, imported: set[str], declared: set[str]) -> None:
    assert declared - imported == ASSETS | DRIVERS
    assert 'files("fastapi_offline")' in (root / "api" / "http" / "openapi" / "console.py").read_text()


def pins(path: Path) -> set[str]:
    lines = [line for line in path.read_text().splitlines() if line and not line.startswith(("#", "-c"))]
    for line in lines:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9A-Za-z.]+", line), line
    return {canonical(line) for line in lines}


def test_everything_declared_is_pinned(root: Path, declared: set[str]) -> None:
    base = pins(root / "constraints.txt")
    assert declared <= base
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    pinned = base | pins(root / "constraints-dev.txt") | pins(root / "constraints-torchrec.txt")
    assert {canonical(line) for lines in extras.values() for line in lines} <= pinned
    assert {canonical(line) for name in ("traces", "ray") for line in extras[name]} == OF_AN_EXTRA
    # The image can be built with it.
    assert {canonical(line) for line in extras["otel"]} <= base
    assert "EXTRAS=otel" in (root / "Dockerfile").read_text()


def test_no_pin_is_given_twice(root: Path) -> None:
    found = [pins(root / f"constraints{name}.txt") for name in ("", "-dev", "-torchrec")]
    assert len(set.union(*found)) == sum(map(len, found))
    assert pins(root / "constraints-torchrec-newest.txt") == found[-1]


def test_the_decision_argues_for_every_dependency(root: Path, declared: set[str]) -> None:
    text = (root / "docs" / "decisions" / "0006-dependencies.md").read_text()
    for name in declared:
        assert name in text, name
