"""The import contracts of pyproject.toml are the architecture: they hold, and they can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

RUN = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, "--config", str(folder / "pyproject.toml"), "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_contracts_are_preserved(root: Path) -> None:
    result = lint(root)
    assert result.returncode == 0, result.stdout + result.stderr


@thorough
@pytest.mark.parametrize(
    ("module", "wrong"),
    [
        ("cost_models/errors.py", "import planner.domain.formats.units"),  # an arrow that points up
        ("planner/solver/problem.py", "import planner.domain.problem.table"),  # solvers see arrays only
        ("planner/domain/formats/units.py", "import pydantic"),  # the core does no input and output
        ("api/services/solves/service.py", "import api.http.app"),  # a service that knows its composition root
        (
            "planner/output/certificate/check.py",
            "import planner.domain.formats.units",
        ),  # whoever checks believes nobody
        ("planner/output/certificate/check.py", "import cost_models.protocol"),
        ("api/client/errors.py", "import numpy"),  # the launcher client stands alone
    ],
)
def test_a_wrong_import_is_caught(root: Path, tmp_path: Path, module: str, wrong: str) -> None:
    for package in ("api", "planner", "cost_models"):
        for source in (root / package).rglob("*.py"):
            copy = tmp_path / source.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((root / "pyproject.toml").read_bytes())
    target = tmp_path / module
    target.write_text(f"{target.read_text()}\n{wrong}\n")

    result = lint(tmp_path)

    assert result.returncode == 1, result.stdout
    assert "BROKEN" in result.stdout


#: What takes long to load, and commands of which each needs a part of it at most.
_HEAVY = ("numpy", "numba", "scipy", "ortools", "fastapi", "sqlalchemy", "pydantic", "httpx", "rich")
_SEARCHES = ("numba", "scipy", "fastapi", "ortools.sat")


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--help"], _HEAVY),
        (["--version"], _HEAVY),
        (["validate", "--help"], _SEARCHES),
        (["check", "--help"], _SEARCHES),
        (["export", "--help"], _SEARCHES),
        (["fetch", "--help"], (*_SEARCHES, "ortools", "sqlalchemy")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_loads_no_library_that_it_does_not_need(arguments: list[str], unneeded: tuple[str, ...]) -> None:
    ask = (
        "import sys; from api.cli import app; app(sys.argv[1:], standalone_mode=False);"
        f"print([name for name in {unneeded} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS
    )
    assert done.stdout.splitlines()[-1] == "[]"
