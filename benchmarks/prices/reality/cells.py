"""Numbers in the cells of public tables, within the limits of what was ever measured."""

from collections.abc import Mapping

from cost_models.errors import CostModelError
from cost_models.text.read_number import finite_number
from planner.errors import PlannerError

_MOST = 1e18
_LEAST_TIME = 1e-12
#: What is raised for numbers that no law, and no spec, is made for.
UNREADABLE = (ValueError, ArithmeticError, LookupError, PlannerError, CostModelError)


def number(fields: Mapping[str, str], column: str, *, most: float = _MOST) -> float:
    """Return the number of a cell, from 0 on; raises ``ValueError`` that names the column where there is none."""
    value = finite_number(fields[column])
    if value is None:
        raise ValueError(f"no number in {column}")
    if not 0 <= value <= most:
        raise ValueError(f"{column} is not between 0 and {most:g}")
    return value


def time(fields: Mapping[str, str], column: str) -> float:
    """Return a time of at least 1e-12 of the column's unit: errors are relative to it."""
    value = number(fields, column)
    if value < _LEAST_TIME:
        raise ValueError(f"no time in {column}")
    return value


def count(fields: Mapping[str, str], column: str, *, most: float) -> int:
    """Return the whole number of a cell, from 1 on; ``8.0`` is one."""
    value = number(fields, column, most=most)
    if value < 1 or value != int(value):
        raise ValueError(f"{column} is no whole number from 1 on")
    return int(value)


def is_number(text: str) -> bool:
    """Whether a cell states a number."""
    return finite_number(text) is not None
