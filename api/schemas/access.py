"""Keys of callers and the audit trail, as documents."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from api.schemas.base import Document, Moment, StrictModel, Title

ScopeName = Literal["read", "solve", "promote", "admin"]
LONGEST_SECONDS = 10 * 366 * 86_400


class KeyRequest(StrictModel):
    """The body of ``POST /v1/keys``."""

    name: Title = Field(description="Whose it is, or what for.", examples=["launchers"])
    scopes: Annotated[list[ScopeName], Field(min_length=1, max_length=4)] = Field(
        description="What it allows; admin allows everything.", examples=[["read"]]
    )
    expires_in_seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS)] | None = Field(
        default=None, description="How long it is valid; null: until it is revoked. Unit: seconds.", examples=[7776000]
    )


class KeyDocument(Document):
    """A key without its secret."""

    id: str = Field(description="Stands in the key, too, and in the audit trail.", examples=["0a1b2c3d4e5f"])
    name: str = Field(description="Whose it is, or what for.", examples=["launchers"])
    tenant: str = Field(description="The only tenant whose plans it reaches.", examples=["default"])
    scopes: list[str] = Field(description="What it allows.", examples=[["read"]])
    created_at: Moment = Field(description="When it was made.")
    expires_at: Moment | None = Field(description="When it ends; null: not by itself.")
    last_used_at: Moment | None = Field(description="When it was shown last, to a minute; null: never.")
    revoked_at: Moment | None = Field(description="When it was revoked; null: it was not.")


class CreatedKey(KeyDocument):
    """A new key, with its secret for the one time that it is shown."""

    key: str = Field(description="The key itself. It is not stored, and cannot be shown again.")


class KeyList(Document):
    """All keys, oldest first."""

    keys: list[KeyDocument]


class CallerDocument(Document):
    """Who sends a request."""

    who: str = Field(
        description="Id of the key, or oidc: and the subject of a token; local where none was asked for.",
        examples=["0a1b2c3d4e5f"],
    )
    tenant: str = Field(description="The only tenant whose plans it reaches.", examples=["default"])
    scopes: list[str] = Field(description="What it allows; admin comes with all others.", examples=[["read"]])


class AuditEntry(Document):
    """One change."""

    seq: int = Field(description="From 1, without gaps, in the order of the changes.", examples=[1])
    at: Moment = Field(description="When.")
    who: str = Field(
        description="Id of the key, or oidc: and the subject of a token; local where none was asked for.",
        examples=["0a1b2c3d4e5f"],
    )
    action: str = Field(description="What was done.", examples=["channel.promote"])
    subject: str = Field(description="What was changed: its address, below /v1/.", examples=["channels/ads/prod"])
    before: dict[str, JsonValue] | None = Field(description="What it was; null where it was not there.")
    after: dict[str, JsonValue] | None = Field(description="What it is.")
    request_id: str | None = Field(description="X-Request-Id of the request; null for the command line.")


class AuditPage(Document):
    """A page of the audit trail, newest first."""

    entries: list[AuditEntry]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")
