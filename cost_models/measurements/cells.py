"""Cells of a file to typed columns, with a finding for every cell that is not what its column takes."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cost_models.errors import InvalidMeasurements, RowIssue
from cost_models.measurements.schema import COLUMN_NAMES, COLUMNS, DTYPES, Column, empty_column

MAX_ISSUES = 50
MAX_TEXT_LENGTH = 80
_MAX_QUOTED_LENGTH = 40
#: The largest number up to which a float holds every whole one.
MAX_COUNT = 2**53

#: Begins with a letter, a digit or an underscore, so that no spreadsheet takes it for a formula; printable ASCII.
_TEXT = r"[A-Za-z0-9_](?:[ -~]{0,78}[!-~])?"
_COUNT = r"-?[0-9]{1,16}"
_NUMBER = r"[+-]?(?:[0-9]{1,20}+(?:\.[0-9]{0,20}+)?+|\.[0-9]{1,20}+)(?:[eE][+-]?[0-9]{1,3}+)?+"
_CELL = {
    "text": (
        re.compile(_TEXT),
        "expected a text of at most 80 printable characters that begins with a letter or digit",
    ),
    "count": (re.compile(_COUNT), "expected a whole number below 2^53"),
    "number": (re.compile(_NUMBER), "expected a number"),
}
#: All cells of a column at once, one on a line, which is faster than cell by cell. A line that was read is never
#: read in another way: no cell can make the match take long.
_WHOLE = {
    "text": re.compile(f"(?>(?:{_TEXT})?\n)*+"),
    "count": re.compile(f"(?>(?:{_COUNT})?\n)*+"),
    "number": re.compile(f"(?>(?:{_NUMBER})?\n)*+"),
}


class RowIssueCollector:
    """Collects what is wrong: the first of it to show, and how much there is."""

    def __init__(self) -> None:
        self._issues: list[RowIssue] = []
        self._count = 0

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return self._count > 0

    def add(self, row: int, column: str, value: object, reason: str) -> None:
        """Add one; ``row`` counts from 0."""
        self._count += 1
        if len(self._issues) < MAX_ISSUES:
            self._issues.append(RowIssue(row=row, column=column, value=_quoted(value), reason=reason))

    def add_rows(self, wrong: NDArray[np.bool_], column: str, values: NDArray[np.generic] | None, reason: str) -> None:
        """Add one for every row where ``wrong`` is true."""
        rows = np.flatnonzero(wrong)
        room = MAX_ISSUES - len(self._issues)
        for row in rows[: max(room, 0)].tolist():
            self.add(row, column, "" if values is None else values[row].item(), reason)
        self._count += max(len(rows) - max(room, 0), 0)

    def raise_if_any(self) -> None:
        """Raise ``InvalidMeasurements`` with the findings in the order of the rows, if there are any."""
        if self:
            self._issues.sort(key=lambda issue: issue.row)
            raise InvalidMeasurements(tuple(self._issues), self._count)


def refused(reason: str, value: object = "") -> InvalidMeasurements:
    """Return the refusal of a whole file for one reason."""
    return InvalidMeasurements((RowIssue(row=-1, column="", value=_quoted(value), reason=reason),), 1)


def _quoted(value: object) -> str:
    """What stands in a cell, cut short and without control characters."""
    text = value if isinstance(value, str) else repr(value)
    cut = text[:_MAX_QUOTED_LENGTH]
    return ascii(cut)[1:-1] + ("..." if len(text) > len(cut) else "")


def check_head(names: Sequence[str]) -> tuple[Column, ...]:
    """Return the columns of a head line; raises ``InvalidMeasurements`` for names that are unknown or stand twice."""
    issues, by_name = RowIssueCollector(), {column.name: column for column in COLUMNS}
    for name in names:
        if name not in by_name:
            issues.add(-1, "", name, f"unknown column; known: {', '.join(COLUMN_NAMES[:6])}, ...")
        elif list(names).count(name) > 1:
            issues.add(-1, name, name, "the column stands twice")
    for name in ("kind", "launch", "seconds"):
        if name not in names:
            issues.add(-1, name, "", "the column is missing")
    issues.raise_if_any()
    return tuple(by_name[name] for name in names)


def from_text(column: Column, cells: list[str], first_row: int, issues: RowIssueCollector) -> NDArray[np.generic]:
    """Return the cells of one column of a CSV file as an array; an empty cell is an empty value.

    Cells that are not what the column takes become findings, and empty values.
    """
    if not any(cells):
        return empty_column(column, len(cells))
    if not _WHOLE[column.type].fullmatch("\n".join(cells) + "\n") or any("\n" in cell for cell in cells):
        pattern, reason = _CELL[column.type]
        for offset, cell in enumerate(cells):
            if cell and not pattern.fullmatch(cell):
                issues.add(first_row + offset, column.name, cell, reason)
                cells[offset] = ""
    if column.type == "text":
        return np.array(cells, dtype=np.str_)
    if column.type == "count":
        return np.array([cell or "-1" for cell in cells], dtype=np.str_).astype(np.int64)
    numbers = np.array([cell or "nan" for cell in cells], dtype=np.str_).astype(np.float64)
    _refuse_overflow(column, numbers, first_row, issues)
    return numbers


def from_values(
    column: Column, values: Sequence[object], first_row: int, issues: RowIssueCollector
) -> NDArray[np.generic]:
    """Return the values of one column out of JSON as an array; ``None`` is an empty value."""
    pattern, reason = _CELL[column.type]
    entries: list[Any] = empty_column(column, len(values)).tolist()
    for offset, value in enumerate(values):
        if value is None:
            continue
        if column.type == "text":
            fits = isinstance(value, str) and (value == "" or pattern.fullmatch(value) is not None)
        elif column.type == "count":
            fits = type(value) is int and abs(value) <= MAX_COUNT
        else:
            fits = type(value) in (int, float) and abs(value) < 1e300  # type: ignore[arg-type]  # checked just before
        if fits:
            entries[offset] = value
        else:
            issues.add(first_row + offset, column.name, value, reason)
    return np.array(entries, dtype=DTYPES[column.type])


def _refuse_overflow(column: Column, numbers: NDArray[np.float64], first_row: int, issues: RowIssueCollector) -> None:
    for offset in np.flatnonzero(np.isinf(numbers)).tolist():
        issues.add(first_row + offset, column.name, float(numbers[offset]), "too large for a number")
        numbers[offset] = np.nan
