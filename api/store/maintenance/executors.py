"""The processes that run solves and fits.

* Ages are counted by the clock of the database, so that the clocks of machines may differ.
* ``beat`` succeeds only for the life that has the id: a process that was taken for lost, and whose id another process
  has taken since, learns of it here.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, delete, insert, select, update

from api.store.sql import tables
from api.store.sql.clock import database_now
from api.store.sql.repository import Repository

_EXECUTORS = tables.executors


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorRecord:
    """A server or worker, as it was last seen."""

    id: str
    life: str  # differs for every start of a process
    host: str  # name of its machine, for people
    silent_seconds: float  # since it was last seen


class Executors(Repository):
    """Servers and workers that share a database."""

    def enter_executor(self, executor_id: str, *, life: str, host: str) -> None:
        """Begin a life, in place of an earlier one of this id."""
        with self._writer.begin() as connection:
            now = database_now(connection)
            connection.execute(delete(_EXECUTORS).where(_EXECUTORS.c.id == executor_id))
            values = {"id": executor_id, "life": life, "host": host}
            connection.execute(insert(_EXECUTORS).values(**values, started_at=now, seen_at=now))

    def beat(self, executor_id: str, *, life: str) -> bool:
        """Record that a life goes on; False if it has been ended, or another life has the id."""
        with self._writer.begin() as connection:
            this = update(_EXECUTORS).where(_is_life(executor_id, life))
            return connection.execute(this.values(seen_at=database_now(connection))).rowcount == 1

    def silence_executor(self, executor_id: str, *, life: str) -> None:
        """Make a life look as if it had been silent for long, so that others take over what it left."""
        with self._writer.begin() as connection:
            connection.execute(update(_EXECUTORS).where(_is_life(executor_id, life)).values(seen_at=0.0))

    def executors(self) -> list[ExecutorRecord]:
        """Return all that have not been ended, by id."""
        executors = _EXECUTORS.c
        with self._readers.begin() as connection:
            silent = (database_now(connection) - executors.seen_at).label("silent_seconds")
            query = select(executors.id, executors.life, executors.host, silent).order_by(executors.id)
            return [ExecutorRecord(**row) for row in connection.execute(query).mappings()]

    def end_executor(self, executor_id: str, *, life: str) -> bool:
        """End a life; False if it has been ended, or another life has the id."""
        with self._writer.begin() as connection:
            return connection.execute(delete(_EXECUTORS).where(_is_life(executor_id, life))).rowcount == 1


def _is_life(executor_id: str, life: str) -> ColumnElement[bool]:
    return (_EXECUTORS.c.id == executor_id) & (_EXECUTORS.c.life == life)
