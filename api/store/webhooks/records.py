"""Webhooks and what they are told, and what the service may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* What a webhook is to be told of the end of a solve or the change of a channel is written in the transaction of that
  end or change: either both are there, or neither.
* A delivery that is taken is nobody else's until its lease is over; it is taken again then, as another attempt, unless
  somebody has said what became of it. What is said of an earlier attempt is left aside.
* Leases and times of attempts are counted by the database's own clock, so that those of the machines may differ.
* A webhook is told of what happens in its tenant alone.
* Each webhook has at most ``MAX_DELIVERIES`` deliveries. A new one takes the place of the oldest that has ended; where
  all wait, of the oldest that waits, which is counted in ``num_dropped``.
* A secret is kept as it is, because it signs. Adding, deleting and enabling are in the audit trail, without it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from api.store.access.audit import Actor

SOLVE_SUCCEEDED, SOLVE_FAILED, SOLVE_CANCELLED, CHANNEL_PROMOTED = EVENTS = (
    "solve.succeeded",
    "solve.failed",
    "solve.cancelled",
    "channel.promoted",
)

ACTIVE, DISABLED = WEBHOOK_STATES = ("active", "disabled")
WAITING, DELIVERED, FAILED = DELIVERY_STATES = ("waiting", "delivered", "failed")

MAX_WEBHOOKS = 64  # of each tenant
MAX_DELIVERIES = 1000  # of each webhook


class TooManyWebhooks(Exception):
    """The tenant has ``MAX_WEBHOOKS`` already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRecord:
    """An address that is told of events."""

    id: str
    url: str
    events: Sequence[str]  # some of EVENTS
    name: str
    secret: str = field(repr=False)  # base64, without its prefix
    created_at: float  # seconds since the epoch
    state: str = ACTIVE
    disabled_reason: str | None = None
    num_failed_in_row: int = 0  # deliveries that were given up since one arrived
    num_dropped: int = 0  # deliveries that waited when there were too many


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRecord:
    """One message to one webhook."""

    id: str  # sorts by time of creation
    webhook_id: str
    event: str
    body: str
    state: str
    attempts: int  # how often it was begun
    created_at: float
    due_at: float  # of the next attempt
    status: int | None  # of the last answer
    error: str | None  # why the last attempt failed
    ended_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenDelivery:
    """A delivery for whoever took it."""

    id: str
    attempt: int
    body: str
    webhook_id: str
    tenant: str  # of the webhook
    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """What became of an attempt."""

    state: str  # WAITING: it is tried again
    status: int | None = None
    error: str | None = None
    retry_seconds: float = 0.0  # until then
    disabled_reason: str | None = None  # why the webhook is told nothing more


class WebhookStore(Protocol):
    """Webhooks of a tenant, and what they were told."""

    def add_webhook(self, record: WebhookRecord, *, by: Actor) -> None:
        """Keep a new webhook. Raises ``TooManyWebhooks``."""
        ...

    def webhook(self, webhook_id: str) -> WebhookRecord | None:
        """Return a webhook."""
        ...

    def webhooks(self) -> list[WebhookRecord]:
        """Return all webhooks, oldest first."""
        ...

    def delete_webhook(self, webhook_id: str, *, by: Actor, now: float) -> bool:
        """Delete a webhook and its deliveries; False where there is none."""
        ...

    def enable_webhook(self, webhook_id: str, *, by: Actor, now: float) -> WebhookRecord | None:
        """Have a webhook told again, at once what waits; return it, ``None`` where there is none."""
        ...

    def deliveries(self, webhook_id: str, *, limit: int, before: str | None) -> list[DeliveryRecord]:
        """Return deliveries of a webhook, newest first, those with an id below ``before``."""
        ...

    def resend(self, webhook_id: str, delivery_id: str) -> DeliveryRecord | None:
        """Have a delivery that has ended attempted anew; return it, waiting or not, ``None`` where there is none."""
        ...


class DeliveryStore(Protocol):
    """Deliveries to the webhooks of all tenants, for those who make them."""

    def take_deliveries(self, *, limit: int, lease_seconds: float, busy: Collection[str] = ()) -> list[TakenDelivery]:
        """Take deliveries that are due, the oldest first: none of ``busy`` webhooks, one of each other."""
        ...

    def end_attempt(self, delivery_id: str, *, attempt: int, end: AttemptEnd, max_failed_in_row: int) -> bool:
        """Say what became of an attempt; False where it is not the last one, or the delivery has ended or is gone.

        A webhook is disabled after so many deliveries in a row that failed.
        """
        ...

    def num_waiting_deliveries(self) -> int:
        """Return how many deliveries wait, those of disabled webhooks among them."""
        ...

    def num_webhooks_by_state(self) -> Mapping[str, int]:
        """Return the numbers of webhooks; states that none is in are left out."""
        ...
