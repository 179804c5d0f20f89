"""The part of a plan that one rank needs, checked as far as a part can be."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from .documents import SCHEMA_VERSION, PlanDocument, TableDocument, parse_object
from .errors import DigestMismatch, UnexpectedAnswer


class RankSliceDocument(PlanDocument):
    """The head of a plan, and the tables with the shards of one rank alone."""

    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSlice:
    """A slice as it came over the wire. The digest is that of the whole plan, which a slice cannot prove."""

    content: bytes = field(repr=False)
    document: RankSliceDocument = field(repr=False)
    digest: str
    rank: int
    etag: str | None


def parse_slice(content: bytes, rank: int, claimed: Mapping[str, str | None], etag: str | None) -> RankSlice:
    """Parse a slice; ``claimed`` are digests of its plan by their source.

    Raises
    ------
    UnexpectedAnswer
        It is not the slice of this rank.
    DigestMismatch
        It is of another plan.
    """
    document = parse_object(content, "the slice")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise UnexpectedAnswer(
            f"the slice has schema_version {document.get('schema_version')!r}; this client reads {SCHEMA_VERSION}"
        )
    digest, world_size = document.get("plan_digest"), document.get("world_size")
    if not isinstance(digest, str) or document.get("rank") != rank or not isinstance(world_size, int):
        raise UnexpectedAnswer(f"this is not the slice of rank {rank}; the service may not know slices")
    if _ranks(document) - {rank}:
        raise UnexpectedAnswer(f"the slice of rank {rank} has shards of other ranks")
    for where, value in claimed.items():
        if value is not None and value != digest:
            raise DigestMismatch(value, digest, where)
    return RankSlice(content=content, document=cast("RankSliceDocument", document), digest=digest, rank=rank, etag=etag)


def _ranks(document: Mapping[str, object]) -> set[int]:
    """Return the ranks of all shards."""
    try:
        tables = cast("list[TableDocument]", document["tables"])
        return {shard["rank"] for table in tables for shard in table["shards"]}
    except (KeyError, TypeError) as error:
        raise UnexpectedAnswer(f"this is not the slice of a plan: {type(error).__name__}: {error}") from error
