"""Tables of the shared format in a folder, recognised by their columns whatever the files are called."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.prices.reality.row import LeftOutRow

SUFFIXES = (".csv", ".csv.gz")
_PART_BYTES = 2**16


class Fields(dict[str, str]):
    """Cells of a row by column; a column that the table lacks is empty."""

    def __missing__(self, column: str) -> str:
        return ""


class Line(NamedTuple):
    """A row of a table."""

    file: str
    number: int  # in the file, the header being line 1
    fields: Fields

    def left_out(self, reason: str) -> LeftOutRow:
        """Return the row as one without a prediction."""
        return LeftOutRow(file=self.file, line=self.number, reason=reason)


class Table(NamedTuple):
    """What a file holds."""

    path: Path
    columns: frozenset[str]
    lines: list[Line]
    left_out: list[LeftOutRow]  # rows that have not as many cells as the header
    broken: str  # why the rest of the file cannot be read; empty if all of it was


def table_files(folder: Path) -> list[Path]:
    """Return the tables of a folder by name; those of its subfolders are raw logs."""
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(SUFFIXES))


def tables(folder: Path) -> Iterator[Table]:
    """Yield the tables of a folder, of broken files what comes before the break."""
    return map(read_table, table_files(folder))


def lines_with(folder: Path, columns: frozenset[str]) -> Iterator[Line]:
    """Yield the rows of every table of a folder that has all of these columns."""
    for table in tables(folder):
        if columns <= table.columns:
            yield from table.lines


def read_table(path: Path) -> Table:
    """Return the rows of a file, as far as it can be read."""
    text, broken = _text(path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    lines: list[Line] = []
    left_out: list[LeftOutRow] = []
    columns: list[str] = []
    try:
        columns += (column.strip() for column in next(reader, ()))
        for cells in reader:
            if not cells:  # an empty line
                continue
            fields = Fields(zip(columns, (cell.strip() for cell in cells), strict=False))
            line = Line(path.name, reader.line_num, fields)
            if len(cells) == len(columns):
                lines.append(line)
            else:
                left_out.append(line.left_out(f"{len(cells)} cells under {len(columns)} columns"))
    except csv.Error as error:  # such as a quote that is not closed
        broken = str(error)
    return Table(path, frozenset(columns), lines, left_out, broken)


def documents(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a folder by name; other files are passed over."""
    for path in sorted(folder.glob("*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def _text(path: Path) -> tuple[str, str]:
    """Return the text of a file, of a broken one all whole lines before the break, and why it is broken."""
    parts: list[bytes] = []
    broken = ""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as content:
            while part := content.read1(_PART_BYTES):
                parts.append(part)
    except (OSError, EOFError, zlib.error) as error:
        broken = str(error)
    text = b"".join(parts)
    return (text[: text.rfind(b"\n") + 1] if broken else text).decode("utf-8-sig", errors="replace"), broken
