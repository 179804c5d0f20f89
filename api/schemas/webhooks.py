"""Webhooks and their deliveries as documents."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from api.schemas.base import Document, Moment, StrictModel, Title

EventName = Literal["solve.succeeded", "solve.failed", "solve.cancelled", "channel.promoted"]
_URL = "https://hooks.example.com/shardplan"
_ID = "wh_0a1b2c3d4e5f"


class WebhookRequest(StrictModel):
    """The body of ``POST /v1/webhooks``."""

    url: Annotated[str, Field(min_length=1, max_length=2000)] = Field(
        description="Where messages are posted to: a host that SHARDPLAN_WEBHOOK_HOSTS lists.", examples=[_URL]
    )
    events: Annotated[list[EventName], Field(min_length=1, max_length=4)] = Field(
        default=list(get_args(EventName)),
        description="The events that it is sent; all, if none is named.",
        examples=[["solve.failed"]],
    )
    name: Title = Field(description="Whose it is, or what for.", examples=["pager of the ads team"])


class WebhookDocument(Document):
    """A webhook without its secret."""

    id: str = Field(description="Stands in the audit trail, too.", examples=[_ID])
    name: str = Field(description="Whose it is, or what for.", examples=["pager of the ads team"])
    url: str = Field(description="Where messages are posted to.", examples=[_URL])
    events: list[str] = Field(description="The events that it is sent.", examples=[["solve.failed"]])
    state: str = Field(description="active, or disabled: then nothing is sent until it is enabled.")
    disabled_reason: str | None = Field(
        description="too-many-failures: several deliveries in a row failed; gone: it answered 410.", examples=[None]
    )
    num_failed_in_row: int = Field(description="Deliveries that were given up since one arrived.", examples=[0])
    num_dropped: int = Field(description="Deliveries that waited when there were too many.", examples=[0])
    created_at: Moment = Field(description="When it was added.")


class CreatedWebhook(WebhookDocument):
    """A new webhook, with its secret for the one time that it is shown."""

    secret: str = Field(description="What messages are signed with: whsec_ and base64.", examples=["whsec_c2VjcmV0"])


class WebhookList(Document):
    """All webhooks, oldest first."""

    webhooks: list[WebhookDocument]


class DeliveryDocument(Document):
    """One message to a webhook."""

    id: str = Field(description="The header webhook-id, equal for every attempt.", examples=["msg_019aa1b2c3d4"])
    event: str = Field(description="The event that it reports.", examples=["solve.succeeded"])
    state: str = Field(description="waiting, delivered or failed.", examples=["delivered"])
    attempts: int = Field(description="How often it was begun.", examples=[1])
    created_at: Moment = Field(description="When it happened.")
    next_attempt_at: Moment | None = Field(description="When it is attempted next; null: it has ended.")
    ended_at: Moment | None = Field(description="When it arrived or was given up.")
    status: int | None = Field(description="Status of the last answer; null: there was none.", examples=[204])
    error: str | None = Field(
        description="Why the last attempt failed: status, redirect, gone, time-out, connection, tls, unknown-host or"
        " refused-target.",
        examples=[None],
    )


class DeliveryPage(Document):
    """A page of deliveries, newest first."""

    deliveries: list[DeliveryDocument]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")
