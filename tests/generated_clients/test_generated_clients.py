"""Clients that public generators make of the OpenAPI document: typed, and good for the whole loop."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.service.server import Server
from tests.support.thorough import thorough

HERE = Path(__file__).parent
DOCUMENT = ROOT / "docs" / "openapi.json"
#: What every client comes to, whatever its language.
LOOP = {
    "num_tables": 2,
    "tables": ["user", "item"],
    "published": 201,
    "promoted": True,
    "late": "channel-changed",
    "world_size": 4,
    "stored": 304,
    "back": True,
    "problem": [422, "invalid-problem", ["/model/tables/1/num_embeddings"]],
    "missing": "not-found",
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = Server(ROOT, tmp_path_factory.mktemp("data")).wait_until_ready()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Run a program to its end, and return what it printed."""
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@thorough
def test_python(url: str, tmp_path: Path) -> None:
    """openapi-python-client: generated without a warning, strict for mypy, and run."""
    programs = ROOT / ".venv-generators" / "bin"
    if not (programs / "openapi-python-client").exists():
        pytest.skip("no generator of Python clients: run make generators")
    package, loop = tmp_path / "shardplan_api", HERE / "python" / "loop.py"
    run(
        *(programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--output-path", package),
        *("--meta", "none", "--fail-on-warning"),
        folder=tmp_path,
        PATH=f"{programs}:{os.environ['PATH']}",  # of its formatter
    )
    run(
        *(
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            HERE / "python" / "mypy.ini",
            "--cache-dir",
            tmp_path / "mypy",
        ),
        *("shardplan_api", loop),
        folder=tmp_path,
        MYPYPATH=str(tmp_path),
    )
    found = json.loads(run(sys.executable, loop, url, folder=tmp_path, PYTHONPATH=str(tmp_path)))
    assert found == {**LOOP, "compact_form": "compact", "slice_rank": 1, "again": [304, None]}


@thorough
def test_typescript(url: str, tmp_path: Path) -> None:
    """openapi-typescript and openapi-fetch: strict for tsc, and run."""
    node, programs = shutil.which("node"), HERE / "typescript" / "node_modules" / ".bin"
    if node is None or not (programs / "tsc").exists():
        pytest.skip("no Node.js, or no generator of types: run make generators")
    for name in ("loop.ts", "tsconfig.json", "package.json"):
        shutil.copy(HERE / "typescript" / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(HERE / "typescript" / "node_modules")
    types = tmp_path / "shardplan.d.ts"
    # Fields with a default may be left out of what is sent.
    run(programs / "openapi-typescript", DOCUMENT, "-o", types, "--default-non-nullable=false", folder=tmp_path)
    run(programs / "tsc", "--project", tmp_path, folder=tmp_path)
    found = json.loads(run(node, tmp_path / "build" / "loop.js", url, folder=tmp_path))
    assert found == {**LOOP, "again": 304}
