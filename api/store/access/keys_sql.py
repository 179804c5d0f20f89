"""Keys of callers in a database."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection, Engine, Select, func, insert, select, update

from api.store.access.audit import CREATE_KEY, REVOKE_KEY, Actor, Json
from api.store.access.audit_sql import append_audit
from api.store.access.keys import ApiKeyRecord
from api.store.sql import tables
from api.store.sql.connections import Writer

_KEYS = tables.api_keys
_OLDEST_FIRST = select(_KEYS).order_by(_KEYS.c.created_at, _KEYS.c.id)


class SqlApiKeys:
    """Fulfils the protocols of ``api.store.access.keys`` over connections that read and a writer."""

    _readers: Engine
    _writer: Writer
    _tenant: str

    def add_api_key(self, record: ApiKeyRecord, *, by: Actor) -> ApiKeyRecord:
        """Keep a new key."""
        with self._writer.begin() as connection:
            kept = replace(record, tenant=self._tenant)
            connection.execute(insert(_KEYS).values({**asdict(kept), "scopes": list(kept.scopes)}))
            subject, after = _subject(record), _told(record)
            append_audit(
                connection, self._tenant, by, CREATE_KEY, subject, before=None, after=after, now=record.created_at
            )
            return kept

    def api_key(self, key_id: str) -> ApiKeyRecord | None:
        """Return a key."""
        with self._readers.begin() as connection:
            return _find(connection, key_id)

    def api_keys(self) -> list[ApiKeyRecord]:
        """Return the keys of this tenant, oldest first."""
        return self._keys(_OLDEST_FIRST.where(_KEYS.c.tenant == self._tenant))

    def all_api_keys(self) -> list[ApiKeyRecord]:
        """Return the keys of all tenants, oldest first."""
        return self._keys(_OLDEST_FIRST)

    def revoke_api_key(self, key_id: str, *, by: Actor, now: float) -> ApiKeyRecord | None:
        """Revoke a key."""
        with self._writer.begin() as connection:
            this = update(_KEYS).where(_KEYS.c.id == key_id, _KEYS.c.revoked_at.is_(None))
            before = _find(connection, key_id)
            if before is None or before.tenant != self._tenant:
                return None
            if connection.execute(this.values(revoked_at=now)).rowcount == 0:
                return before
            after = _find(connection, key_id)
            assert after is not None
            told = {"before": _told(before), "after": _told(after)}
            append_audit(connection, self._tenant, by, REVOKE_KEY, _subject(after), **told, now=now)
            return after

    def use_api_keys(self, used_at: Mapping[str, float]) -> None:
        """Say when keys were used last."""
        with self._writer.begin() as connection:
            for key_id, at in used_at.items():
                this = update(_KEYS).where(_KEYS.c.id == key_id, func.coalesce(_KEYS.c.last_used_at, 0.0) < at)
                connection.execute(this.values(last_used_at=at))

    def _keys(self, query: "Select[Any]") -> list[ApiKeyRecord]:
        with self._readers.begin() as connection:
            return [ApiKeyRecord(**row) for row in connection.execute(query).mappings()]


def _find(connection: Connection, key_id: str) -> ApiKeyRecord | None:
    row = connection.execute(select(_KEYS).where(_KEYS.c.id == key_id)).mappings().first()
    return None if row is None else ApiKeyRecord(**row)


def _subject(record: ApiKeyRecord) -> str:
    return f"keys/{record.id}"


def _told(record: ApiKeyRecord) -> Json:
    """What the trail says of a key: nothing of its secret, and not when it was used."""
    return {
        "name": record.name,
        "scopes": list(record.scopes),
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
    }
