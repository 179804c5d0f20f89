"""Servers and workers in a SQL database."""

from sqlalchemy import ColumnElement, Connection, Engine, Float, delete, insert, literal_column, select, update

from api.store import tables
from api.store.engines import Writer
from api.store.executors import ExecutorRecord

#: Seconds since the epoch by the clock of the database, not of the transaction's begin.
_CLOCKS = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgresql": "extract(epoch from clock_timestamp())",
}


class SqlExecutors:
    """Fulfils ``api.store.executors.ExecutorStore`` over connections that read and a writer."""

    _readers: Engine
    _writer: Writer

    def enter_executor(self, executor_id: str, *, life: str, host: str) -> None:
        """Begin a life."""
        table = tables.executors
        with self._writer.begin() as connection:
            now = database_clock(connection)
            connection.execute(delete(table).where(table.c.id == executor_id))
            values = {"id": executor_id, "life": life, "host": host}
            connection.execute(insert(table).values(**values, started_at=now, seen_at=now))

    def beat(self, executor_id: str, *, life: str) -> bool:
        """Say that a life goes on."""
        table = tables.executors
        with self._writer.begin() as connection:
            this = update(table).where(table.c.id == executor_id, table.c.life == life)
            return connection.execute(this.values(seen_at=database_clock(connection))).rowcount == 1

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
            silent = (database_clock(connection) - table.c.seen_at).label("silent_seconds")
            query = select(table.c.id, table.c.life, table.c.host, silent).order_by(table.c.id)
            return [ExecutorRecord(**row) for row in connection.execute(query).mappings()]

    def end_executor(self, executor_id: str, *, life: str) -> bool:
        """End a life."""
        table = tables.executors
        with self._writer.begin() as connection:
            return (
                connection.execute(delete(table).where(table.c.id == executor_id, table.c.life == life)).rowcount == 1
            )


def database_clock(connection: Connection) -> ColumnElement[float]:
    """Return what reads the clock of a database, in seconds since the epoch."""
    return literal_column(_CLOCKS[connection.dialect.name], Float())
