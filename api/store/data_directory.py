"""The folder that one server or worker has to itself, and locks of files."""

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
    with locked_file(folder / "server.lock") as is_locked:
        if not is_locked:
            raise DataFolderInUse(
                f"another server works with {folder}: stop it first, or give each its own SHARDPLAN_DATA_DIR"
            )
        yield


def make_private(folder: Path) -> None:
    """Make a folder for its owner alone, if there is none: it will hold specs, and secrets that sign."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def locked_file(path: Path) -> Iterator[bool]:
    """Lock a file for a block; False if another process has it locked."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        is_locked = True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_locked = False
        yield is_locked
    finally:
        os.close(descriptor)
