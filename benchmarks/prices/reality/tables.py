"""Tables of the shared format in a folder, recognised by their columns whatever the files are called."""

import csv
import gzip
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".csv", ".csv.gz")


class Line(NamedTuple):
    """A row of a table."""

    file: str
    number: int  # in the file, the header being line 1
    fields: Mapping[str, str]


def table_files(folder: Path) -> list[Path]:
    """Return the tables of a folder by name; those of its subfolders are raw logs."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES))


def lines_with(folder: Path, columns: frozenset[str]) -> Iterator[Line]:
    """Yield the rows of every table of a folder that has all of these columns."""
    for path in table_files(folder):
        for line in lines_of(path):
            if not columns <= line.fields.keys():
                break
            yield line


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the rows of a table."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    for fields in reader:
        yield Line(path.name, reader.line_num, fields)
