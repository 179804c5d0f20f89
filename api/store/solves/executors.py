"""The processes that run solves and fits.

* Ages are counted by the clock of the database, so that the clocks of machines may differ.
* ``beat`` succeeds only for the life that has the id: a process that was taken for dead, and whose id another process
  has taken since, learns of it here.
"""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from api.store.sql import tables
from api.store.sql.clock import database_now
from api.store.sql.repository import Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRecord:
    """A server or worker, as it was last seen."""

    id: str
    life: str  # differs for every start of a process
    host: str  # name of its machine, for people
    silent_seconds: float  # since it was last seen


class Executors(Repository):
    """Servers and workers on one database."""

    def enter_executor(self, executor_id: str, *, life: str, host: str) -> None:
        """Begin a life, in place of an earlier one of this id."""
        table = tables.executors
        with self._writer.begin() as connection:
            now = database_now(connection)
            connection.execute(delete(table).where(table.c.id == executor_id))
            values = {"id": executor_id, "life": life, "host": host}
            connection.execute(insert(table).values(**values, started_at=now, seen_at=now))

    def beat(self, executor_id: str, *, life: str) -> bool:
        """Say that a life goes on; False where it has been ended, or another life has the id."""
        table = tables.executors
        with self._writer.begin() as connection:
            this = update(table).where(table.c.id == executor_id, table.c.life == life)
            return connection.execute(this.values(seen_at=database_now(connection))).rowcount == 1

    def silence_executor(self, executor_id: str, *, life: str) -> None:
        """Make a life look as if it had been silent for long, so that others take over what it left."""
        table = tables.executors
        with self._writer.begin() as connection:
            this = update(table).where(table.c.id == executor_id, table.c.life == life)
            connection.execute(this.values(seen_at=0.0))

    def executors(self) -> list[ExecutorRecord]:
        """Return all that have not been ended, by id."""
        table = tables.executors
        with self._readers.begin() as connection:
            silent = (database_now(connection) - table.c.seen_at).label("silent_seconds")
            query = select(table.c.id, table.c.life, table.c.host, silent).order_by(table.c.id)
            return [ExecutorRecord(**row) for row in connection.execute(query).mappings()]

    def end_executor(self, executor_id: str, *, life: str) -> bool:
        """End a life; False where somebody else did, or another life has the id."""
        table = tables.executors
        with self._writer.begin() as connection:
            return (
                connection.execute(delete(table).where(table.c.id == executor_id, table.c.life == life)).rowcount == 1
            )
