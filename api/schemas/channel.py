"""Channels as documents."""

from typing import Annotated

from pydantic import Field

from api.schemas.base import Digest, Document, Moment, StrictModel

WorldSize = Annotated[str, Field(pattern="^[1-9][0-9]{0,6}$")]


class ChannelUpdate(StrictModel):
    """The body of ``PUT /v1/channels/{name}``."""

    plan_digest: Digest = Field(description="Digest of a published plan.", examples=["sha256:" + "0" * 64])
    plan_digests: Annotated[dict[WorldSize, Digest], Field(max_length=64)] = Field(
        default_factory=dict,
        description="Digests of plans by world size, for launchers that ask for theirs; plan_digest is for those"
        " that do not. Empty: plan_digest alone, for jobs of any size.",
        examples=[{"128": "sha256:" + "0" * 64, "120": "sha256:" + "1" * 64}],
    )


class ChannelRollback(StrictModel):
    """The body of ``POST /v1/channels/{name}:rollback``, which may be left out."""

    version: Annotated[int, Field(ge=1, lt=2**31)] | None = Field(
        default=None,
        description="The earlier version whose plan comes back; null: the last one with another plan before the one"
        " that was promoted and is pointed at now, so that rollbacks go back through what was promoted.",
        examples=[1],
    )


class ChannelDocument(Document):
    """A channel at one version."""

    name: str = Field(description="Name.", examples=["ads/ranker/prod"])
    version: int = Field(description="From 1, one more for every change.", examples=[1])
    plan_digest: str = Field(description="Digest of the plan that it points at.")
    plan_digests: dict[str, str] = Field(
        default_factory=dict, description="Digests of its plans by world size; empty: it has one plan."
    )
    plan_url: str = Field(description="Where the plan is.")
    updated_at: Moment = Field(description="When it was changed last.")


class ChannelVersion(Document):
    """What a channel pointed at, at one version."""

    version: int = Field(description="From 1.", examples=[1])
    plan_digest: str = Field(description="Digest of the plan.")
    plan_digests: dict[str, str] = Field(
        default_factory=dict, description="Digests of the plans by world size; empty: there was one plan."
    )
    plan_url: str = Field(description="Where the plan is.")
    updated_at: Moment = Field(description="When it became this.")
    who: str | None = Field(
        default=None,
        description="Who made it so: id of a key, oidc: and the subject of a token, or local; null: not written down.",
        examples=["k3v9q0x1"],
    )
    action: str | None = Field(
        default=None,
        description="channel.promote or channel.rollback; null: not written down.",
        examples=["channel.promote"],
    )
    restored_version: int | None = Field(
        default=None,
        description="Of a rollback: the version that was promoted and whose plan came back.",
        examples=[None],
    )


class ChannelHistory(Document):
    """A page of versions, newest first."""

    versions: list[ChannelVersion]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")


class ChannelPage(Document):
    """A page of channels, by name."""

    channels: list[ChannelDocument]
    next_page_token: str | None = Field(default=None, description="Send as page_token to get the next page.")
