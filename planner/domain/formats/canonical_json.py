"""Canonical JSON bytes and digests: the same document gives the same bytes everywhere.

Keys sorted, no white space, UTF-8, numbers as Python prints them, no NaN. The launcher
client repeats these six lines on purpose (it imports nothing of the planner); a test
compares the two.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from planner.domain.formats.compact_form import is_compact, long_parts

#: Keys of a plan document that determine training; the plan digest covers these alone, so
#: that timing and provenance never change it.
DIGEST_KEYS = ("schema_version", "spec_digest", "world_size", "ranks_per_host", "tables")
#: Keys that it covers, too, in plans that have them.
OPTIONAL_DIGEST_KEYS = ("pod_size", "use_index_dedup", "replica_groups", "kv_cache_bytes")
#: Keys of a shard that are derived from the rest.
DERIVED_SHARD_KEYS = ("bytes",)


def canonical_bytes(document: object) -> bytes:
    """Serialise a JSON document canonically; raises ``ValueError`` for NaN or infinity."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def canonical_members(document: Mapping[str, object]) -> dict[str, bytes]:
    """Serialise each value of an object canonically, for those who need the bytes of more than one choice of keys."""
    return {key: canonical_bytes(value) for key, value in document.items()}


def of_members(members: Mapping[str, bytes]) -> bytes:
    """Return the canonical bytes of the object that has these values."""
    return b"{" + b",".join(canonical_bytes(key) + b":" + members[key] for key in sorted(members)) + b"}"


def digest(document: object) -> str:
    """``sha256:`` and the hex digest of the canonical bytes."""
    return digest_of(canonical_bytes(document))


def digest_of(content: bytes) -> str:
    """The digest of a document whose canonical bytes are known."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def digest_keys(document: Mapping[str, object]) -> tuple[str, ...]:
    """Return the keys of a plan document that its digest covers."""
    return (*DIGEST_KEYS, *(key for key in OPTIONAL_DIGEST_KEYS if key in document))


def plan_digest(document: Mapping[str, object]) -> str:
    """The digest of the part of a plan document that determines training: that of the long form, in either form.

    Raises ``ValueError`` where the ranks of a compact form cannot be read.
    """
    if is_compact(document):
        hashed = hashlib.sha256()
        for part in long_parts(document, keys=digest_keys(document), without=DERIVED_SHARD_KEYS):
            hashed.update(part)
        return "sha256:" + hashed.hexdigest()
    core = {key: document[key] for key in digest_keys(document)}
    tables = core["tables"]
    if not isinstance(tables, list):
        raise ValueError("Expected tables to be a list.")
    core["tables"] = _without_derived(tables)
    return digest(core)


def _without_derived(tables: Iterable[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return tables of a plan document without what is derived from the rest."""
    return [{**table, "shards": [_bare(shard) for shard in table["shards"]]} for table in tables]


def _bare(shard: Mapping[str, object]) -> dict[str, object]:
    bare = dict(shard)  # copied whole and then cut: a plan has a million of them
    for key in DERIVED_SHARD_KEYS:
        bare.pop(key, None)
    return bare
