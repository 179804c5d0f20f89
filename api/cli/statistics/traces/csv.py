"""Traces in CSV files: a head line with the names of columns, then one sample a line.

A cell has one id, several with spaces or another separator between them, or none.
"""

import contextlib
import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from api.cli.errors import BadInput
from api.cli.statistics.traces.base import Piece, TraceOptions, chosen_columns
from cost_models.arrays import Ints
from cost_models.text.read_number import whole_number

_MAX_CELL = 16_000_000
_QUOTED = 30
#: numpy reads digits of all scripts, and underscores between them (of two ids, or of an id and a version)
_NOT_OF_IDS = re.compile(r"[^0-9+\-\s]")
_WAY_OUT = "choose the columns of ids with --table COLUMN, or say what is between the ids of a cell with --separator"


def read_csv(path: Path, samples_per_piece: int, options: TraceOptions) -> Iterator[Piece]:
    csv.field_size_limit(_MAX_CELL)
    size = max(path.stat().st_size, 1)
    with path.open("rb") as raw:
        # Spreadsheets put a byte order mark before the first name.
        lines = csv.reader(line.decode("utf-8" if number else "utf-8-sig") for number, line in enumerate(raw))
        try:
            head = next(lines, [])
            names = chosen_columns(path, head, options.columns)
            if len(set(head)) != len(head) or not head:
                raise BadInput(f"{path}: expected a first line with the name of each column, once each")
            places = [head.index(name) for name in names]
            line = 2
            while samples := list(islice(lines, samples_per_piece)):
                for offset, sample in enumerate(samples):
                    if len(sample) != len(head):
                        raise BadInput(f"{path}, line {line + offset}: {len(sample)} cells, and {len(head)} columns")
                ids = {
                    name: _ids(path, line, name, [sample[place] for sample in samples], options.separator)
                    for name, place in zip(names, places, strict=True)
                }
                line += len(samples)
                yield Piece(num_samples=len(samples), ids=ids, read_fraction=min(raw.tell() / size, 1.0))
        except (csv.Error, UnicodeDecodeError) as error:
            raise BadInput(f"{path}, line {lines.line_num}: {error}") from None


def _ids(path: Path, first_line: int, name: str, cells: list[str], separator: str | None) -> Ints:
    if separator is not None:
        cells = [cell.replace(separator, " ") for cell in cells]
    text = " ".join(cells)
    if _NOT_OF_IDS.search(text) is None:
        with contextlib.suppress(ValueError, OverflowError):
            return np.array(text.split(), dtype=np.int64)
    for offset, cell in enumerate(cells):
        for word in cell.split():
            if not _is_id(word):
                where = f"{path}, line {first_line + offset}, column {name}"
                raise BadInput(f"{where}: {_quoted(word)} is not a whole number; {_WAY_OUT}")
    return np.array(text.split(), dtype=np.int64)


def _quoted(word: str) -> str:
    return ascii(word if len(word) <= _QUOTED else f"{word[:_QUOTED]}...")


def _is_id(word: str) -> bool:
    number = whole_number(word)
    return number is not None and -(2**63) <= number < 2**63
