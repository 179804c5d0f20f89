"""Embedding kernels that others measured, each predicted by the roofline model on a shipped profile.

Three kinds of files of a folder are read, known by their columns, whatever they are called, compressed or not:
benchmarks of whole launches, figures from pull requests, and kernels of traces (``benchmarks/prices/reality/tbe/``).
Rows that no law predicts are left out, each with its reason.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tables import lines_of, table_files
from benchmarks.prices.reality.tbe import figures, launches, traces
from benchmarks.prices.reality.tbe.predicted import Numbered

_KINDS = ((launches.COLUMNS, launches.found), (figures.COLUMNS, figures.found), (traces.COLUMNS, traces.found))


def rows(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield a prediction for every kernel or launch that a law covers, and the rows that are left out."""
    for path in table_files(folder):
        numbered = _numbered(path)
        columns = numbered[0][1].keys() if numbered else frozenset[str]()
        for needed, found in _KINDS:
            if needed <= columns:
                yield from found(path, numbered)


def _numbered(path: Path) -> list[Numbered]:
    """Return the rows of a table with empty text for cells that are not there."""
    return [(line.number, {k: v or "" for k, v in line.fields.items() if k}) for line in lines_of(path)]
