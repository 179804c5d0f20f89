"""Traces in Parquet files: columns of whole numbers, or of lists of them; a list is a sample's ids."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from api.cli.errors import BadInput
from api.cli.statistics.traces.base import Piece, TraceOptions, chosen_columns, ids_of
from cost_models.arrays import Ints


def read_parquet(path: Path, samples_per_piece: int, options: TraceOptions) -> Iterator[Piece]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise BadInput(f"{path}: reading Parquet needs pyarrow: pip install 'shardplan[traces]'") from None
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            names = chosen_columns(path, list(file.schema_arrow.names), options.columns)
            for name in names:
                _check_type(path, name, file.schema_arrow.field(name).type)
            total, done = max(file.metadata.num_rows, 1), 0
            for rows in _whole_pieces(file.iter_batches(samples_per_piece, columns=names), samples_per_piece):
                ids = {name: _ids(path, name, rows.column(name), done) for name in names}
                done += rows.num_rows
                yield Piece(num_samples=rows.num_rows, ids=ids, read_fraction=done / total)
    except pyarrow.ArrowException as error:
        raise BadInput(f"{path} is no Parquet file that can be read: {error}") from None


def _whole_pieces(batches: Iterator[Any], samples_per_piece: int) -> Iterator[Any]:
    """Yield tables of as many rows as a piece has, whatever the row groups; the last one shorter."""
    import pyarrow

    waiting: list[Any] = []
    num_waiting = 0
    for batch in batches:
        waiting.append(batch)
        num_waiting += batch.num_rows
        if num_waiting >= samples_per_piece:
            table = pyarrow.Table.from_batches(waiting)
            yield table.slice(0, samples_per_piece)
            waiting = table.slice(samples_per_piece).to_batches()
            num_waiting -= samples_per_piece
    if num_waiting:
        yield pyarrow.Table.from_batches(waiting)


def _check_type(path: Path, name: str, data_type: Any) -> None:
    from pyarrow import types

    inner = data_type.value_type if types.is_list(data_type) or types.is_large_list(data_type) else data_type
    if not types.is_integer(inner):
        raise BadInput(
            f"{path}: column {name} is {data_type}: whole numbers or lists of them are read; choose the columns of ids"
            " with --table COLUMN"
        )


def _ids(path: Path, name: str, column: Any, first_row: int) -> Ints:
    """Return the ids of a column; an empty list, or null instead of a list, is a sample without ids."""
    from pyarrow import types

    parts = []
    for chunk in column.chunks:
        is_list = types.is_list(chunk.type) or types.is_large_list(chunk.type)
        values = chunk.flatten() if is_list else chunk
        if values.null_count:
            raise BadInput(f"{path}: column {name} has an id that is null at or after row {first_row}")
        where = f"{path}: column {name} at or after row {first_row}"
        parts.append(ids_of(where, values.to_numpy(zero_copy_only=False)))
        first_row += len(chunk)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
