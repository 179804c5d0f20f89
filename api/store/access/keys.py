"""Keys that callers show, and what the service may rely on.

Guarantees, beside those of ``api.store.contract.store``
----------------------------------------------
* A key itself is never stored, only its digest; one that was revoked stays revoked, and stays in the list.
* Adding and revoking a key are in the audit trail (``api.store.access.audit``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from api.store.access.audit import Actor
from api.store.contract.tenants import DEFAULT_TENANT


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRecord:
    """What is known of a key."""

    id: str
    name: str
    secret_digest: str  # SHA-256 of the secret part, hexadecimal
    scopes: Sequence[str]
    created_at: float  # seconds since the epoch
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None
    tenant: str = DEFAULT_TENANT


class ApiKeyStore(Protocol):
    """Keys of callers of one tenant."""

    def add_api_key(self, record: ApiKeyRecord, *, by: Actor) -> ApiKeyRecord:
        """Keep a new key as one of this tenant, and return it."""
        ...

    def api_keys(self) -> list[ApiKeyRecord]:
        """Return all keys, oldest first."""
        ...

    def revoke_api_key(self, key_id: str, *, by: Actor, now: float) -> ApiKeyRecord | None:
        """Revoke a key and return it; ``None`` where there is none. One that is revoked stays as it is."""
        ...


class KeyVerificationStore(Protocol):
    """Keys of all tenants, by their ids, which differ."""

    def api_key(self, key_id: str) -> ApiKeyRecord | None:
        """Return a key, revoked or not."""
        ...

    def use_api_keys(self, used_at: Mapping[str, float]) -> None:
        """Say when keys were used last; an earlier time than is known is left aside."""
        ...
