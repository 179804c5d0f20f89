"""The questions of ``init`` on a terminal: each with its unit and its default, asked again until the answer will do."""

import sys
from collections.abc import Callable
from typing import TypeVar

from api.cli.errors import BadInput, echo
from cost_models.text.read_number import finite_number, whole_number

Value = TypeVar("Value")


def ask(question: str, read: Callable[[str], Value], default: str) -> Value:
    """Return what an answer is read as; an empty answer takes the default.

    Raises
    ------
    KeyboardInterrupt
        The person ended the questions, by Ctrl-C or by the end of the input.
    """
    while True:
        echo(f"{question} [{default}]:" if default else f"{question}:")
        print("> ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()  # the prompt of input() would go to standard output, which is for the spec
        if not line:
            raise KeyboardInterrupt
        try:
            return read(line.strip() or default)
        except BadInput as error:
            echo(f"  {error}")


def whole(text: str) -> int:
    """Return a whole number of at least 1."""
    number = whole_number(text.replace(",", ""))
    if number is None or number < 1:
        raise BadInput(f"expected a whole number of at least 1, not {text[:80]!r}")
    return number


def ids(text: str) -> str:
    """Return a number of ids per sample as an option has it."""
    number = finite_number(text)
    if number is None or number < 0:
        raise BadInput(f"expected a number of ids, such as 1 or 20.5, not {text[:80]!r}")
    return text


def one_of(choices: tuple[str, ...]) -> Callable[[str], str]:
    """Return a reader that takes one of some words."""

    def read(text: str) -> str:
        if text not in choices:
            raise BadInput(f"expected one of {', '.join(choices)}, not {text[:80]!r}")
        return text

    return read
