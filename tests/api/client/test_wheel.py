"""The client as the wheel that training environments install."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

pytest.importorskip("hatchling", reason="hatchling is not installed: pip install 'shardplan[dev]'")

CLIENT = ROOT / "api" / "client"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(CLIENT)], check=True, timeout=PATIENCE_SECONDS)
    (found,) = folder.glob("shardplan_client-*.whl")
    return found


@thorough
def test_the_wheel_holds_the_client_and_nothing_else(wheel: Path) -> None:
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    sources = [p.relative_to(CLIENT) for p in CLIENT.rglob("*") if p.suffix == ".py" or p.name == "py.typed"]
    assert names == {f"shardplan_client/{source.as_posix()}" for source in sources}


def test_it_imports_without_the_service_and_without_torch(wheel: Path) -> None:
    program = (
        "import sys, shardplan_client as c; print(c.__file__);"
        "print([m for m in ('torch', 'api', 'planner', 'cost_models', 'numpy', 'pydantic') if m in sys.modules]);"
        "print(all(hasattr(c, name) for name in c.__all__))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env=os.environ | {"PYTHONPATH": str(wheel)},
        cwd=wheel.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    path, loaded, exported = done.stdout.splitlines()
    assert path == str(wheel / "shardplan_client" / "__init__.py")
    assert loaded == "[]"
    assert exported == "True"
