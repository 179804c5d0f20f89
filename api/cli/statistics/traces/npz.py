"""Traces in NPZ archives: one array for each column, shape (samples,) or (samples, ids), of whole numbers.

Arrays are read from the archive as a stream, each from its own place, so that none is in memory whole.
"""

import contextlib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from api.cli.errors import BadInput
from api.cli.statistics.traces.base import Piece, TraceOptions, chosen_columns, ids_of
from cost_models.arrays import Ints

_SUFFIX = ".npy"
_MAX_IDS_OF_SAMPLE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """An array that is being read."""

    stream: IO[bytes]
    data_type: np.dtype[np.generic]
    num_samples: int
    ids_per_sample: int

    def read(self, path: Path, name: str, first_sample: int, num_samples: int) -> Ints:
        """Return the ids of the next samples, of which ``first_sample`` is the first."""
        wanted = num_samples * self.ids_per_sample * self.data_type.itemsize
        content = self.stream.read(wanted)
        if len(content) != wanted:
            raise BadInput(f"{path}: the array {name} ends early")
        where = f"{path}: the array {name} at or after sample {first_sample}"
        return ids_of(where, np.frombuffer(content, dtype=self.data_type))


def read_npz(path: Path, samples_per_piece: int, options: TraceOptions) -> Iterator[Piece]:
    try:
        with zipfile.ZipFile(path) as archive, contextlib.ExitStack() as stack:
            there = [name.removesuffix(_SUFFIX) for name in archive.namelist() if name.endswith(_SUFFIX)]
            names = chosen_columns(path, there, options.columns)
            opened = {name: _column(path, name, stack.enter_context(archive.open(name + _SUFFIX))) for name in names}
            num_samples = {name: column.num_samples for name, column in opened.items()}
            if len(set(num_samples.values())) > 1:
                counts = ", ".join(f"{name} {count:,}" for name, count in list(num_samples.items())[:5])
                raise BadInput(f"{path}: arrays of different numbers of samples: {counts}")
            total = next(iter(num_samples.values()), 0)
            for start in range(0, total, samples_per_piece):
                count = min(samples_per_piece, total - start)
                ids = {name: column.read(path, name, start, count) for name, column in opened.items()}
                yield Piece(num_samples=count, ids=ids, read_fraction=(start + count) / total)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise BadInput(f"{path} is no NPZ archive that can be read: {error}") from None


def _column(path: Path, name: str, stream: IO[bytes]) -> _Column:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, in_columns, data_type = read(stream)
    except ValueError as error:
        raise BadInput(f"{path}: {name} is no array: {error}") from None
    if data_type.kind not in "iu" or len(shape) not in (1, 2) or (in_columns and len(shape) == 2):
        raise BadInput(
            f"{path}: {name} is {data_type} of shape {shape}: whole numbers of shape (samples,) or (samples, ids) in C "
            "order are read; choose the columns of ids with --table COLUMN"
        )
    ids_per_sample = shape[1] if len(shape) == 2 else 1
    if ids_per_sample > _MAX_IDS_OF_SAMPLE:
        raise BadInput(f"{path}: {name} has {ids_per_sample:,} ids in each sample; {_MAX_IDS_OF_SAMPLE:,} at most")
    return _Column(stream=stream, data_type=data_type, num_samples=shape[0], ids_per_sample=ids_per_sample)
