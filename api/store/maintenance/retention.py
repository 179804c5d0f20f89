"""The end of what is old, and what the service may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* Nothing is removed but what a cutoff names, and no cutoff is taken for granted.
* Solves that wait or run stay, however old they are.
* A plan stays while a channel points at it or did at any time, while a solve that is kept has found it, and while
  measurements were sent of it. With it stays the spec that it was made for.
* Entries of the audit trail of a tenant go from the oldest on, so that the rest is numbered without gaps; the last one
  stays.
* ``prune`` is one short transaction: whoever writes waits for a batch at most.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

#: In this order: plans may go because their solves went.
REQUEST_KEYS, SOLVES, EVENTS, PLANS, AUDIT = PRUNED = ("request_keys", "solves", "events", "plans", "audit")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoffs:
    """Times before which things are old, in seconds since the epoch; ``None`` keeps all."""

    request_keys: float | None = None  # made before
    solves: float | None = None  # ended before
    events: float | None = None  # of solves that ended before
    plans: float | None = None  # published before
    audit: float | None = None  # written before


class RetentionStore(Protocol):
    """Removes what is old."""

    def pruning(self) -> AbstractContextManager[bool]:
        """Hold the right to prune for a block: False where another process has it."""
        ...

    def num_old(self, before: Cutoffs) -> Mapping[str, int]:
        """Return how much would be removed, of each of ``PRUNED``."""
        ...

    def prune(self, kind: str, before: Cutoffs, *, limit: int) -> int:
        """Remove at most about ``limit`` of a kind, those of the kinds before it being gone; return their number."""
        ...
