"""Every warning that the service gives is documented."""

import ast
from collections.abc import Iterator

from tests.support.paths import ROOT
from tests.support.sources import files_of, nodes_of, text_of


def codes_of_warnings() -> Iterator[str]:
    """The codes of all calls that make a warning: those with its severity, and those of a partial with it."""
    for path in files_of(("api", "planner")):
        for node in nodes_of(path) if "warning" in text_of(path) else ():
            if isinstance(node, ast.Call) and (is_warning(node) or ast.unparse(node.func) == "_warning"):
                codes = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "code")]
                yield from (str(code.value) for code in codes if isinstance(code, ast.Constant))


def is_warning(call: ast.Call) -> bool:
    return any(keyword.arg == "severity" and ast.unparse(keyword.value) == "'warning'" for keyword in call.keywords)


def test_codes_of_warnings_are_documented() -> None:
    documented = (ROOT / "docs" / "http-api.md").read_text() + (ROOT / "docs" / "concepts.md").read_text()
    codes = set(codes_of_warnings())
    assert len(codes) >= 8
    missing = [code for code in sorted(codes) if f"`{code}`" not in documented]
    assert missing == []
