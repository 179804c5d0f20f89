"""Numbers of a command line: only what people write as a number is read as the number."""

from collections.abc import Callable
from typing import Any

import typer

from cost_models.text.read_number import finite_number, whole_number

_READERS: dict[object, tuple[Callable[[str], float | None], str]] = {
    int: (whole_number, "a whole number"),
    float: (finite_number, "a number"),
}
_QUOTED = 40


def with_strict_numbers(command: Any) -> Any:
    """Return a command that refuses numbers which only Python reads, such as ``1_000`` and ``nan``.

    The commands that it has refuse them as well.
    """
    for parameter in command.params:
        kind = getattr(parameter.type_descriptor, "annotation", None)
        if kind in (int, float):
            parameter.process_value = _strict(parameter, *_READERS[kind])
    for own in getattr(command, "commands", {}).values():
        with_strict_numbers(own)
    return command


def _strict(parameter: Any, number: Callable[[str], float | None], what: str) -> Callable[[Any, Any], Any]:
    lenient = parameter.process_value

    def process_value(context: Any, value: Any) -> Any:
        if isinstance(value, str) and number(value) is None:
            raise typer.BadParameter(f"{value[:_QUOTED]!r} is not {what}.", ctx=context, param=parameter)
        try:
            return lenient(context, value)
        except typer.BadParameter as error:  # a number beyond the limits of the option
            if not isinstance(value, str):
                raise
            raise typer.BadParameter(f"{error.message}, not {value}", ctx=context, param=parameter) from None

    return process_value
