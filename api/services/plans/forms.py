"""The two forms of a stored plan: the compact form, which is stored, and the long form, which is the default answer."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from planner.domain.formats.canonical_json import canonical_bytes
from planner.domain.formats.compact_form import is_compact, long_parts, num_shards
from planner.domain.formats.compaction import compact_document

Form = Literal["long", "compact"]
LONG: Form = "long"
COMPACT: Form = "compact"
#: Long forms of more shards than this are not ready in memory: they are written while they are sent.
MOST_READY_SHARDS = 250_000  # 27 MB
#: Parts are gathered until they have this size, so that a stream is not sent in crumbs.
_LEAST_PART_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class StreamedPlan:
    """A plan whose long form is too large for memory."""

    compact: bytes  # its canonical bytes in compact form
    name: str  # of the bytes of the long form, for ETags

    def parts(self) -> Iterator[bytes]:
        """Yield the canonical bytes of the long form; nothing is read before the first part is asked for."""
        yield from gathered(long_parts(json.loads(self.compact)))


def compact_bytes(stored: bytes) -> bytes:
    """Return the canonical bytes of the compact form of a stored plan; plans of earlier releases have the long form."""
    plan = json.loads(stored)
    return stored if is_compact(plan) else canonical_bytes(compact_document(plan))


def long_bytes(compact: bytes) -> bytes:
    """Return the canonical bytes of the long form."""
    return b"".join(long_parts(json.loads(compact)))


def shards_in(compact: bytes) -> int:
    """Return the number of shards of a plan in compact form."""
    return sum(num_shards(group) for table in json.loads(compact)["tables"] for group in table["shards"])


def has_ready_long_form(shards_of_plan: int) -> bool:
    """Whether the long form of a plan with so many shards is small enough for memory."""
    return shards_of_plan <= MOST_READY_SHARDS


def gathered(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes in parts of about one megabyte."""
    waiting: list[bytes] = []
    num_bytes = 0
    for part in parts:
        waiting.append(part)
        num_bytes += len(part)
        if num_bytes >= _LEAST_PART_BYTES:
            yield b"".join(waiting)
            waiting, num_bytes = [], 0
    yield b"".join(waiting)
