"""Files of measured rows, written as other programs write them."""

import gzip
from pathlib import Path

import numpy as np

from cost_models.measurements.csv_rows import csv_text
from cost_models.measurements.schema import COLUMNS, Measurements


def write_measurements(rows: Measurements, path: Path) -> None:
    """Write rows as CSV, compressed CSV or Parquet, by the name of the file."""
    if path.suffix == ".parquet":
        _write_parquet(rows, path)
        return
    content = csv_text(rows).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def _write_parquet(rows: Measurements, path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    types = {"text": pyarrow.string(), "count": pyarrow.int64(), "number": pyarrow.float64()}
    arrays = {}
    for column in COLUMNS:
        values = rows.columns[column.name]
        empty = values == "" if column.type == "text" else values == -1 if column.type == "count" else values != values
        arrays[column.name] = pyarrow.array(values.tolist(), mask=np.asarray(empty), type=types[column.type])
    parquet.write_table(pyarrow.table(arrays), path, compression="zstd")
