"""Plans, and the parts of them that single ranks need, as they came over the wire; checked as far as each can be."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import httpx

from .compact_form import is_compact, long_parts
from .documents import parse_plan, parse_versioned
from .errors import DigestMismatch, UnexpectedAnswer
from .plan_types import PlanDocument, TableDocument

DIGEST_HEADER = "X-Plan-Digest"
Form = Literal["long", "compact"]


class RankSliceDocument(PlanDocument):
    """The head of a plan, and the tables with the shards of one rank alone."""

    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPlan:
    """A plan as it came over the wire, its digest recomputed here."""

    received: bytes = field(repr=False)  # in compact form, if the service knows that; megabytes, so not in logs
    document: PlanDocument = field(repr=False)
    digest: str
    etag: str | None

    @property
    def content(self) -> bytes:
        """The bytes of the plan in long form, expanded again at every access."""
        return b"".join(self.long_parts())

    @property
    def received_form(self) -> Form:
        """The form of the bytes as they came: long, if the service knows no other."""
        return "compact" if is_compact(json.loads(self.received)) else "long"

    def long_parts(self) -> Iterator[bytes]:
        """Yield the bytes of the plan in long form, of which no more than a table is in memory at a time."""
        document = json.loads(self.received)
        yield from long_parts(document) if is_compact(document) else [self.received]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSlice(FetchedPlan):
    """A slice as it came over the wire. The digest is that of the whole plan, which a slice cannot prove."""

    document: RankSliceDocument = field(repr=False)
    rank: int

    @property
    def content(self) -> bytes:
        """The bytes of the slice, which has one form: as they came."""
        return self.received


def fetched_plan(response: httpx.Response, requested_digest: str | None = None) -> FetchedPlan:
    """Return the plan of an answer.

    Raises
    ------
    UnexpectedAnswer
        It is no plan.
    DigestMismatch
        It is not the plan that was requested, or that it claims to be.
    """
    document, digest = parse_plan(response.content)
    _check_digest(
        digest, response, {"the plan": document.get("plan_digest", "nothing"), "the request": requested_digest}
    )
    return FetchedPlan(received=response.content, document=document, digest=digest, etag=response.headers.get("ETag"))


def fetched_slice(response: httpx.Response, rank: int, requested_digest: str | None = None) -> RankSlice:
    """Return the slice of an answer.

    Raises
    ------
    UnexpectedAnswer
        It is not the slice of this rank.
    DigestMismatch
        It is of another plan.
    """
    document = parse_versioned(response.content, "the slice")
    digest, world_size = document.get("plan_digest"), document.get("world_size")
    if not isinstance(digest, str) or document.get("rank") != rank or not isinstance(world_size, int):
        raise UnexpectedAnswer(f"this is not the slice of rank {rank}; the service may not know slices")
    if _ranks(document) - {rank}:
        raise UnexpectedAnswer(f"the slice of rank {rank} has shards of other ranks")
    _check_digest(digest, response, {"the request": requested_digest})
    return RankSlice(
        received=response.content,
        document=cast("RankSliceDocument", document),
        digest=digest,
        etag=response.headers.get("ETag"),
        rank=rank,
    )


def _check_digest(digest: str, response: httpx.Response, claimed: Mapping[str, str | None]) -> None:
    """Compare a digest with those that are claimed elsewhere; ``None`` claims nothing."""
    header = cast("str | None", response.headers.get(DIGEST_HEADER))
    for where, value in {f"the header {DIGEST_HEADER}": header, **claimed}.items():
        if value is not None and value != digest:
            raise DigestMismatch(value, digest, where)


def _ranks(document: Mapping[str, object]) -> set[int]:
    try:
        tables = cast("list[TableDocument]", document["tables"])
        return {shard["rank"] for table in tables for shard in table["shards"]}
    except (KeyError, TypeError) as error:
        raise UnexpectedAnswer(f"this is not the slice of a plan: {type(error).__name__}: {error}") from error
