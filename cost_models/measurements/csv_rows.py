"""Measured rows as CSV: a head line with the names of columns, then one row a line."""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from cost_models.measurements.cells import RowIssueCollector, check_head, from_text, refused
from cost_models.measurements.check import MAX_ROWS
from cost_models.measurements.schema import COLUMN_NAMES, COLUMNS, Column, Measurements, measurements

#: A row has a few dozen cells of at most 80 characters; a longer line is not read to its end.
MAX_LINE_BYTES = 16 * 1024
_ROWS_PER_PIECE = 10_000


def read_csv(file: BinaryIO, max_bytes: int) -> Measurements:
    """Return the rows of a CSV file, not checked beyond their cells; at most ``max_bytes`` of it are read.

    Raises
    ------
    InvalidMeasurements
        Where the file is no CSV, too large, or has cells that their columns do not take.
    """
    issues = RowIssueCollector()
    rows = csv.reader(_lines(file, max_bytes), strict=True)
    pieces: list[list[NDArray[np.generic]]] = []
    try:
        columns = check_head(next(rows, []))
        done = 0
        while piece := list(islice(rows, _ROWS_PER_PIECE)):
            if done + len(piece) > MAX_ROWS:
                raise refused(f"more than {MAX_ROWS:,} rows: split the file")
            pieces.append(_columns(columns, piece, done, issues))
            done += len(piece)
    except csv.Error as error:
        raise refused(f"line {rows.line_num} is no CSV: {error}") from None
    except UnicodeDecodeError:
        raise refused(f"line {rows.line_num + 1} is not UTF-8") from None
    issues.raise_if_any()
    if not pieces:
        return measurements({}, 0)
    whole = {column.name: np.concatenate(parts) for column, *parts in zip(columns, *pieces, strict=True)}
    return measurements(whole, done)


def _lines(file: BinaryIO, max_bytes: int) -> Iterator[str]:
    """Yield the lines of a file as text, and stop before a line or a file without end fills the memory."""
    read = number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        read, number = read + len(line), number + 1
        if len(line) > MAX_LINE_BYTES:
            raise refused(f"line {number} is longer than {MAX_LINE_BYTES:,} bytes")
        if read > max_bytes:
            raise refused(f"more than {max_bytes:,} bytes of rows: split the file")
        yield line.decode("utf-8-sig" if number == 1 else "utf-8")


def _columns(
    columns: tuple[Column, ...], piece: list[list[str]], first_row: int, issues: RowIssueCollector
) -> list[NDArray[np.generic]]:
    width = len(columns)
    for offset, cells in enumerate(piece):
        if len(cells) != width:
            issues.add(first_row + offset, "", "", f"{len(cells)} cells, and {width} columns")
            piece[offset] = [""] * width
    turned = zip(*piece, strict=True)
    return [from_text(column, list(cells), first_row, issues) for column, cells in zip(columns, turned, strict=True)]


def csv_text(rows: Measurements, *, head: bool = True) -> str:
    """Return rows as CSV with all columns; empty values are empty cells, and numbers read back as they were."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if head:
        writer.writerow(COLUMN_NAMES)
    writer.writerows(zip(*(_cells(column, rows) for column in COLUMNS), strict=True))
    return text.getvalue()


def _cells(column: Column, rows: Measurements) -> list[str]:
    values = rows.columns[column.name].tolist()
    if column.type == "text":
        return [str(value) for value in values]
    if column.type == "count":
        return ["" if value == -1 else str(value) for value in values]
    return ["" if value != value else repr(value) for value in values]  # NaN alone differs from itself
