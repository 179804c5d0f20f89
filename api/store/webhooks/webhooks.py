"""Webhooks of one tenant, and their deliveries.

* A delivery is written in the transaction of the end of a solve, or of the change of a channel, that it reports: either
  both exist, or neither. A webhook receives what happens in its tenant alone.
* Each webhook has at most ``MAX_DELIVERIES`` deliveries. A new delivery takes the place of the oldest delivery that has
  ended. If all wait, it takes the place of the oldest delivery that waits, which ``num_dropped`` counts.
* A secret is stored as it is, because it signs. Adding, deleting and enabling are in the audit trail, without it.
"""

import json
import secrets
from dataclasses import asdict
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from api.store.access.audit import CREATE_WEBHOOK, DELETE_WEBHOOK, ENABLE_WEBHOOK, Actor, Json, append_audit
from api.store.sql import tables
from api.store.sql.clock import database_now
from api.store.sql.repository import Repository
from api.store.timestamps import moment
from api.store.webhooks.records import (
    ACTIVE,
    DISABLED,
    MAX_DELIVERIES,
    MAX_WEBHOOKS,
    WAITING,
    DeliveryRecord,
    TooManyWebhooks,
    WebhookRecord,
)

_HOOKS, _LOG = tables.webhooks, tables.webhook_deliveries
_HOOK = [column for column in _HOOKS.c if column.name != "tenant"]


