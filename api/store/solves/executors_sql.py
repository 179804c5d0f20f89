"""Servers and workers in a SQL database."""

from sqlalchemy import Engine, delete, insert, select, update

from api.store.solves.executors import ExecutorRecord
from api.store.sql import tables
from api.store.sql.clock import database_now
from api.store.sql.connections import Writer


class SqlExecutors:
    """Fulfils ``api.store.solves.executors.ExecutorStore`` over connections that read and a writer."""

    _readers: Engine
    _writer: Writer

    def enter_executor(self, executor_id: str, *, life: str, host: str) -> None:
        """Begin a life."""
        table = tables.executors
        with self._writer.begin() as connection:
            now = database_now(connection)
            connection.execute(delete(table).where(table.c.id == executor_id))
            values = {"id": executor_id, "life": life, "host": host}
            connection.execute(insert(table).values(**values, started_at=now, seen_at=now))

    def beat(self, executor_id: str, *, life: str) -> bool:
        """Say that a life goes on."""
        table = tables.executors
        with self._writer.begin() as connection:
            this = update(table).where(table.c.id == executor_id, table.c.life == life)
            return connection.execute(this.values(seen_at=database_now(connection))).rowcount == 1

    def silence_executor(self, executor_id: str, *, life: str) -> None:
        """Make a life look as if it had been silent for long."""
        table = tables.executors
        with self._writer.begin() as connection:
            this = update(table).where(table.c.id == executor_id, table.c.life == life)
            connection.execute(this.values(seen_at=0.0))

    def executors(self) -> list[ExecutorRecord]:
        """Return all that have not been ended."""
        table = tables.executors
        with self._readers.begin() as connection:
            silent = (database_now(connection) - table.c.seen_at).label("silent_seconds")
            query = select(table.c.id, table.c.life, table.c.host, silent).order_by(table.c.id)
            return [ExecutorRecord(**row) for row in connection.execute(query).mappings()]

    def end_executor(self, executor_id: str, *, life: str) -> bool:
        """End a life."""
        table = tables.executors
        with self._writer.begin() as connection:
            return (
                connection.execute(delete(table).where(table.c.id == executor_id, table.c.life == life)).rowcount == 1
            )
