"""Rows of solves. Priority, deadline and tags are in tables of their own."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, delete, insert, select, update

from api.store.solves.records import NewSolve, SolveRecord
from api.store.sql import tables
from api.store.webhooks.webhooks import notify_webhooks

_REQUESTS, _TAGS = tables.solve_requests, tables.solve_tags
_COLUMNS = [column for column in tables.solves.c if column.name != "incumbent"]
#: Columns of lists: all but the long ones.
LISTED_COLUMNS = [column for column in _COLUMNS if column.name not in ("assumptions", "warnings")]


def insert_options(connection: Connection, new: NewSolve) -> None:
    if new.priority or new.deadline_at is not None:
        values = {"solve_id": new.id, "priority": new.priority, "deadline_at": new.deadline_at}
        connection.execute(insert(_REQUESTS).values(values))
    if new.tags:
        connection.execute(insert(_TAGS), [{"solve_id": new.id, "tag": tag} for tag in sorted(set(new.tags))])


def read_solves(connection: Connection, query: Select[Any]) -> list[SolveRecord]:
    """Return the solves of a query of ``LISTED_COLUMNS``."""
    rows = connection.execute(query).mappings().all()
    options = _options_of(connection, [row["id"] for row in rows])
    return [SolveRecord(**row, **options[row["id"]]) for row in rows]


def find_solve(connection: Connection, solve_id: str, *, tenant: str | None = None) -> SolveRecord | None:
    """Return a solve, of one tenant if it is named: that of another tenant takes as long as one that does not exist."""
    query = select(*_COLUMNS).where(tables.solves.c.id == solve_id)
    if tenant is not None:
        query = query.where(tables.solves.c.tenant == tenant)
    row = connection.execute(query).mappings().first()
    return None if row is None else SolveRecord(**row, **_options_of(connection, [solve_id])[solve_id])


def get_solve(connection: Connection, solve_id: str) -> SolveRecord:
    found = find_solve(connection, solve_id)
    assert found is not None
    return found


def no_earlier(than: ColumnElement[float], now: float) -> ColumnElement[float]:
    """Return the time now, or a time that was written before the clock was set back: no duration is negative."""
    return case((than > now, than), else_=now)


def notify_of_end(
    connection: Connection, tenant: str, solve_id: str, state: str, plan_digest: str | None, *, now: float
) -> None:
    data = {"solve_id": solve_id, "state": state, "plan_digest": plan_digest}
    notify_webhooks(connection, tenant, f"solve.{state}", data, now=now)


def remove_solve(connection: Connection, solve_id: str, request_digest: str) -> None:
    """Delete a solve that has ended, with its events, its tags and the keys of its requests; its plan remains."""
    for parts in (tables.solve_events, tables.solve_requests, tables.solve_tags):
        connection.execute(delete(parts).where(parts.c.solve_id == solve_id))
    connection.execute(delete(tables.request_keys).where(tables.request_keys.c.resource == solve_id))
    summaries = tables.plan_summaries
    connection.execute(update(summaries).where(summaries.c.solve_id == solve_id).values(solve_id=None))
    connection.execute(delete(tables.solves).where(tables.solves.c.id == solve_id))
    remove_orphaned_spec(connection, request_digest)


def remove_orphaned_spec(connection: Connection, request_digest: str) -> None:
    """Delete a spec that no solve and no plan of any tenant has."""
    for owners in (tables.solves, tables.plan_summaries):
        if connection.execute(select(1).where(owners.c.request_digest == request_digest).limit(1)).first() is not None:
            return
    connection.execute(delete(tables.specs).where(tables.specs.c.request_digest == request_digest))


def _options_of(connection: Connection, solve_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return ``priority``, ``deadline_at`` and ``tags`` of solves."""
    found: dict[str, dict[str, Any]] = {
        solve_id: {"priority": 0, "deadline_at": None, "tags": ()} for solve_id in solve_ids
    }
    for row in connection.execute(select(_REQUESTS).where(_REQUESTS.c.solve_id.in_(solve_ids))):
        found[row.solve_id] |= {"priority": row.priority, "deadline_at": row.deadline_at}
    tags = select(_TAGS).where(_TAGS.c.solve_id.in_(solve_ids)).order_by(_TAGS.c.solve_id, _TAGS.c.tag)
    for row in connection.execute(tags):
        found[row.solve_id]["tags"] += (row.tag,)
    return found
