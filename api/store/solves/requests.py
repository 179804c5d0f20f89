"""What a request says of a solve beside its spec, in a database: priority, deadline and tags."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, insert, select

from api.store.sql import tables

_REQUESTS, _TAGS = tables.solve_requests, tables.solve_tags


def keep_request(
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
