"""What can be done with webhooks: add, look, delete, enable, and send a message again."""

import secrets
import time
from collections.abc import Callable, Sequence

from api.services.errors import ApiError, found, not_found
from api.services.pages import page_of
from api.services.webhooks.signature import new_secret
from api.services.webhooks.targets import HostAllowList, TargetRefused
from api.store.access.audit import Actor
from api.store.database import TenantStore
from api.store.webhooks.records import (
    EVENTS,
    MAX_WEBHOOKS,
    DeliveryRecord,
    TooManyWebhooks,
    WebhookRecord,
)

_ID_BYTES = 6


class WebhookService:
    """The use cases of webhooks."""

    def __init__(self, store: TenantStore, allowed: HostAllowList, *, clock: Callable[[], float] = time.time) -> None:
        self._store, self._allowed, self._clock = store, allowed, clock

    def create(self, url: str, events: Sequence[str], name: str, *, by: Actor) -> WebhookRecord:
        """Add a webhook; the caller shows its secret, which is never shown again."""
        try:
            self._allowed.check(url)
        except TargetRefused as error:
            raise ApiError("webhook-refused", str(error)) from None
        record = WebhookRecord(
            id=f"wh_{secrets.token_hex(_ID_BYTES)}",
            url=url,
            events=[event for event in EVENTS if event in events],
            name=name,
            secret=new_secret(),
            created_at=self._clock(),
        )
        try:
            self._store.add_webhook(record, by=by)
        except TooManyWebhooks:
            raise ApiError("too-many-webhooks", f"there are {MAX_WEBHOOKS} webhooks, which is the most") from None
        return record

    def all(self) -> list[WebhookRecord]:
        """Return all webhooks, oldest first."""
        return self._store.webhooks()

    def get(self, webhook_id: str) -> WebhookRecord:
        return found(self._store.webhook(webhook_id), "webhook")

    def delete(self, webhook_id: str, *, by: Actor) -> None:
        """Delete a webhook, and what waits for it."""
        if not self._store.delete_webhook(webhook_id, by=by, now=self._clock()):
            raise not_found("webhook")

    def enable(self, webhook_id: str, *, by: Actor) -> WebhookRecord:
        """Enable a webhook again; enabling an active one is harmless."""
        return found(self._store.enable_webhook(webhook_id, by=by, now=self._clock()), "webhook")

    def deliveries(
        self, webhook_id: str, *, limit: int, before: str | None
    ) -> tuple[Sequence[DeliveryRecord], str | None]:
        """Return a page of deliveries, newest first, and the id that the next page is below."""
        self.get(webhook_id)
        records = self._store.deliveries(webhook_id, limit=limit + 1, before=before)
        return page_of(records, limit, lambda delivery: delivery.id)

    def resend(self, webhook_id: str, delivery_id: str) -> DeliveryRecord:
        """Have a delivery that has ended attempted again, under its id."""
        return found(self._store.resend(webhook_id, delivery_id), "delivery")
