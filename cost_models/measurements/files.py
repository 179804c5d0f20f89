"""Files of measured rows: ``.csv``, ``.csv.gz`` and ``.parquet``, checked as they are read."""

import gzip
import os
import zlib
from pathlib import Path

from cost_models.measurements.cells import refused
from cost_models.measurements.check import check
from cost_models.measurements.csv_rows import read_csv
from cost_models.measurements.parquet_rows import read_parquet
from cost_models.measurements.schema import Measurements

#: A file as it lies there, and what it may unfold to.
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_INFLATED_BYTES = 128 * 1024 * 1024
SUFFIXES = (".csv", ".csv.gz", ".parquet")


def read_measurements(path: Path) -> Measurements:
    """Return the rows of a file, checked.

    Raises
    ------
    InvalidMeasurements
        With what is wrong, the first 50 findings of it.
    OSError
        Where the file cannot be read.
    """
    suffix = _suffix(path)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
            raise refused(f"larger than {MAX_FILE_BYTES:,} bytes: split the file")
        if suffix == ".parquet":
            return check(read_parquet(file, MAX_INFLATED_BYTES))
        if suffix == ".csv":
            return check(read_csv(file, MAX_INFLATED_BYTES))
        try:
            with gzip.open(file) as inflated:
                return check(read_csv(inflated, MAX_INFLATED_BYTES))  # type: ignore[arg-type]  # a BinaryIO but in name
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise refused("no gzip file that can be read", str(error)) from None


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    raise refused(f"the name of a file of measurements ends with {', '.join(SUFFIXES)}", path.name)
