"""Embedding kernels that others measured, each predicted by the roofline model on a shipped profile.

Three kinds of files of a folder are read, known by their columns, whatever they are called, compressed or not:
benchmarks of whole launches, figures from pull requests, and kernels of traces (``benchmarks/prices/reality/tbe/``).
Rows that no law predicts are left out, each with its reason.
"""

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tbe import figures, launches, traces
from benchmarks.prices.reality.tbe.predicted import Numbered

_KINDS = ((launches.COLUMNS, launches.found), (figures.COLUMNS, figures.found), (traces.COLUMNS, traces.found))


def rows(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield a prediction for every kernel or launch that a law covers, and the rows that are left out."""
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
