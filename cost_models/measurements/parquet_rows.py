"""Measured rows as Parquet, by pyarrow (``pip install 'shardplan[traces]'``)."""

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cost_models.measurements.cells import MAX_TEXT_LENGTH, RowIssueCollector, check_head, from_text, refused
from cost_models.measurements.check import MAX_ROWS
from cost_models.measurements.schema import COLUMNS, Column, Measurements, measurements

_ROWS_PER_PIECE = 10_000
_NEEDS = "Parquet needs pyarrow: pip install 'shardplan[traces]'"


def read_parquet(file: BinaryIO, max_bytes: int) -> Measurements:
    """Return the rows of a Parquet file, not checked beyond their cells; its pages may hold ``max_bytes``.

    Text is read as dictionaries, whose entries are measured before rows repeat them: a long text that a small file
    names a million times stays small.

    Raises
    ------
    InvalidMeasurements
        Where the file is no Parquet, too large, or has values that their columns do not take.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise refused(_NEEDS) from None
    texts = [column.name for column in COLUMNS if column.type == "text"]
    issues = RowIssueCollector()
    try:
        with pyarrow.parquet.ParquetFile(file, read_dictionary=texts) as source:
            columns = check_head(source.schema_arrow.names)
            _check_size(source.metadata, max_bytes)
            for column in columns:
                _check_type(column, source.schema_arrow.field(column.name).type)
            pieces: list[list[NDArray[np.generic]]] = []
            done = 0
            for batch in source.iter_batches(_ROWS_PER_PIECE):
                pieces.append([_values(column, batch.column(column.name), done, issues) for column in columns])
                done += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise refused("no Parquet file that can be read", str(error)) from None
    issues.raise_if_any()
    if not pieces:
        return measurements({}, 0)
    whole = {column.name: np.concatenate(parts) for column, *parts in zip(columns, *pieces, strict=True)}
    return measurements(whole, done)


def _check_size(metadata: Any, max_bytes: int) -> None:
    size = sum(metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups))
    if metadata.num_rows > MAX_ROWS:
        raise refused(f"more than {MAX_ROWS:,} rows: split the file")
    if size > max_bytes:
        raise refused(f"more than {max_bytes:,} bytes of rows: split the file")


def _check_type(column: Column, data_type: Any) -> None:
    from pyarrow import types

    inner = data_type.value_type if types.is_dictionary(data_type) else data_type
    fits = {
        "text": types.is_string(inner) or types.is_large_string(inner) or types.is_null(inner),
        "count": types.is_integer(inner) or types.is_null(inner),
        "number": types.is_floating(inner) or types.is_integer(inner) or types.is_null(inner),
    }
    if not fits[column.type]:
        raise refused(f"column {column.name} is {str(data_type)[:40]}: expected a {column.type}")


def _values(column: Column, array: Any, first_row: int, issues: RowIssueCollector) -> NDArray[np.generic]:
    import pyarrow
    from pyarrow import compute, types

    if column.type == "text":
        if types.is_dictionary(array.type):
            longest = compute.max(compute.binary_length(array.dictionary)).as_py() or 0
            if longest > 4 * MAX_TEXT_LENGTH:  # bytes of as many characters, at most
                issues.add(first_row, column.name, "", f"a text of {longest:,} bytes in this row or after")
                return np.full(len(array), "", dtype=np.str_)
        return from_text(column, [value or "" for value in array.to_pylist()], first_row, issues)
    if column.type == "count":
        try:
            whole = array.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        except pyarrow.ArrowInvalid:
            issues.add(first_row, column.name, "", "a whole number of 2^63 or more in this row or after")
            return np.full(len(array), -1, dtype=np.int64)
        return np.asarray(whole, dtype=np.int64)
    numbers = np.array(array.cast(pyarrow.float64(), safe=False).fill_null(np.nan), dtype=np.float64)
    for offset in np.flatnonzero(np.isinf(numbers)).tolist():
        issues.add(first_row + offset, column.name, float(numbers[offset]), "expected a finite number")
        numbers[offset] = np.nan
    return numbers
