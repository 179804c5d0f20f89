"""Webhooks and their deliveries in a SQL database."""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, delete, func, insert, select, update

from api.store import tables
from api.store.audit import CREATE_WEBHOOK, DELETE_WEBHOOK, ENABLE_WEBHOOK, Actor, Json
from api.store.database_clock import database_now
from api.store.engines import Writer
from api.store.sql_audit import append_audit
from api.store.webhooks import (
    ACTIVE,
    DELIVERED,
    DISABLED,
    FAILED,
    MAX_DELIVERIES,
    MAX_WEBHOOKS,
    WAITING,
    AttemptEnd,
    DeliveryRecord,
    TakenDelivery,
    TooManyWebhooks,
    WebhookRecord,
)

_HOOKS, _LOG = tables.webhooks, tables.webhook_deliveries


class SqlWebhooks:
    """Fulfils ``api.store.webhooks.WebhookStore`` over connections that read and a writer."""

    _readers: Engine
    _writer: Writer

    def add_webhook(self, record: WebhookRecord, *, by: Actor) -> None:
        """Keep a new webhook."""
        with self._writer.begin() as connection:
            if connection.execute(select(func.count()).select_from(_HOOKS)).scalar_one() >= MAX_WEBHOOKS:
                raise TooManyWebhooks
            connection.execute(insert(_HOOKS).values({**asdict(record), "events": list(record.events)}))
            told = {"before": None, "after": _told(record)}
            append_audit(connection, by, CREATE_WEBHOOK, _subject(record), **told, now=record.created_at)

    def webhook(self, webhook_id: str) -> WebhookRecord | None:
        """Return a webhook."""
        with self._readers.begin() as connection:
            return _find(connection, webhook_id)

    def webhooks(self) -> list[WebhookRecord]:
        """Return all webhooks, oldest first."""
        with self._readers.begin() as connection:
            rows = connection.execute(select(_HOOKS).order_by(_HOOKS.c.created_at, _HOOKS.c.id)).mappings()
            return [WebhookRecord(**row) for row in rows]

    def delete_webhook(self, webhook_id: str, *, by: Actor, now: float) -> bool:
        """Delete a webhook and its deliveries."""
        with self._writer.begin() as connection:
            before = _find(connection, webhook_id)
            if before is None:
                return False
            connection.execute(delete(_LOG).where(_LOG.c.webhook_id == webhook_id))
            connection.execute(delete(_HOOKS).where(_HOOKS.c.id == webhook_id))
            told = {"before": _told(before), "after": None}
            append_audit(connection, by, DELETE_WEBHOOK, _subject(before), **told, now=now)
            return True

    def enable_webhook(self, webhook_id: str, *, by: Actor, now: float) -> WebhookRecord | None:
        """Have a webhook told again."""
        with self._writer.begin() as connection:
            before = _find(connection, webhook_id)
            this = update(_HOOKS).where(_HOOKS.c.id == webhook_id, _HOOKS.c.state == DISABLED)
            values = {"state": ACTIVE, "disabled_reason": None, "num_failed_in_row": 0}
            if before is None or connection.execute(this.values(**values)).rowcount == 0:
                return before
            waiting = update(_LOG).where(_LOG.c.webhook_id == webhook_id, _LOG.c.state == WAITING)
            connection.execute(waiting.values(due_at=database_now(connection)))
            after = _find(connection, webhook_id)
            assert after is not None
            told = {"before": _told(before), "after": _told(after)}
            append_audit(connection, by, ENABLE_WEBHOOK, _subject(after), **told, now=now)
            return after

    def deliveries(self, webhook_id: str, *, limit: int, before: str | None) -> list[DeliveryRecord]:
        """Return deliveries of a webhook, newest first."""
        query = select(_LOG).where(_LOG.c.webhook_id == webhook_id).order_by(_LOG.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(_LOG.c.id < before)
        with self._readers.begin() as connection:
            return [DeliveryRecord(**row) for row in connection.execute(query).mappings()]

    def resend(self, webhook_id: str, delivery_id: str) -> DeliveryRecord | None:
        """Have a delivery attempted anew."""
        with self._writer.begin() as connection:
            this = (_LOG.c.id == delivery_id, _LOG.c.webhook_id == webhook_id)
            values = {"state": WAITING, "attempts": 0, "ended_at": None, "due_at": database_now(connection)}
            connection.execute(update(_LOG).where(*this, _LOG.c.state != WAITING).values(**values))
            row = connection.execute(select(_LOG).where(*this)).mappings().first()
            return None if row is None else DeliveryRecord(**row)

    def take_deliveries(self, *, limit: int, lease_seconds: float, busy: Collection[str] = ()) -> list[TakenDelivery]:
        """Take deliveries that are due."""
        with self._readers.begin() as connection:  # most looks find nothing, and no writer has to wait for them
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
        """Say what became of an attempt."""
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
        """Return how many deliveries wait."""
        query = select(func.count()).select_from(_LOG).where(_LOG.c.state == WAITING)
        with self._readers.begin() as connection:
            return connection.execute(query).scalar_one()

    def num_webhooks_by_state(self) -> Mapping[str, int]:
        """Return the numbers of webhooks."""
        query = select(_HOOKS.c.state, func.count()).group_by(_HOOKS.c.state)
        with self._readers.begin() as connection:
            return {state: number for state, number in connection.execute(query)}


def tell_webhooks(connection: Connection, event: str, data: Json, *, now: float) -> None:
    """Have the active webhooks of an event told, as a part of the transaction of what happened."""
    rows = connection.execute(select(_HOOKS.c.id, _HOOKS.c.events).where(_HOOKS.c.state == ACTIVE))
    told = [webhook_id for webhook_id, events in rows if event in events]
    if not told:
        return
    body = json.dumps({"type": event, "timestamp": datetime.fromtimestamp(now, UTC).isoformat(), "data": data})
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


def _due(connection: Connection, busy: Collection[str]) -> list[TakenDelivery]:
    """Return the next delivery of each active webhook, the longest due first; a look at the index for each webhook."""
    is_due = (_LOG.c.state == WAITING, _LOG.c.due_at <= database_now(connection))
    of_hook = select(_LOG.c.id).where(_LOG.c.webhook_id == _HOOKS.c.id, *is_due).order_by(_LOG.c.due_at, _LOG.c.id)
    first = of_hook.limit(1).correlate(_HOOKS).scalar_subquery()
    firsts = select(first).where(_HOOKS.c.state == ACTIVE, _HOOKS.c.id.not_in(busy))
    joined = _LOG.join(_HOOKS, _LOG.c.webhook_id == _HOOKS.c.id)
    columns = (_LOG.c.id, _LOG.c.attempts, _LOG.c.body, _LOG.c.webhook_id, _HOOKS.c.url, _HOOKS.c.secret)
    query = select(*columns).select_from(joined).where(_LOG.c.id.in_(firsts)).order_by(_LOG.c.due_at, _LOG.c.id)
    rows = connection.execute(query).mappings()
    return [
        TakenDelivery(attempt=row["attempts"] + 1, **{key: value for key, value in row.items() if key != "attempts"})
        for row in rows
    ]


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


def _find(connection: Connection, webhook_id: str) -> WebhookRecord | None:
    row = connection.execute(select(_HOOKS).where(_HOOKS.c.id == webhook_id)).mappings().first()
    return None if row is None else WebhookRecord(**row)


def _subject(record: WebhookRecord) -> str:
    return f"webhooks/{record.id}"


def _told(record: WebhookRecord) -> Json:
    """What the trail says of a webhook: not its secret, nor the path of its address, which may be one."""
    host = "/".join(record.url.split("/")[:3])
    return {"name": record.name, "host": host, "events": list(record.events), "state": record.state}
