"""Which reader reads which file."""

from collections.abc import Generator
from pathlib import Path

from api.cli.statistics.traces.base import Piece, Reader, UnreadableTrace
from api.cli.statistics.traces.csv import read_csv
from api.cli.statistics.traces.npz import read_npz
from api.cli.statistics.traces.parquet import read_parquet

READERS: dict[str, Reader] = {".parquet": read_parquet, ".npz": read_npz, ".csv": read_csv}


def read_trace(
    path: Path, samples_per_piece: int, columns: tuple[str, ...] | None = None
) -> Generator[Piece, None, None]:
    """Yield the pieces of a trace, which is told by the end of its name; raises ``UnreadableTrace``."""
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise UnreadableTrace(f"{path}: traces end in {', '.join(READERS)}")
    try:
        yield from reader(path, samples_per_piece, columns)
    except OSError as error:
        raise UnreadableTrace(f"cannot read {path}: {error.strerror or error}") from None