class Webhooks(Repository):
    """Webhooks of one tenant, and their deliveries."""

    def add_webhook(self, record: WebhookRecord, *, by: Actor) -> None:
        """Keep a new webhook. Raises ``TooManyWebhooks``."""
        with self._writer.begin() as connection:
            of_tenant = select(func.count()).select_from(_HOOKS).where(_HOOKS.c.tenant == self._tenant)
            if connection.execute(of_tenant).scalar_one() >= MAX_WEBHOOKS:
                raise TooManyWebhooks
            values = {**asdict(record), "events": list(record.events), "tenant": self._tenant}
            connection.execute(insert(_HOOKS).values(values))
            entry = {"before": None, "after": _audit_entry(record)}
            append_audit(connection, self._tenant, by, CREATE_WEBHOOK, _subject(record), **entry, now=record.created_at)

    def webhook(self, webhook_id: str) -> WebhookRecord | None:
        """Return a webhook."""
        with self._readers.begin() as connection:
            return _find(connection, self._tenant, webhook_id)

    def webhooks(self) -> list[WebhookRecord]:
        """Return all webhooks, oldest first."""
        with self._readers.begin() as connection:
            query = select(*_HOOK).where(_HOOKS.c.tenant == self._tenant).order_by(_HOOKS.c.created_at, _HOOKS.c.id)
            rows = connection.execute(query).mappings()
            return [WebhookRecord(**row) for row in rows]

    def delete_webhook(self, webhook_id: str, *, by: Actor, now: float) -> bool:
        """Delete a webhook and its deliveries; False where there is none."""
        with self._writer.begin() as connection:
            before = _find(connection, self._tenant, webhook_id)
            if before is None:
                return False
            connection.execute(delete(_LOG).where(_LOG.c.webhook_id == webhook_id))
            connection.execute(delete(_HOOKS).where(_HOOKS.c.id == webhook_id))
            entry = {"before": _audit_entry(before), "after": None}
            append_audit(connection, self._tenant, by, DELETE_WEBHOOK, _subject(before), **entry, now=now)
            return True

    def enable_webhook(self, webhook_id: str, *, by: Actor, now: float) -> WebhookRecord | None:
        """Have a webhook told again, at once what waits; return it, ``None`` where there is none."""
        with self._writer.begin() as connection:
            before = _find(connection, self._tenant, webhook_id)
            this = update(_HOOKS).where(_HOOKS.c.id == webhook_id, _HOOKS.c.state == DISABLED)
            values = {"state": ACTIVE, "disabled_reason": None, "num_failed_in_row": 0}
            if before is None or connection.execute(this.values(**values)).rowcount == 0:
                return before
            waiting = update(_LOG).where(_LOG.c.webhook_id == webhook_id, _LOG.c.state == WAITING)
            connection.execute(waiting.values(due_at=database_now(connection)))
            after = _find(connection, self._tenant, webhook_id)
            assert after is not None
            entry = {"before": _audit_entry(before), "after": _audit_entry(after)}
            append_audit(connection, self._tenant, by, ENABLE_WEBHOOK, _subject(after), **entry, now=now)
            return after

    def deliveries(self, webhook_id: str, *, limit: int, before: str | None) -> list[DeliveryRecord]:
        """Return deliveries of a webhook, newest first, those with an id below ``before``."""
        query = select(_LOG).where(self._is_for(webhook_id)).order_by(_LOG.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(_LOG.c.id < before)
        return self._records(query, DeliveryRecord)

    def resend(self, webhook_id: str, delivery_id: str) -> DeliveryRecord | None:
        """Have a delivery that has ended attempted anew; return it, waiting or not, ``None`` where there is none."""
        with self._writer.begin() as connection:
            this = (_LOG.c.id == delivery_id, self._is_for(webhook_id))
            values = {"state": WAITING, "attempts": 0, "ended_at": None, "due_at": database_now(connection)}
            connection.execute(update(_LOG).where(*this, _LOG.c.state != WAITING).values(**values))
            row = connection.execute(select(_LOG).where(*this)).mappings().first()
            return None if row is None else DeliveryRecord(**row)

    def _is_for(self, webhook_id: str) -> ColumnElement[bool]:
        """Whether a delivery is to a webhook, and that one of this tenant."""
        own = select(_HOOKS.c.id).where(_HOOKS.c.id == webhook_id, _HOOKS.c.tenant == self._tenant)
        return _LOG.c.webhook_id.in_(own)


def notify_webhooks(connection: Connection, tenant: str, event: str, data: Json, *, now: float) -> None:
    """Have a tenant's active webhooks of an event told, as a part of the transaction of what happened."""
    are_active = (_HOOKS.c.tenant == tenant) & (_HOOKS.c.state == ACTIVE)
    rows = connection.execute(select(_HOOKS.c.id, _HOOKS.c.events).where(are_active))
    told = [webhook_id for webhook_id, events in rows if event in events]
    if not told:
        return
    body = json.dumps({"type": event, "timestamp": moment(now).isoformat(), "data": data})
    count = select(_LOG.c.webhook_id, func.count()).where(_LOG.c.webhook_id.in_(told)).group_by(_LOG.c.webhook_id)
    numbers = {webhook_id: number for webhook_id, number in connection.execute(count)}
    for webhook_id in told:
        if numbers.get(webhook_id, 0) >= MAX_DELIVERIES:
            _make_room(connection, webhook_id)
        _enqueue(connection, webhook_id, event, body, now=now)


def _enqueue(connection: Connection, webhook_id: str, event: str, body: str, *, now: float) -> None:
    values = {"webhook_id": webhook_id, "event": event, "body": body, "created_at": now}
    delivery_id = f"msg_{int(now * 1000):012x}{secrets.token_hex(8)}"
    due = {"state": WAITING, "attempts": 0, "due_at": database_now(connection)}
    connection.execute(insert(_LOG).values(id=delivery_id, **values, **due))


def _make_room(connection: Connection, webhook_id: str) -> None:
    """Delete the oldest delivery that has ended, else the oldest that waits."""
    of_webhook = _LOG.c.webhook_id == webhook_id
    ended_first = (_LOG.c.state == WAITING, _LOG.c.id)
    oldest = select(_LOG.c.id, _LOG.c.state).where(of_webhook).order_by(*ended_first).limit(1)
    delivery_id, state = connection.execute(oldest).one()
    connection.execute(delete(_LOG).where(_LOG.c.id == delivery_id))
    if state == WAITING:
        hook = update(_HOOKS).where(_HOOKS.c.id == webhook_id)
        connection.execute(hook.values(num_dropped=_HOOKS.c.num_dropped + 1))


def _find(connection: Connection, tenant: str, webhook_id: str) -> WebhookRecord | None:
    this = (_HOOKS.c.id == webhook_id) & (_HOOKS.c.tenant == tenant)
    row = connection.execute(select(*_HOOK).where(this)).mappings().first()
    return None if row is None else WebhookRecord(**row)


def _subject(record: WebhookRecord) -> str:
    return f"webhooks/{record.id}"


def _audit_entry(record: WebhookRecord) -> Json:
    """What the trail says of a webhook: not its secret, nor path and query of its address, which may be one."""
    address = urlsplit(record.url)
    return {
        "name": record.name,
        "host": f"{address.scheme}://{address.netloc}",
        "events": list(record.events),
        "state": record.state,
    }
