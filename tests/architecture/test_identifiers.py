"""Names are terms of the field or of the language: words that only this code base used stay out of identifiers."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.sources import files_of, nodes_of, text_of

#: Each word once stood for several things here. A name says what it holds: a document, a message, a path, a rank.
PRIVATE_WORDS = frozenset(
    [
        "anew",
        "anybody",
        "beside",
        "courier",
        "deal",
        "deals",
        "dealt",
        "dearer",
        "dearest",
        "dismiss",
        "everybody",
        "finding",
        "findings",
        "heat",
        "hesitant",
        "hurry",
        "judge",
        "judged",
        "kept",
        "lane",
        "lanes",
        "lend",
        "mend",
        "mended",
        "nobody",
        "obey",
        "offer",
        "offers",
        "polish",
        "said",
        "somebody",
        "stranger",
        "strangers",
        "taste",
        "tell",
        "telling",
        "tells",
        "told",
        "unhurried",
        "unjudged",
        "untold",
        "whoever",
        "wish",
        "wishes",
    ]
)
#: Fields of the documents that are published, by their names.
CONTRACT = frozenset({"kept_bytes", "not_judged", "beside_seconds"})
ROOTS = ("api", "planner", "cost_models", "tests", "benchmarks")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


#: Names that a script declares, and the parameters of its functions.
DECLARED = re.compile(r"\b(?:const|let|function|class) (\w+)")
PARAMETERS = re.compile(r"\(([^()]*)\) *(?:=>|\{)")
#: Finds each word of those above, be it part of a name, of another word or of text.
ANYWHERE = re.compile("|".join(sorted(PRIVATE_WORDS)), re.IGNORECASE)


def names_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name that a file gives: to functions, classes, arguments, variables, attributes and imports."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def private_words(name: str) -> set[str]:
    return set() if name in CONTRACT else {word.lower() for word in WORD.findall(name)} & PRIVATE_WORDS


@pytest.mark.parametrize("package", ROOTS)
def test_names_are_of_the_field(root: Path, package: str) -> None:
    found = {
        f"{path.relative_to(root)}: {name}"
        for path in files_of([package])
        if ANYWHERE.search(f"{path.stem} {text_of(path)}")  # it takes long to parse files without any
        for name in {path.stem, *names_of(nodes_of(path))}
        if private_words(name)
    }
    assert not found, sorted(found)


def script_names_of(text: str) -> Iterator[str]:
    """Every name that a script gives to variables, functions and parameters."""
    yield from DECLARED.findall(text)
    for parameters in PARAMETERS.findall(text):
        yield from re.findall(r"\w+", parameters)


def test_names_in_pages_are_of_the_field(root: Path) -> None:
    assets = root / "api/http/pages/assets"
    scripts = [path for path in sorted(assets.rglob("*.js")) if "vendor" not in path.parts]
    found = {
        f"{path.relative_to(root)}: {name}"
        for path in scripts
        for name in {path.stem, *script_names_of(path.read_text())}
        if private_words(name)
    }
    assert len(scripts) > 20
    assert not found, sorted(found)


def test_a_private_word_is_found_in_a_script() -> None:
    text = "function f(told, { isKept }) {}\nconst lanes = (mended) => told_;\nlet wishes = 0;\nreturn kept;"
    found = {name for name in script_names_of(text) if private_words(name)}
    assert found == {"told", "isKept", "lanes", "mended", "wishes"}


@pytest.mark.parametrize("name", ["told", "is_told", "_KEPT_SECONDS", "WhoeverAsks", "best_of_lanes"])
def test_a_private_word_is_found_in_a_name(name: str) -> None:
    assert private_words(name)


@pytest.mark.parametrize("name", ["reporter", "heater", "kept_bytes", "Tolerance", "plane"])
def test_other_names_pass(name: str) -> None:
    assert not private_words(name)
