"""Deliveries to the webhooks of all tenants.

* A delivery that is taken belongs to its taker until its lease is over. Then it is taken again, as another attempt,
  unless the end of the attempt was reported. A report of an earlier attempt is ignored.
* Leases and times of attempts are counted by the clock of the database, so that the clocks of machines may differ.
"""

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, func, select, update

from api.store.sql import tables
from api.store.sql.clock import database_now
from api.store.sql.repository import Repository
from api.store.webhooks.records import ACTIVE, DELIVERED, DISABLED, FAILED, WAITING, AttemptEnd, TakenDelivery

_HOOKS, _LOG = tables.webhooks, tables.webhook_deliveries


class Deliveries(Repository):
    """Deliveries to the webhooks of all tenants."""

    def take_deliveries(self, *, limit: int, lease_seconds: float, busy: Collection[str] = ()) -> list[TakenDelivery]:
        """Take deliveries that are due, the oldest first: none of ``busy`` webhooks, one of each other."""
        with self._readers.begin() as connection:  # finds nothing most often, and then no writer waits
            if not _due(connection, busy):
                return []
        with self._writer.begin() as connection:
            taken = _due(connection, busy)[:limit]
            until = database_now(connection) + lease_seconds
            for one in taken:
                this = update(_LOG).where(_LOG.c.id == one.id)
                connection.execute(this.values(attempts=one.attempt, due_at=until))
            return taken

    def end_attempt(self, delivery_id: str, *, attempt: int, end: AttemptEnd, max_failed_in_row: int) -> bool:
        """Record how an attempt ended; False if it is not the last one, or the delivery has ended or was deleted.

        A webhook is disabled after ``max_failed_in_row`` deliveries that failed.
        """
        this = update(_LOG).where(_LOG.c.id == delivery_id, _LOG.c.attempts == attempt, _LOG.c.state == WAITING)
        with self._writer.begin() as connection:
            now = database_now(connection)
            when = {"due_at": now + end.retry_seconds} if end.state == WAITING else {"ended_at": now}
            values = {"state": end.state, "status": end.status, "error": end.error}
            if connection.execute(this.values(**values, **when)).rowcount == 0:
                return False
            query = select(_LOG.c.webhook_id).where(_LOG.c.id == delivery_id)
            hook = update(_HOOKS).where(_HOOKS.c.id == query.scalar_subquery())
            if end.state == DELIVERED:
                connection.execute(hook.where(_HOOKS.c.num_failed_in_row > 0).values(num_failed_in_row=0))
            elif end.state == FAILED:
                connection.execute(hook.values(num_failed_in_row=_HOOKS.c.num_failed_in_row + 1))
                too_many = hook.where(_HOOKS.c.num_failed_in_row >= max_failed_in_row, _HOOKS.c.state == ACTIVE)
                connection.execute(too_many.values(state=DISABLED, disabled_reason="too-many-failures"))
            if end.disabled_reason is not None:
                connection.execute(hook.values(state=DISABLED, disabled_reason=end.disabled_reason))
            return True

    def num_waiting_deliveries(self) -> int:
        """Return how many deliveries wait, those of disabled webhooks among them."""
        query = select(func.count()).select_from(_LOG).where(_LOG.c.state == WAITING)
        with self._readers.begin() as connection:
            return connection.execute(query).scalar_one()

    def num_webhooks_by_state(self) -> Mapping[str, int]:
        return self._num_by(_HOOKS.c.state)


def _due(connection: Connection, busy: Collection[str]) -> list[TakenDelivery]:
    """Return the next delivery of each active webhook, the longest due first; each is one search of the index."""
    is_due = (_LOG.c.state == WAITING, _LOG.c.due_at <= database_now(connection))
    of_hook = select(_LOG.c.id).where(_LOG.c.webhook_id == _HOOKS.c.id, *is_due).order_by(_LOG.c.due_at, _LOG.c.id)
    first = of_hook.limit(1).correlate(_HOOKS).scalar_subquery()
    firsts = select(first).where(_HOOKS.c.state == ACTIVE, _HOOKS.c.id.not_in(busy))
    joined = _LOG.join(_HOOKS, _LOG.c.webhook_id == _HOOKS.c.id)
    of_delivery = (_LOG.c.id, (_LOG.c.attempts + 1).label("attempt"), _LOG.c.body, _LOG.c.webhook_id)
    query = select(*of_delivery, _HOOKS.c.tenant, _HOOKS.c.url, _HOOKS.c.secret).select_from(joined)
    query = query.where(_LOG.c.id.in_(firsts)).order_by(_LOG.c.due_at, _LOG.c.id)
    return [TakenDelivery(**row) for row in connection.execute(query).mappings()]
