"""Which reader reads which file."""

from collections.abc import Generator
from pathlib import Path

from api.cli.errors import BadInput, system_errors
from api.cli.statistics.traces.base import ALL_COLUMNS, Piece, Reader, TraceOptions
from api.cli.statistics.traces.csv import read_csv
from api.cli.statistics.traces.npz import read_npz
from api.cli.statistics.traces.parquet import read_parquet

READERS: dict[str, Reader] = {".parquet": read_parquet, ".npz": read_npz, ".csv": read_csv}


def read_trace(path: Path, samples_per_piece: int, options: TraceOptions = ALL_COLUMNS) -> Generator[Piece, None, None]:
    """Yield the pieces of a trace, whose form the end of its name says; raises ``BadInput``."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise BadInput(f"{path}: traces end in {', '.join(READERS)}")
    with system_errors(f"cannot read {path}"):
        yield from map(options.without_padding, reader(path, samples_per_piece, options))
