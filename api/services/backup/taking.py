"""Takes a backup of the database, as it was at one moment, while servers write."""

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import Connection

from api.client.plan_file import atomic_file
from api.release import VERSION
from api.services.backup.archive import Manifest, write_archive
from api.settings import Settings
from api.store.database import open_engines
from api.store.migrations.run import WrongSchema, head_revision, revision_of
from api.store.sql import tables


def back_up(settings: Settings, target: Path, *, clock: Callable[[], float] = time.time) -> Manifest:
    """Write all that is stored into a file that its owner alone may read; the whole of it or nothing.

    One transaction that reads sees one moment of the database, and no writer waits for it.

    Raises
    ------
    WrongSchema
        Another release wrote the database; that one backs it up.
    UnusableDatabase, OSError, sqlalchemy.exc.SQLAlchemyError
        The database or the file cannot be used.
    """
    engines = open_engines(settings)
    try:
        with engines.readers.connect() as connection, _one_moment(connection):
            found, head = revision_of(connection), head_revision()
            if found != head:
                raise WrongSchema(
                    f"the database has schema {found or 'none'}, and this version {head}: back it up with the release"
                    " that wrote it, or let a server of this one bring it up to date"
                )
            with atomic_file(target) as file:
                return write_archive(file, connection, tables.metadata, revision=head, release=VERSION, now=clock())
    finally:
        engines.dispose()


@contextlib.contextmanager
def _one_moment(connection: Connection) -> Iterator[None]:
    """Read one moment of the database: in SQLite every transaction does, by the write-ahead log."""
    if connection.dialect.name == "postgresql":
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with connection.begin():
        if connection.dialect.name == "postgresql":
            # While a slow disk takes a batch nothing is asked of the server.
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield
