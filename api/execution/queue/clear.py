"""Empties the queue of works, for a database whose solves and fits are replaced; the sweep fills it again."""

from pathlib import Path

from sqlalchemy import Connection, column, delete, inspect, table

from api.execution.base import KINDS

_SCHEMA, _TABLE = "dbos", "workflow_status"


def remove_works(connection: Connection, file: Path) -> None:
    """Remove what DBOS knows of our works: from the database of ``connection``, or else the ``file`` next to it.

    It may say of a work that it runs, or has ended, that waits in the store. DBOS must not be running.
    """
    if connection.dialect.name == "sqlite":
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
    elif inspect(connection).has_table(_TABLE, schema=_SCHEMA):
        works = table(_TABLE, column("queue_name"), schema=_SCHEMA)
        connection.execute(delete(works).where(works.c.queue_name.in_(KINDS)))
