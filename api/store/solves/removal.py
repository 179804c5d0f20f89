"""Deletes solves that have ended, and no plan with them. With a solve go its events, its tags and the keys of its
requests; plans stay, and with them the specs that they were made for.
"""

from sqlalchemy import Connection, delete, select, update

from api.store.solves.records import ENDED
from api.store.sql import tables
from api.store.sql.repository import Repository


class SolveRemoval(Repository):
    """Deletes solves of one tenant."""

    def delete_solve(self, solve_id: str) -> str | None:
        """Delete a solve that has ended, and return its state; one in another state stays. ``None``: there is none."""
        solves = tables.solves
        with self._writer.begin() as connection:
            this = (solves.c.id == solve_id) & (solves.c.tenant == self._tenant)
            found = connection.execute(select(solves.c.state, solves.c.request_digest).where(this)).first()
            if found is None:
                return None
            if found.state in ENDED:
                remove_solve(connection, solve_id, found.request_digest)
            return str(found.state)


def remove_solve(connection: Connection, solve_id: str, request_digest: str) -> None:
    """Delete a solve that has ended, and all that is of it alone."""
    for parts in (tables.solve_events, tables.solve_requests, tables.solve_tags):
        connection.execute(delete(parts).where(parts.c.solve_id == solve_id))
    connection.execute(delete(tables.request_keys).where(tables.request_keys.c.resource == solve_id))
    summaries = tables.plan_summaries
    connection.execute(update(summaries).where(summaries.c.solve_id == solve_id).values(solve_id=None))
    connection.execute(delete(tables.solves).where(tables.solves.c.id == solve_id))
    remove_orphaned_spec(connection, request_digest)


def remove_orphaned_spec(connection: Connection, request_digest: str) -> None:
    """Delete a spec that no solve has any more, and no plan was made for: of whatever tenant, for all share it."""
    for owners in (tables.solves, tables.plan_summaries):
        if connection.execute(select(1).where(owners.c.request_digest == request_digest).limit(1)).first() is not None:
            return
    connection.execute(delete(tables.specs).where(tables.specs.c.request_digest == request_digest))
