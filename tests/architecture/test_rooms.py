"""The rooms of the house: a file lies in a folder whose name says what belongs there."""

from pathlib import Path

import pytest

#: Modules at the root of a package; everything else lies in a folder.
LOOSE = {
    "api": {"__init__", "release", "settings"},
    "planner": {"__init__", "errors", "pipeline"},
    "cost_models": {"__init__", "arrays", "errors", "protocol", "registry", "vocabulary"},
}
MAX_FOLDERS = 9


def folders(package: Path) -> list[Path]:
    return sorted(path for path in package.iterdir() if path.is_dir() and path.name != "__pycache__")


@pytest.mark.parametrize("package", LOOSE)
def test_no_module_is_loose(root: Path, package: str) -> None:
    assert {path.stem for path in (root / package).glob("*.py")} == LOOSE[package]


@pytest.mark.parametrize("package", ["api", "planner"])
def test_rooms_are_few_and_say_what_they_are(root: Path, package: str) -> None:
    rooms = folders(root / package)
    assert len(rooms) <= MAX_FOLDERS
    for room in rooms:
        assert (room / "__init__.py").read_text().startswith('"""'), f"{room.name}/__init__.py has no docstring"
