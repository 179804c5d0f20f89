"""Canonical JSON bytes and digests: the same document gives the same bytes everywhere.

Keys sorted, no white space, UTF-8, numbers as Python prints them, no NaN. The launcher
client repeats these six lines on purpose (it imports nothing of the planner); a test
compares the two.
"""

import hashlib
import json
from collections.abc import Mapping

#: Keys of a plan document that determine training; the plan digest covers these alone, so
#: that timing and provenance never change it.
DIGEST_KEYS = ("schema_version", "spec_digest", "world_size", "ranks_per_host", "tables")
#: Keys of a shard that are derived from the rest.
DERIVED_SHARD_KEYS = ("bytes",)


def canonical_bytes(document: object) -> bytes:
    """Serialise a JSON document canonically; raises ``ValueError`` for NaN or infinity."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(document: object) -> str:
    """``sha256:`` and the hex digest of the canonical bytes."""
    return "sha256:" + hashlib.sha256(canonical_bytes(document)).hexdigest()


def plan_digest(document: Mapping[str, object]) -> str:
    """The digest of the part of a plan document that determines training."""
    core = {key: document[key] for key in DIGEST_KEYS}
    tables = core["tables"]
    if not isinstance(tables, list):
        raise ValueError("Expected tables to be a list.")
    core["tables"] = [
        {
            **table,
            "shards": [
                {key: value for key, value in shard.items() if key not in DERIVED_SHARD_KEYS}
                for shard in table["shards"]
            ],
        }
        for table in tables
    ]
    return digest(core)
