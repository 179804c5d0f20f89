"""The code of the repository, for tests that look for something in it: each file is read and parsed once."""

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.paths import ROOT


def files_of(packages: Iterable[str]) -> Iterator[Path]:
    """Every file of code below folders at the root."""
    for package in packages:
        yield from sorted((ROOT / package).rglob("*.py"))


@functools.cache
def text_of(path: Path) -> str:
    """The text of a file, to find out whether it is worth parsing."""
    return path.read_text()


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of the tree of a file."""
    return tuple(ast.walk(ast.parse(text_of(path))))
