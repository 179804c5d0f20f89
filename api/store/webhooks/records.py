"""Webhooks and deliveries as values."""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    """An address to which events are sent."""

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
    attempts: int  # begun so far
    created_at: float
    due_at: float  # of the next attempt
    status: int | None  # of the last answer
    error: str | None  # why the last attempt failed
    ended_at: float | None

    @property
    def next_attempt_at(self) -> float | None:
        """When it is attempted next; ``None`` if it has ended."""
        return self.due_at if self.state == WAITING else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenDelivery:
    """A delivery as its taker needs it."""

    id: str
    attempt: int
    body: str
    webhook_id: str
    tenant: str  # of the webhook
    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended."""

    state: str  # one of DELIVERY_STATES; WAITING: another attempt follows
    status: int | None = None
    error: str | None = None
    retry_seconds: float = 0.0  # until then
    disabled_reason: str | None = None  # why the webhook gets nothing more
