"""Webhooks and their deliveries as documents."""

from typing import Any

from api.schemas.timestamps import moment
from api.schemas.webhooks import CreatedWebhook, DeliveryDocument, WebhookDocument
from api.services.webhooks.signature import secret_text
from api.store.webhooks.records import WAITING, DeliveryRecord, WebhookRecord


def webhook_document(record: WebhookRecord) -> WebhookDocument:
    """Return what clients may see of a webhook."""
    return WebhookDocument(**_fields(record))


def created_webhook(record: WebhookRecord) -> CreatedWebhook:
    """Return a new webhook with its secret."""
    return CreatedWebhook(secret=secret_text(record.secret), **_fields(record))


def delivery_document(record: DeliveryRecord) -> DeliveryDocument:
    """Return what clients may see of a delivery."""
    return DeliveryDocument(
        id=record.id,
        event=record.event,
        state=record.state,
        attempts=record.attempts,
        created_at=moment(record.created_at),
        next_attempt_at=moment(record.due_at) if record.state == WAITING else None,
        ended_at=moment(record.ended_at),
        status=record.status,
        error=record.error,
    )


def _fields(record: WebhookRecord) -> dict[str, Any]:
    names = ("id", "name", "url", "state", "disabled_reason", "num_failed_in_row", "num_dropped")
    fields = {name: getattr(record, name) for name in names}
    return {**fields, "events": list(record.events), "created_at": moment(record.created_at)}
