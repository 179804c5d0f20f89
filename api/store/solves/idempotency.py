"""Keys that callers give their requests, so that one that is sent twice happens once.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* A key is stored in the transaction that makes what the request asks for: either both are there, or neither.
* A key is kept for ``KEPT_SECONDS``; after that it is as if it had never been used.
"""

from dataclasses import dataclass
from typing import Protocol

KEPT_SECONDS = 24 * 3600.0


class KeyReused(Exception):
    """The key was used before, for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """A request that carries a key."""

    scope: str  # keys of different addresses have nothing to do with each other
    key: str
    fingerprint: str  # digest of all that the request says
    at: float  # seconds since the epoch


class KeyStore(Protocol):
    """Keys of requests, and what they made."""

    def made_by(self, key: RequestKey | None) -> str | None:
        """Return the id of what the first request with this key made, ``None`` where this is the first.

        Raises ``KeyReused`` where the first said something else.
        """
        ...
