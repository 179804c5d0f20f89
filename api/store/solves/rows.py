"""Rows of solves: priority, deadline and tags stand in tables of their own."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, case, insert, select

from api.store.solves.records import SolveRecord
from api.store.sql import tables
from api.store.webhooks.webhooks import notify_webhooks

_REQUESTS, _TAGS = tables.solve_requests, tables.solve_tags


#: What lists show: everything but the long columns.
LISTED_COLUMNS = [column for column in tables.solves.c if column.name not in ("incumbent", "assumptions", "warnings")]


def insert_request(
    connection: Connection, solve_id: str, *, priority: int, deadline_at: float | None, tags: Sequence[str]
) -> None:
    """Keep what is asked of a new solve."""
    if priority or deadline_at is not None:
        values = {"solve_id": solve_id, "priority": priority, "deadline_at": deadline_at}
        connection.execute(insert(_REQUESTS).values(values))
    if tags:
        connection.execute(insert(_TAGS), [{"solve_id": solve_id, "tag": tag} for tag in sorted(set(tags))])


def requests_of(connection: Connection, solve_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return ``priority``, ``deadline_at`` and ``tags`` of solves."""
    found: dict[str, dict[str, Any]] = {
        solve_id: {"priority": 0, "deadline_at": None, "tags": ()} for solve_id in solve_ids
    }
    for row in connection.execute(select(_REQUESTS).where(_REQUESTS.c.solve_id.in_(solve_ids))):
        found[row.solve_id] |= {"priority": row.priority, "deadline_at": row.deadline_at}
    tagged = select(_TAGS).where(_TAGS.c.solve_id.in_(solve_ids)).order_by(_TAGS.c.solve_id, _TAGS.c.tag)
    for row in connection.execute(tagged):
        found[row.solve_id]["tags"] += (row.tag,)
    return found


def tagged_with(tag: str) -> Select[Any]:
    """Return the query of the ids of solves that have a tag."""
    return select(_TAGS.c.solve_id).where(_TAGS.c.tag == tag)


def listed_solves(connection: Connection, query: "Select[Any]") -> list[SolveRecord]:
    rows = connection.execute(query).mappings().all()
    requests = requests_of(connection, [row["id"] for row in rows])
    return [_solve(row, requests[row["id"]]) for row in rows]


def find_solve(connection: Connection, solve_id: str, *, tenant: str | None = None) -> SolveRecord | None:
    """Return a solve, of one tenant where that is named: another one's takes as long as one that is not there."""
    columns = [column for column in tables.solves.c if column.name != "incumbent"]
    query = select(*columns).where(tables.solves.c.id == solve_id)
    if tenant is not None:
        query = query.where(tables.solves.c.tenant == tenant)
    row = connection.execute(query).mappings().first()
    return None if row is None else _solve(row, requests_of(connection, [solve_id])[solve_id])


def require_solve(connection: Connection, solve_id: str) -> SolveRecord:
    found = find_solve(connection, solve_id)
    assert found is not None
    return found


def no_earlier(than: ColumnElement[float], now: float) -> ColumnElement[float]:
    """Return the time now, or a time that was written before the clock was set back: no duration is negative."""
    return case((than > now, than), else_=now)


def notify_of_end(connection: Connection, solve_id: str, state: str, plan_digest: str | None, *, now: float) -> None:
    tenant = connection.execute(select(tables.solves.c.tenant).where(tables.solves.c.id == solve_id)).scalar_one()
    data = {"solve_id": solve_id, "state": state, "plan_digest": plan_digest}
    notify_webhooks(connection, tenant, f"solve.{state}", data, now=now)


def _solve(row: RowMapping, request: Mapping[str, Any]) -> SolveRecord:
    values: Mapping[str, Any] = {key: value for key, value in row.items() if key != "incumbent"}
    return SolveRecord(**values, **request)
