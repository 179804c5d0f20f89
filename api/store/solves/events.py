"""Events of solves: each better plan.

* Events of a solve are numbered from 1, and no number is given twice. A solve has at most ``MAX_EVENTS``; then a new
  event takes the place of the last event, and the next number.
* ``keep_incumbent`` appends its event, and ``finish`` the last event, in their own transactions: who sees a solve ended
  sees all of its events.
"""

from collections.abc import Collection

from sqlalchemy import Connection, func, insert, select, update

from api.store.solves.records import MAX_EVENTS, EventRecord, Json, SolveMark
from api.store.sql import tables
from api.store.sql.repository import Repository

_EVENT = [column for column in tables.solve_events.c if column.name != "solve_id"]


class SolveEvents(Repository):
    """Events of solves of one tenant."""

    def events(self, solve_id: str, *, after: int) -> list[EventRecord]:
        """Return the events of a solve with a number above ``after``, oldest first."""
        log = tables.solve_events
        solves = tables.solves.c
        own = select(1).where(solves.id == solve_id, solves.tenant == self._tenant).exists()
        query = select(*_EVENT).where(log.c.solve_id == solve_id, log.c.seq > after, own).order_by(log.c.seq)
        return self._records(query, EventRecord)


class SolveMarks(Repository):
    """How far solves of all tenants are."""

    def marks(self, solve_ids: Collection[str]) -> dict[str, SolveMark]:
        """Return how far solves are, in one query; those that do not exist are left out."""
        solves, log = tables.solves, tables.solve_events
        last = select(func.max(log.c.seq)).where(log.c.solve_id == solves.c.id).scalar_subquery()
        query = select(solves.c.id, solves.c.state, func.coalesce(last, 0)).where(solves.c.id.in_(solve_ids))
        with self._readers.begin() as connection:
            return {solve: SolveMark(state=state, last_seq=seq) for solve, state, seq in connection.execute(query)}


def append_event(connection: Connection, solve_id: str, progress: Json, *, now: float) -> None:
    """Append what a solve has found, unless it is what the last event says already."""
    log = tables.solve_events
    newest = select(*_EVENT).where(log.c.solve_id == solve_id).order_by(log.c.seq.desc()).limit(1)
    last = connection.execute(newest).mappings().first()
    if last is not None and last["document"] == dict(progress):
        return
    started_at = connection.execute(select(tables.solves.c.started_at).where(tables.solves.c.id == solve_id)).scalar()
    # A clock that was set back must not make a duration negative.
    earlier = 0.0 if last is None else last["at_seconds"]
    at_seconds = earlier if started_at is None else max(earlier, now - started_at)
    values = {"at": now, "at_seconds": at_seconds, "document": dict(progress)}
    if last is None:
        connection.execute(insert(log).values(solve_id=solve_id, seq=1, **values))
        return
    count = connection.execute(select(func.count()).select_from(log).where(log.c.solve_id == solve_id)).scalar_one()
    if count < MAX_EVENTS:
        connection.execute(insert(log).values(solve_id=solve_id, seq=last["seq"] + 1, **values))
        return
    replaced = update(log).where(log.c.solve_id == solve_id, log.c.seq == last["seq"])
    connection.execute(replaced.values(seq=last["seq"] + 1, **values))
