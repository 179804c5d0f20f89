"""The folder that one server or worker has to itself."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class DataFolderInUse(Exception):
    """Another server or worker works with this folder."""


@contextlib.contextmanager
def exclusive_data_directory(folder: Path) -> Iterator[None]:
    """Own a data folder for as long as the process runs; the lock goes with it. Raises ``DataFolderInUse``."""
    make_private(folder)
    descriptor = os.open(folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def make_private(folder: Path) -> None:
    """Make a folder for its owner alone, where there is none: it will hold specs, and secrets that sign."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def _lock(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataFolderInUse(
            f"another server works with {folder}: stop it first, or give each its own SHARDPLAN_DATA_DIR"
        ) from None
