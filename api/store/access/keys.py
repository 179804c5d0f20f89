"""Keys of the service's users.

* A key itself is never stored, only its digest. A revoked key remains revoked, and remains in the list.
* Adding and revoking a key are in the audit trail (``api.store.access.audit``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import func, insert, select, update

from api.store.access.audit import CREATE_KEY, REVOKE_KEY, Actor, append_audit
from api.store.sql import tables
from api.store.sql.blobs import Json
from api.store.sql.repository import Repository, TenantRepository, first_record
from api.store.tenants import DEFAULT_TENANT

_KEYS = tables.api_keys
_OLDEST_FIRST = select(_KEYS).order_by(_KEYS.c.created_at, _KEYS.c.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKeyRecord:
    """A key, without its secret."""

    id: str
    name: str
    secret_digest: str  # SHA-256 of the secret part, hexadecimal
    scopes: Sequence[str]
    created_at: float  # seconds since the epoch
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None
    tenant: str = DEFAULT_TENANT


class ApiKeys(TenantRepository):
    """Keys of one tenant."""

    def add_api_key(self, record: ApiKeyRecord, *, by: Actor) -> ApiKeyRecord:
        """Add a new key of this tenant, and return it."""
        own, now = replace(record, tenant=self._tenant), record.created_at
        with self._writer.begin() as connection:
            connection.execute(insert(_KEYS).values({**asdict(own), "scopes": list(own.scopes)}))
            append_audit(connection, self._tenant, by, CREATE_KEY, _subject(own), None, _audit_entry(own), now=now)
            return own

    def api_keys(self) -> list[ApiKeyRecord]:
        """Return all keys, oldest first."""
        return self._records(_OLDEST_FIRST.where(_KEYS.c.tenant == self._tenant), ApiKeyRecord)

    def revoke_api_key(self, key_id: str, *, by: Actor, now: float) -> ApiKeyRecord | None:
        """Revoke a key and return it; ``None`` if there is none. A revoked key does not change."""
        with self._writer.begin() as connection:
            this = update(_KEYS).where(_KEYS.c.id == key_id, _KEYS.c.revoked_at.is_(None))
            before = first_record(connection, select(_KEYS).where(_KEYS.c.id == key_id), ApiKeyRecord)
            if before is None or before.tenant != self._tenant:
                return None
            if connection.execute(this.values(revoked_at=now)).rowcount == 0:
                return before
            after = replace(before, revoked_at=now)
            entries = _audit_entry(before), _audit_entry(after)
            append_audit(connection, self._tenant, by, REVOKE_KEY, _subject(after), *entries, now=now)
            return after


class ApiKeyVerification(Repository):
    """Keys of all tenants, by their ids, which differ."""

    def api_key(self, key_id: str) -> ApiKeyRecord | None:
        """Return a key, revoked or not."""
        return self._record(select(_KEYS).where(_KEYS.c.id == key_id), ApiKeyRecord)

    def all_api_keys(self) -> list[ApiKeyRecord]:
        """Return the keys of all tenants, oldest first."""
        return self._records(_OLDEST_FIRST, ApiKeyRecord)

    def record_api_key_uses(self, used_at: Mapping[str, float]) -> None:
        """Record when keys were used last; a time before the recorded one is ignored."""
        with self._writer.begin() as connection:
            for key_id, at in used_at.items():
                this = update(_KEYS).where(_KEYS.c.id == key_id, func.coalesce(_KEYS.c.last_used_at, 0.0) < at)
                connection.execute(this.values(last_used_at=at))


def _subject(record: ApiKeyRecord) -> str:
    return f"keys/{record.id}"


def _audit_entry(record: ApiKeyRecord) -> Json:
    """Return what the audit trail has of a key: nothing of its secret, and not when it was used."""
    return {
        "name": record.name,
        "scopes": list(record.scopes),
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
    }
