"""Embedding kernels that were measured, each predicted by the roofline model on a shipped profile.

Four kinds of files of a folder are read, known by their columns, whatever they are called, compressed or not:
benchmarks of whole launches, rows of ``shardplan measure``, figures from pull requests, and kernels of traces
(``benchmarks/prices/reality/tbe/``).
Rows that no law predicts are left out, each with its reason.
"""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.prices.reality.row import LeftOutRow, PredictedRow
from benchmarks.prices.reality.tables import tables
from benchmarks.prices.reality.tbe import figures, launches, measured, traces

_KINDS = (
    (launches.COLUMNS, launches.found),
    (measured.COLUMNS, measured.found),
    (figures.COLUMNS, figures.found),
    (traces.COLUMNS, traces.found),
)


def rows(folder: Path) -> Iterator[PredictedRow | LeftOutRow]:
    """Yield a prediction for every kernel or launch that a law covers, and the rows that are left out."""
    for table in tables(folder):
        for needed, found in _KINDS:
            if table.columns >= needed:
                yield from found(table.path, [(line.number, line.fields) for line in table.lines])
