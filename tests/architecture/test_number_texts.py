"""Texts of users become numbers in one way, which reads no digits of other scripts and no underscores."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: It reads pointers that this repository writes.
_ALLOWED = {"planner/diagnosis/subsets.py"}


def sources() -> Iterator[tuple[str, ast.AST]]:
    for room in ("api", "planner", "cost_models"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())


def test_patterns_name_the_digits_that_they_take() -> None:
    """``\\d`` takes those of all scripts, and ``int`` reads them."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in sources()
        for node in ast.walk(tree)
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
        for name, tree in sources()
        if name not in _ALLOWED
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("isdigit", "isdecimal", "isnumeric")
    ]
    assert not found
