"""Events of solves in a database."""

from collections.abc import Collection

from sqlalchemy import Connection, Engine, func, insert, select, update

from api.store.solves.events import MAX_EVENTS, EventRecord, Json, SolveMark
from api.store.sql import tables

_EVENT = [column for column in tables.solve_events.c if column.name != "solve_id"]


class SolveEvents:
    """Fulfils the protocols of ``api.store.solves.events`` over an engine that reads."""

    _readers: Engine
    _tenant: str

    def events(self, solve_id: str, *, after: int) -> list[EventRecord]:
        """Return the events of a solve with a number above ``after``."""
        log = tables.solve_events
        solves = tables.solves.c
        own = select(1).where(solves.id == solve_id, solves.tenant == self._tenant).exists()
        query = select(*_EVENT).where(log.c.solve_id == solve_id, log.c.seq > after, own).order_by(log.c.seq)
        with self._readers.begin() as connection:
            return [EventRecord(**row) for row in connection.execute(query).mappings()]

    def marks(self, solve_ids: Collection[str]) -> dict[str, SolveMark]:
        """Return how far solves are."""
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
