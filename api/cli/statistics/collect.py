"""Traces become statistics: batches of samples go to the collectors of the tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from api.cli.errors import BadInput
from api.cli.statistics.traces.base import ALL_COLUMNS, TraceOptions
from api.cli.statistics.traces.registry import read_trace
from api.specs.references.statistics_document import Statistics
from planner.access.sketches.collector import Collector

#: Called after every batch: lookups so far, the file, and the share of it that is read.
OnProgress = Callable[[int, Path, float], None]


def collect(
    traces: Sequence[Path],
    *,
    batch_size: int,
    options: TraceOptions = ALL_COLUMNS,
    tables: Mapping[str, Sequence[str]] | None = None,
    hash_seed: int = 0,
    on_progress: OnProgress | None = None,
) -> tuple[Statistics, int]:
    """Return the statistics of the ids in files, and the number of ids that only filled up samples.

    Parameters
    ----------
    traces
        Files of samples. A batch never spans two files, so that files may be read by different workers
        and their statistics merged.
    batch_size
        Samples of one batch; the last batch of a file may have fewer.
    options
        How traces are read; of their columns, ``tables`` has the choice.
    tables
        The columns that are looked up in each table; every column in a table of its own name without it.

    Raises
    ------
    BadInput
        With the file and the place.
    """
    options = replace(options, columns=columns_of(tables))
    collectors: dict[str, Collector] = {}
    lookups = num_padding = 0
    for path in traces:
        first = 0
        for piece in read_trace(path, batch_size, options):
            columns_by_table = tables if tables is not None else {name: (name,) for name in piece.ids}
            for table, names in columns_by_table.items():
                ids = [piece.ids[name] for name in names]
                joined = ids[0] if len(ids) == 1 else np.concatenate(ids)
                collector = collectors.setdefault(table, Collector(table, hash_seed=hash_seed))
                try:
                    collector.add(joined, num_samples=piece.num_samples)
                except ValueError as error:
                    where = f"{path}, samples {first} to {first + piece.num_samples - 1}, table {table}"
                    raise BadInput(f"{where}: {error}") from None
                lookups += len(joined)
            first += piece.num_samples
            num_padding += piece.num_padding
            if on_progress is not None:
                on_progress(lookups, path, piece.read_fraction)
        for collector in collectors.values():
            collector.end_trace()
    if not collectors:
        raise BadInput("the traces have no samples")
    return Statistics(sketches={name: collector.sketch() for name, collector in collectors.items()}), num_padding


def columns_of(tables: Mapping[str, Sequence[str]] | None) -> tuple[str, ...] | None:
    """Return the columns that tables are looked up by, each once; ``None`` stands for all columns."""
    return None if tables is None else tuple(dict.fromkeys(name for names in tables.values() for name in names))
