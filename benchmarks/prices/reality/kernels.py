"""Embedding kernels that others measured, each predicted by the roofline model on a shipped profile.

Three kinds of files of a folder are read, known by their columns, whatever they are called, compressed or not:
benchmarks of whole launches, figures from pull requests, and kernels of traces (``benchmarks/prices/reality/tbe/``).
Rows that no law predicts are left out; :func:`left_out` says how many for which reason.
"""

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.prices.reality.row import PredictedRow
from benchmarks.prices.reality.tbe import figures, launches, traces
from benchmarks.prices.reality.tbe.predicted import Found, Numbered

_KINDS = ((launches.COLUMNS, launches.found), (figures.COLUMNS, figures.found), (traces.COLUMNS, traces.found))


def rows(folder: Path) -> Iterator[PredictedRow]:
    """Yield a prediction for every kernel or launch of the files of a folder that a law covers."""
    for found in _found(folder):
        if isinstance(found, PredictedRow):
            yield found


def left_out(folder: Path) -> Counter[str]:
    """Return how many rows of the files of a folder have no prediction, by reason."""
    return Counter(found for found in _found(folder) if isinstance(found, str))


def _found(folder: Path) -> Iterator[Found]:
    for path in sorted([*folder.glob("*.csv"), *folder.glob("*.csv.gz")]):
        columns, numbered = _read(path)
        for needed, found in _KINDS:
            if columns >= needed:
                yield from found(path, numbered)


def _read(path: Path) -> tuple[set[str], list[Numbered]]:
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8", errors="replace")
    reader = csv.DictReader(text.splitlines())
    columns = set(reader.fieldnames or ())
    return columns, [(line, {k: v or "" for k, v in row.items() if k}) for line, row in enumerate(reader, start=2)]
