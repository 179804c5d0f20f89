"""Keys of requests, so that a request that is sent twice happens once.

* A key is stored in the transaction that makes what the request asks for: either both exist, or neither.
* A key is stored for ``KEPT_SECONDS``; after that it is as if it had never been used.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from api.store.sql import tables
from api.store.sql.repository import Repository

KEPT_SECONDS = 24 * 3600.0
_KEYS = tables.request_keys


class KeyReused(Exception):
    """The key was used before, for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKey:
    """A request that carries a key."""

    scope: str  # keys of different addresses have nothing to do with each other
    key: str
    fingerprint: str  # digest of all that the request says
    at: float  # seconds since the epoch


class RequestKeys(Repository):
    """Keys of the requests of one tenant."""

    def made_by(self, key: RequestKey | None) -> str | None:
        """Return the id of what the first request with this key made, ``None`` where this is the first.

        Raises ``KeyReused`` where the first said something else.
        """
        if key is None:
            return None
        with self._readers.begin() as connection:
            return known_resource(connection, self._tenant, key)


def known_resource(connection: Connection, tenant: str, key: RequestKey | None) -> str | None:
    """Return the id of what the first request of a tenant with this key made."""
    if key is None:
        return None
    same = (_KEYS.c.tenant == tenant) & (_KEYS.c.scope == key.scope) & (_KEYS.c.key == key.key)
    query = select(_KEYS.c.fingerprint, _KEYS.c.resource).where(same)
    known = connection.execute(query.where(_KEYS.c.created_at >= key.at - KEPT_SECONDS)).first()
    if known is None:
        return None
    if known.fingerprint != key.fingerprint:
        raise KeyReused
    return str(known.resource)


def remember(connection: Connection, tenant: str, key: RequestKey | None, resource: str) -> None:
    """Keep a key in the transaction that makes what it asks for, and forget those that were kept long enough.

    In the same transaction ``known_resource`` has found that nobody had used it, and writers take turns.
    """
    if key is None:
        return
    connection.execute(delete(_KEYS).where(_KEYS.c.created_at < key.at - KEPT_SECONDS))
    values = {"scope": key.scope, "key": key.key, "fingerprint": key.fingerprint, "created_at": key.at}
    connection.execute(insert(_KEYS).values(tenant=tenant, **values, resource=resource))
