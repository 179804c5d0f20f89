"""Words that make a sentence need a second reading do not come back to what people read: docs, messages, docstrings."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

#: Each has a plain word in its place: "next to" or "besides", "again", "no one" or a passive, "says" or "reports".
FORBIDDEN = re.compile(r"\b(anew|beside|nobody|tell|tells|told|whoever)\b", re.IGNORECASE)
#: Code, and the names of the contract.
ALLOWED = re.compile(r"\.tell\(\)|beside_seconds")
FOLDERS = ("api", "planner", "cost_models", "benchmarks", "examples", "docs", "deploy")
SUFFIXES = (".py", ".md", ".js", ".html", ".css", ".toml", ".yaml", ".yml")


def texts(root: Path) -> Iterator[Path]:
    """Every file that people read, but for the records of decisions, which stay as they were, and what others wrote."""
    yield from (root / "README.md", root / "CONTRIBUTING.md", root / "SECURITY.md", root / "Makefile")
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and "decisions" not in path.parts and "vendor" not in path.parts:
                yield path


def forbidden_words(text: str) -> list[str]:
    return FORBIDDEN.findall(ALLOWED.sub("", text))


def test_texts_use_plain_words(root: Path) -> None:
    found = [
        f"{path.relative_to(root)}:{number}: {', '.join(words)}"
        for path in texts(root)
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if (words := forbidden_words(line))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text", ["Tells what changed.", "a table beside it", "is cut anew", "Nobody knows; whoever asks is told"]
)
def test_a_forbidden_word_is_found(text: str) -> None:
    assert forbidden_words(text)


@pytest.mark.parametrize("text", ["raw.tell() / size", "`beside_seconds`", "besides the margin", "a retelling"])
def test_other_words_pass(text: str) -> None:
    assert not forbidden_words(text)
