"""Texts of users become numbers in one way, which reads no digits of other scripts and no underscores."""

import ast
import re
from collections.abc import Iterator

from tests.support.paths import ROOT
from tests.support.sources import files_of, nodes_of, text_of

#: It reads pointers that this repository writes.
_ALLOWED = {"planner/diagnosis/subsets.py"}
_ASKING = ("isdigit", "isdecimal", "isnumeric")


def nodes(pattern: str) -> Iterator[tuple[str, ast.AST]]:
    """Files with their nodes, of those alone whose text has a pattern."""
    for path in files_of(("api", "planner", "cost_models")):
        if re.search(pattern, text_of(path)):
            yield from ((path.relative_to(ROOT).as_posix(), node) for node in nodes_of(path))


def test_patterns_name_the_digits_that_they_take() -> None:
    """``\\d`` takes those of all scripts, and ``int`` reads them."""
    found = [
        f"{name}:{node.lineno}"
        for name, node in nodes(r"\\d")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        for argument in node.args[:1]
        for part in ast.walk(argument)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "\\d" in part.value
    ]
    assert not found


def test_no_code_asks_a_text_whether_it_is_digits() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, node in nodes("|".join(_ASKING))
        if name not in _ALLOWED
        if isinstance(node, ast.Attribute) and node.attr in _ASKING
    ]
    assert not found
