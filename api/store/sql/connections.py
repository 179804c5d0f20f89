"""Connections to the database: one SQLite file, or PostgreSQL. Readers run in parallel, writers one after another.

Writers take turns on either database, so that what a race may do on one it may do on the other. Every write is
short (a few milliseconds, most of it waiting for the disk), and nothing else is done while one is open.
"""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import ArgumentError

_SWITCH_RETRY_SECONDS = 0.01
#: The advisory lock that writers of one PostgreSQL database take in turn.
_WRITER_LOCK = 0x7368617264706C61
#: A session that is lost in the middle of a write must not block the others.
_MAX_IDLE_IN_WRITE_SECONDS = 15
#: A host that vanishes does not even refuse: by default, the kernel takes a quarter of an hour to give up.
_LOST_HOST = {
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class UnusableDatabase(ValueError):
    """The address of a database cannot be used; the message is for people."""


@dataclass(frozen=True, slots=True)
class Writer:
    """Begins the transactions that write, one at a time."""

    engine: Engine

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """Yield the only connection that writes; what was done is durable after the block, or undone."""
        with self.engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _WRITER_LOCK})
            yield connection


@dataclass(frozen=True, slots=True)
class Engines:
    """How a database is read and written."""

    readers: Engine
    writer: Writer
    name: str  # in messages

    def dispose(self) -> None:
        self.readers.dispose()
        self.writer.engine.dispose()


def sqlite_engines(path: Path, *, busy_timeout_seconds: float) -> Engines:
    """Return connections to a file on a local disk: write-ahead log, every commit on the disk."""
    return Engines(
        readers=_sqlite(path, busy_timeout_seconds, begin="BEGIN", pool_size=8, max_overflow=32),
        writer=Writer(_sqlite(path, busy_timeout_seconds, begin="BEGIN IMMEDIATE", pool_size=1, max_overflow=0)),
        name=str(path),
    )


def postgres_engines(url: str, *, busy_timeout_seconds: float) -> Engines:
    """Return connections to a PostgreSQL database.

    Raises
    ------
    UnusableDatabase
        The address is not one of a PostgreSQL database.
    """
    engine = create_engine(
        postgres_url(url),
        hide_parameters=True,  # messages of errors are logged
        pool_size=8,
        max_overflow=32,
        pool_timeout=busy_timeout_seconds,
        # The server may have been restarted since a connection was last used.
        pool_pre_ping=True,
        connect_args={
            "connect_timeout": max(2, int(busy_timeout_seconds)),
            "application_name": "shardplan",
            "options": f"-c lock_timeout={int(busy_timeout_seconds * 1000)}"
            f" -c idle_in_transaction_session_timeout={_MAX_IDLE_IN_WRITE_SECONDS * 1000}",
        },
    )
    return Engines(readers=engine, writer=Writer(engine), name="the database")


def postgres_url(url: str) -> str:
    """Return an address with the installed driver, whose connections notice soon that the host is lost.

    Raises
    ------
    UnusableDatabase
        This is no address of a PostgreSQL database.
    """
    form = "write it like postgresql://user:password@host:5432/database"
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise UnusableDatabase(f"the database URL cannot be read; {form}") from None
    if parsed.drivername not in ("postgresql", "postgres", "postgresql+psycopg") or not parsed.database:
        raise UnusableDatabase(f"the database URL is not one of a PostgreSQL database; {form}")
    ours = {name: value for name, value in _LOST_HOST.items() if name not in parsed.query}
    return parsed.set(drivername="postgresql+psycopg").update_query_dict(ours).render_as_string(hide_password=False)


def _sqlite(path: Path, busy_timeout_seconds: float, *, begin: str, pool_size: int, max_overflow: int) -> Engine:
    engine = create_engine(
        f"sqlite:///{path}",
        hide_parameters=True,
        pool_size=pool_size,
        max_overflow=max_overflow,
        pool_timeout=busy_timeout_seconds,
        connect_args={"timeout": busy_timeout_seconds, "check_same_thread": False},
    )

    def on_connect(connection: DBAPIConnection, _record: object) -> None:
        # The driver must not begin transactions by itself: "begin" below does.
        connection.isolation_level = None
        make_durable(connection, busy_timeout_seconds)

    def on_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", on_connect)
    event.listen(engine, "begin", on_begin)
    return engine


def make_durable(connection: DBAPIConnection, busy_timeout_seconds: float) -> None:
    """Have a new connection to a SQLite file commit to the disk, by the write-ahead log, and check references."""
    cursor = connection.cursor()
    _write_ahead(cursor, busy_timeout_seconds)
    for pragma in ("synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _write_ahead(cursor: DBAPICursor, busy_timeout_seconds: float) -> None:
    """Switch a file to the write-ahead log, while other connections do so, too.

    SQLite answers "locked" at once, without the busy timeout, to a connection that meets another one in the middle of
    the switch.
    """
    deadline = time.monotonic() + busy_timeout_seconds
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(_SWITCH_RETRY_SECONDS)
        else:
            return
