"""Webhooks of one tenant, and their deliveries.

* A delivery is written in the transaction of the end of a solve, or of the change of a channel, that it reports: either
  both exist, or neither. A webhook receives what happens in its tenant alone.
* Each webhook has at most ``MAX_DELIVERIES`` deliveries. A new delivery takes the place of the oldest delivery that has
  ended. If all wait, it takes the place of the oldest delivery that waits, which ``num_dropped`` counts.
* A secret is stored as it is, because it signs. Adding, deleting and enabling are in the audit trail, without it.
"""

import json
import secrets
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update

from api.store.access.audit import CREATE_WEBHOOK, DELETE_WEBHOOK, ENABLE_WEBHOOK, Actor, append_audit
from api.store.sql import tables
from api.store.sql.blobs import Json
from api.store.sql.clock import database_now
from api.store.sql.repository import TenantRepository, first_record
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


class Webhooks(TenantRepository):
    """Webhooks of one tenant, and their deliveries."""

    def add_webhook(self, record: WebhookRecord, *, by: Actor) -> None:
        """Add a webhook. Raises ``TooManyWebhooks``."""
        with self._writer.begin() as connection:
            of_tenant = select(func.count()).select_from(_HOOKS).where(_HOOKS.c.tenant == self._tenant)
            if connection.execute(of_tenant).scalar_one() >= MAX_WEBHOOKS:
                raise TooManyWebhooks
            values = {**asdict(record), "events": list(record.events), "tenant": self._tenant}
            connection.execute(insert(_HOOKS).values(values))
            entries, now = (None, _audit_entry(record)), record.created_at
            append_audit(connection, self._tenant, by, CREATE_WEBHOOK, _subject(record), *entries, now=now)

    def webhook(self, webhook_id: str) -> WebhookRecord | None:
        return self._record(self._of_webhook(webhook_id), WebhookRecord)

    def webhooks(self) -> list[WebhookRecord]:
        """Return all webhooks, oldest first."""
        query = select(*_HOOK).where(_HOOKS.c.tenant == self._tenant).order_by(_HOOKS.c.created_at, _HOOKS.c.id)
        return self._records(query, WebhookRecord)

    def delete_webhook(self, webhook_id: str, *, by: Actor, now: float) -> bool:
        """Delete a webhook and its deliveries; False if there is none."""
        with self._writer.begin() as connection:
            before = first_record(connection, self._of_webhook(webhook_id), WebhookRecord)
            if before is None:
                return False
            connection.execute(delete(_LOG).where(_LOG.c.webhook_id == webhook_id))
            connection.execute(delete(_HOOKS).where(_HOOKS.c.id == webhook_id))
            entries = _audit_entry(before), None
            append_audit(connection, self._tenant, by, DELETE_WEBHOOK, _subject(before), *entries, now=now)
            return True

    def enable_webhook(self, webhook_id: str, *, by: Actor, now: float) -> WebhookRecord | None:
        """Make a webhook active, and what waits for it due; return it, ``None`` if there is none."""
        with self._writer.begin() as connection:
            before = first_record(connection, self._of_webhook(webhook_id), WebhookRecord)
            this = update(_HOOKS).where(_HOOKS.c.id == webhook_id, _HOOKS.c.state == DISABLED)
            values: dict[str, Any] = {"state": ACTIVE, "disabled_reason": None, "num_failed_in_row": 0}
            if before is None or connection.execute(this.values(**values)).rowcount == 0:
                return before
            waiting = update(_LOG).where(_LOG.c.webhook_id == webhook_id, _LOG.c.state == WAITING)
            connection.execute(waiting.values(due_at=database_now(connection)))
            after = replace(before, **values)
            entries = _audit_entry(before), _audit_entry(after)
            append_audit(connection, self._tenant, by, ENABLE_WEBHOOK, _subject(after), *entries, now=now)
            return after

    def deliveries(self, webhook_id: str, *, limit: int, before: str | None) -> list[DeliveryRecord]:
        """Return deliveries of a webhook, newest first, those with an id below ``before``."""
        query = select(_LOG).where(self._is_for(webhook_id)).order_by(_LOG.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(_LOG.c.id < before)
        return self._records(query, DeliveryRecord)

    def resend(self, webhook_id: str, delivery_id: str) -> DeliveryRecord | None:
        """Make a delivery that has ended due again; return it, waiting or not, ``None`` if there is none."""
        with self._writer.begin() as connection:
            this = (_LOG.c.id == delivery_id, self._is_for(webhook_id))
            values = {"state": WAITING, "attempts": 0, "ended_at": None, "due_at": database_now(connection)}
            connection.execute(update(_LOG).where(*this, _LOG.c.state != WAITING).values(**values))
            return first_record(connection, select(_LOG).where(*this), DeliveryRecord)

    def _of_webhook(self, webhook_id: str) -> Select[Any]:
        return select(*_HOOK).where(_HOOKS.c.id == webhook_id, _HOOKS.c.tenant == self._tenant)

    def _is_for(self, webhook_id: str) -> ColumnElement[bool]:
        """Whether a delivery is to a webhook of this tenant."""
        own = select(_HOOKS.c.id).where(_HOOKS.c.id == webhook_id, _HOOKS.c.tenant == self._tenant)
        return _LOG.c.webhook_id.in_(own)


def notify_webhooks(connection: Connection, tenant: str, event: str, data: Json, *, now: float) -> None:
    """Enqueue deliveries to a tenant's active webhooks of an event, in the transaction of what happened."""
    are_active = (_HOOKS.c.tenant == tenant) & (_HOOKS.c.state == ACTIVE)
    rows = connection.execute(select(_HOOKS.c.id, _HOOKS.c.events).where(are_active))
    listening = [webhook_id for webhook_id, events in rows if event in events]
    if not listening:
        return
    body = json.dumps({"type": event, "timestamp": datetime.fromtimestamp(now, UTC).isoformat(), "data": data})
    count = select(_LOG.c.webhook_id, func.count()).where(_LOG.c.webhook_id.in_(listening)).group_by(_LOG.c.webhook_id)
    numbers = {webhook_id: number for webhook_id, number in connection.execute(count)}
    for webhook_id in listening:
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


def _subject(record: WebhookRecord) -> str:
    return f"webhooks/{record.id}"


def _audit_entry(record: WebhookRecord) -> Json:
    """Return what the audit trail has of a webhook: no secret, nor path and query of its address, which may be one."""
    address = urlsplit(record.url)
    return {
        "name": record.name,
        "host": f"{address.scheme}://{address.netloc}",
        "events": list(record.events),
        "state": record.state,
    }
