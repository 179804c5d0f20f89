"""Keys of requests, so that a request that is sent twice happens once.

* A key is stored in the transaction that makes what the request asks for: either both exist, or neither.
* A key is stored for ``RETENTION_SECONDS``; after that it is as if it had never been used.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from api.store.sql import tables
from api.store.sql.repository import TenantRepository

RETENTION_SECONDS = 24 * 3600.0
_KEYS = tables.request_keys


class KeyReused(Exception):
    """The key was used before, for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """A request that carries a key."""

    scope: str  # equal keys of different addresses differ
    key: str
    fingerprint: str  # digest of the whole request
    at: float  # seconds since the epoch


class RequestKeys(TenantRepository):
    """Keys of the requests of one tenant."""

    def made_by(self, key: RequestKey | None) -> str | None:
        """Return the id of what the first request with this key made, ``None`` if this is the first.

        Raises ``KeyReused`` if the first request was another one.
        """
        if key is None:
            return None
        with self._readers.begin() as connection:
            return resource_of(connection, self._tenant, key)


def resource_of(connection: Connection, tenant: str, key: RequestKey | None) -> str | None:
    """Do as ``RequestKeys.made_by``, in a transaction."""
    if key is None:
        return None
    same = (_KEYS.c.tenant == tenant) & (_KEYS.c.scope == key.scope) & (_KEYS.c.key == key.key)
    query = select(_KEYS.c.fingerprint, _KEYS.c.resource).where(same)
    known = connection.execute(query.where(_KEYS.c.created_at >= key.at - RETENTION_SECONDS)).first()
    if known is None:
        return None
    if known.fingerprint != key.fingerprint:
        raise KeyReused
    return str(known.resource)


def insert_key(connection: Connection, tenant: str, key: RequestKey | None, resource: str) -> None:
    """Insert a key that ``resource_of`` has not found in this transaction, and delete those that are too old."""
    if key is None:
        return
    connection.execute(delete(_KEYS).where(_KEYS.c.created_at < key.at - RETENTION_SECONDS))
    values = {"scope": key.scope, "key": key.key, "fingerprint": key.fingerprint, "created_at": key.at}
    connection.execute(insert(_KEYS).values(tenant=tenant, **values, resource=resource))
