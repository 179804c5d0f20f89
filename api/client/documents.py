"""The documents of the contract as the launcher reads them."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from .compact_form import is_compact, long_document, long_parts
from .errors import UnexpectedAnswer
from .plan_types import DERIVED_SHARD_KEYS, DIGEST_KEYS, OPTIONAL_DIGEST_KEYS, SCHEMA_VERSION, PlanDocument


def canonical_bytes(document: object) -> bytes:
    """Serialise a JSON document so that equal documents give equal bytes.

    Keys sorted, no white space, UTF-8, no NaN: what the service does to its plans.
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def plan_digest(plan: Mapping[str, object]) -> str:
    """Return the digest of the part of a plan that determines training: that of the long form, in either form."""
    keys = [*DIGEST_KEYS, *(key for key in OPTIONAL_DIGEST_KEYS if key in plan)]
    if is_compact(plan):
        hashed = hashlib.sha256()
        for part in long_parts(plan, keys=keys, without=DERIVED_SHARD_KEYS):
            hashed.update(part)
        return "sha256:" + hashed.hexdigest()
    core = {key: plan[key] for key in keys}
    tables = cast("list[dict[str, Any]]", core["tables"])
    core["tables"] = [{**table, "shards": [_without_derived(s) for s in table["shards"]]} for table in tables]
    return "sha256:" + hashlib.sha256(canonical_bytes(core)).hexdigest()


def parse_object(content: bytes, what: str) -> dict[str, object]:
    """Parse a JSON object strictly: no NaN, no name twice.

    Raises
    ------
    UnexpectedAnswer
        It is not a JSON object.
    """
    try:
        document = json.loads(content, parse_constant=_reject_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UnexpectedAnswer(f"{what} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise UnexpectedAnswer(f"{what} is not a JSON object")
    return document


def parse_versioned(content: bytes, what: str) -> dict[str, object]:
    """Parse a JSON object of the version that this client reads.

    Raises
    ------
    UnexpectedAnswer
        It is not a JSON object, or of another version.
    """
    document = parse_object(content, what)
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UnexpectedAnswer(f"{what} has schema_version {version!r}; this client reads {SCHEMA_VERSION}")
    return document


def parse_plan(content: bytes) -> tuple[PlanDocument, str]:
    """Parse the bytes of a plan in either form; returns its long form with the digest of its content.

    Raises
    ------
    UnexpectedAnswer
        The bytes are not a plan document of this version.
    """
    document = parse_versioned(content, "the plan")
    try:
        digest = plan_digest(document)
        return cast("PlanDocument", in_long_form(document)), digest
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnexpectedAnswer(f"this is not a plan document: {type(error).__name__}: {error}") from error


def in_long_form(plan: Mapping[str, object]) -> Mapping[str, object]:
    """Return the long form of a plan document in either form.

    Raises
    ------
    UnexpectedAnswer
        It says that it is compact, and cannot be expanded.
    """
    if not is_compact(plan):
        return plan
    try:
        return long_document(plan)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnexpectedAnswer(f"this is not a plan document: {type(error).__name__}: {error}") from error


def _without_derived(shard: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in shard.items() if key not in DERIVED_SHARD_KEYS}


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return result
