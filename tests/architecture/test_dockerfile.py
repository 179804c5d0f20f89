"""The Dockerfile cannot be built where the tests run, so everything that it names is checked instead."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from api.cli import app as command_line
from api.http.app import create_app
from api.settings import Settings

Instruction = tuple[str, str]


@pytest.fixture(scope="module")
def instructions(root: Path) -> list[Instruction]:
    text = (root / "Dockerfile").read_text()
    joined = re.sub(r"\\\n\s*", " ", text)
    lines = [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def arguments(instructions: list[Instruction], name: str) -> list[str]:
    return [argument for instruction, argument in instructions if instruction == name]


def copied(instructions: list[Instruction]) -> list[str]:
    """Sources of every COPY out of the build context."""
    return [
        source
        for argument in arguments(instructions, "COPY")
        if not argument.startswith("--from=")
        for source in argument.split()[:-1]
    ]


def test_every_copied_path_exists(root: Path, instructions: list[Instruction]) -> None:
    sources = copied(instructions)
    assert sources
    for source in sources:
        path = root / source
        assert path.is_dir() if source.endswith("/") else path.is_file(), source


def test_dockerignore_lets_every_copied_path_through(root: Path, instructions: list[Instruction]) -> None:
    rules = [line for line in (root / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    for source in copied(instructions):
        ignored = False
        for rule in rules:  # the last rule that matches decides
            if fnmatch(source.rstrip("/"), rule.removeprefix("!")):
                ignored = not rule.startswith("!")
        assert not ignored, source


def test_all_packages_of_the_wheel_are_copied(root: Path, instructions: list[Instruction]) -> None:
    packages = re.search(r'packages = \["api", "planner", "cost_models"\]', (root / "pyproject.toml").read_text())
    assert packages is not None
    assert {"api/", "planner/", "cost_models/"} <= set(copied(instructions))


def test_bases_are_pinned_and_equal(instructions: list[Instruction]) -> None:
    bases = [argument.split()[0] for argument in arguments(instructions, "FROM")]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", bases[0])


def test_it_does_not_run_as_root(instructions: list[Instruction]) -> None:
    names = [name for name, _ in instructions]
    assert arguments(instructions, "USER")[-1] not in ("root", "0")
    assert names.index("USER") < names.index("ENTRYPOINT")
    created = next(argument for argument in arguments(instructions, "RUN") if argument.startswith("useradd"))
    assert f"--uid {arguments(instructions, 'USER')[-1]}" in created


def test_command_exists(root: Path, instructions: list[Instruction]) -> None:
    (entry,) = arguments(instructions, "ENTRYPOINT")
    (command,) = arguments(instructions, "CMD")
    assert f'{json.loads(entry)[0]} = "api.cli:main"' in (root / "pyproject.toml").read_text()
    known = {registered.name for registered in command_line.registered_commands}
    assert json.loads(command)[0] in known


def test_settings_exist(instructions: list[Instruction]) -> None:
    (environment,) = arguments(instructions, "ENV")
    names = re.findall(r"SHARDPLAN_(\w+)=", environment)
    assert names
    for name in names:
        assert name.lower() in Settings.model_fields, name


def test_health_check_asks_a_route_that_exists(instructions: list[Instruction], tmp_path: Path) -> None:
    (check,) = arguments(instructions, "HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    assert command[:2] == ["python", "-c"]
    compile(command[2], "healthcheck", "exec")
    found = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", command[2])
    assert found is not None
    port, path = found.groups()
    assert path in create_app(Settings(data_dir=tmp_path)).openapi()["paths"]
    (environment,) = arguments(instructions, "ENV")
    assert f"SHARDPLAN_PORT={port}" in environment
    assert arguments(instructions, "EXPOSE") == [port]
