"""The documents of the contract as the launcher sees them."""

import hashlib
import json
from collections.abc import Mapping
from typing import NoReturn, NotRequired, TypedDict, cast

from .errors import UnexpectedAnswer

SCHEMA_VERSION = 1
#: Keys of a plan that determine training: the digest covers these, so timing never changes it.
DIGEST_KEYS = ("schema_version", "spec_digest", "world_size", "ranks_per_host", "tables")
#: Keys of a shard that follow from the others and stay outside the digest.
DERIVED_SHARD_KEYS = ("bytes",)


class ShardDocument(TypedDict):
    """A rectangle of a table on one rank."""

    rank: int
    row_offset: int
    num_rows: int
    column_offset: int
    num_columns: int
    tier: str
    bytes: NotRequired[int]


class TableDocument(TypedDict):
    """How one table is cut; the keys that describe the table itself are there where the spec gave them."""

    name: str
    sharding_type: str
    compute_kernel: str
    shards: list[ShardDocument]
    cache_load_factor: NotRequired[float | None]
    module_path: NotRequired[str]
    num_embeddings: NotRequired[int]
    embedding_dim: NotRequired[int]
    data_type: NotRequired[str]
    pooling: NotRequired[str]


class PlanDocument(TypedDict):
    """The part of a plan that a launcher needs."""

    schema_version: int
    plan_digest: str
    spec_digest: str
    world_size: int
    ranks_per_host: int
    tables: list[TableDocument]


def canonical_bytes(document: object) -> bytes:
    """Serialise a JSON document so that equal documents give equal bytes.

    Keys sorted, no white space, UTF-8, no NaN: what the service does to its plans.
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def plan_digest(plan: Mapping[str, object]) -> str:
    """The digest of the part of a plan that determines training."""
    core = {key: plan[key] for key in DIGEST_KEYS}
    tables = cast("list[Mapping[str, object]]", core["tables"])
    core["tables"] = [{**table, "shards": [_without_derived(s) for s in _shards(table)]} for table in tables]
    return "sha256:" + hashlib.sha256(canonical_bytes(core)).hexdigest()


def parse_object(content: bytes, what: str) -> dict[str, object]:
    """Parse a JSON object strictly: no NaN, no name twice.

    Raises
    ------
    UnexpectedAnswer
        It is not a JSON object.
    """
    try:
        document = json.loads(content, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(f"{what} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise UnexpectedAnswer(f"{what} is not a JSON object")
    return document


def parse_plan(content: bytes) -> tuple[PlanDocument, str]:
    """Parse the bytes of a plan; returns it with the digest of its content.

    Raises
    ------
    UnexpectedAnswer
        The bytes are not a plan document of this version.
    """
    document = parse_object(content, "the plan")
    if document.get("schema_version") != SCHEMA_VERSION:
        raise UnexpectedAnswer(
            f"the plan has schema_version {document.get('schema_version')!r}; this client reads {SCHEMA_VERSION}"
        )
    try:
        return cast("PlanDocument", document), plan_digest(document)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnexpectedAnswer(f"this is not a plan document: {type(error).__name__}: {error}") from error


def _shards(table: Mapping[str, object]) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", table["shards"])


def _without_derived(shard: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in shard.items() if key not in DERIVED_SHARD_KEYS}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result
