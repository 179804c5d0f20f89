"""What the service keeps of the way of a solve, and what it may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* Events of a solve are numbered from 1, and no number is given twice. At most ``MAX_EVENTS`` are
  kept: when there are as many, a new one takes the place of the last and the next number.
* ``keep_incumbent`` appends its event, and ``finish`` the last one, in their own transactions:
  whoever sees a solve ended sees all of its events.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

MAX_EVENTS = 512

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """A better plan was found."""

    seq: int  # from 1
    at: float  # seconds since the epoch
    at_seconds: float  # since the solve was started
    document: Json  # as ``progress`` of the solve


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveMark:
    """How far a solve is: two that are equal have nothing new between them."""

    state: str
    last_seq: int  # 0 before the first event


class EventStore(Protocol):
    """Events of solves."""

    def events(self, solve_id: str, *, after: int) -> list[EventRecord]:
        """Return the events of a solve with a number above ``after``, oldest first."""
        ...


class MarkStore(Protocol):
    """How far solves of all tenants are."""

    def marks(self, solve_ids: Collection[str]) -> dict[str, SolveMark]:
        """Return how far solves are, in one query; those that do not exist are left out."""
        ...
