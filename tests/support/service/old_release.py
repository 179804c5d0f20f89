"""Databases as earlier releases left them."""

from pathlib import Path

from alembic import command

from api.store.migrations.run import _config
from api.store.sql.connections import sqlite_engines


def old_release(path: Path, revision: str) -> None:
    """Make a file that has the tables of a revision, and nothing in them."""
    engines = sqlite_engines(path, busy_timeout_seconds=30.0)
    with engines.writer.begin() as connection:
        command.upgrade(_config(connection), revision)
    engines.dispose()
