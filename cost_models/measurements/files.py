"""Files of measured rows: ours (CSV, Parquet, JSON), and reports of other benchmarks, checked as they are read."""

import gzip
import io
import json
import os
import zlib
from pathlib import Path
from typing import BinaryIO

from cost_models.measurements.cells import refused
from cost_models.measurements.check import check
from cost_models.measurements.csv_rows import read_csv
from cost_models.measurements.json_rows import rows_from_json
from cost_models.measurements.parquet_rows import read_parquet
from cost_models.measurements.reports.nccl_tests import read_nccl_tests
from cost_models.measurements.reports.report import NOTHING_STATED, Report, Stated
from cost_models.measurements.reports.tbe_benchmark import is_tbe_benchmark, read_tbe_benchmark
from cost_models.measurements.schema import Measurements

#: A file as it lies there, and what it may unfold to.
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_INFLATED_BYTES = 128 * 1024 * 1024
SUFFIXES = (".csv", ".csv.gz", ".parquet")
_GZIP = b"\x1f\x8b"
_BROKEN_GZIP = (gzip.BadGzipFile, EOFError, zlib.error)
_FORMS = (
    "rows of shardplan (.csv, .csv.gz, .parquet, or JSON with a list of rows), a log of nccl-tests or rccl-tests,"
    " benchmark_results.json of dynamicemb"
)


def read_report(path: Path, stated: Stated = NOTHING_STATED) -> Report:
    """Return the rows of any file that holds some: ours by the end of its name, else by what is in it.

    Raises
    ------
    InvalidMeasurements
        With what is wrong, the first 50 findings of it.
    OSError
        Where the file cannot be read.
    """
    if path.name.endswith(SUFFIXES):
        return Report(rows=read_measurements(path))
    with path.open("rb") as file:
        _check_size(file)
        raw = file.read()
    if raw.startswith(_GZIP):
        raw = _inflated(raw)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or "\0" in text:
        raise refused(f"{'empty' if not raw else 'no text'}; expected {_FORMS}")
    if not text.lstrip().startswith(("{", "[{", "[\n", "[ ")):
        return read_nccl_tests(text, name=path.name, stated=stated)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return read_nccl_tests(text, name=path.name, stated=stated)
    if is_tbe_benchmark(content):
        return read_tbe_benchmark(content, name=path.name, stated=stated)
    if isinstance(content, dict) and isinstance(content.get("rows"), list):
        return Report(rows=rows_from_json(content["rows"]))
    raise refused(f"JSON of another kind; expected {_FORMS}")


def read_measurements(path: Path) -> Measurements:
    """Return the rows of a file of ours, checked; raises as :func:`read_report` does."""
    suffix = _suffix(path)
    with path.open("rb") as file:
        _check_size(file)
        if suffix == ".parquet":
            return check(read_parquet(file, MAX_INFLATED_BYTES))
        if suffix == ".csv":
            return check(read_csv(file, MAX_INFLATED_BYTES))
        try:
            with gzip.open(file) as inflated:
                return check(read_csv(inflated, MAX_INFLATED_BYTES))  # type: ignore[arg-type]  # a BinaryIO but in name
        except _BROKEN_GZIP as error:
            raise refused("no gzip file that can be read", str(error)) from None


def _check_size(file: BinaryIO) -> None:
    if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
        raise refused(f"larger than {MAX_FILE_BYTES:,} bytes: split the file")


def _inflated(raw: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(raw)) as inflated:
            content = inflated.read(MAX_INFLATED_BYTES + 1)
    except _BROKEN_GZIP as error:
        raise refused("no gzip file that can be read", str(error)) from None
    if len(content) > MAX_INFLATED_BYTES:
        raise refused(f"more than {MAX_INFLATED_BYTES:,} bytes when unpacked: split the file")
    return content


def _suffix(path: Path) -> str:
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return suffix
    raise refused(f"the name of a file of measurements ends with {', '.join(SUFFIXES)}", path.name)
