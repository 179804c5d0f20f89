"""Keys of requests in a database."""

from sqlalchemy import Connection, Engine, delete, insert, select

from api.store.solves.idempotency import KEPT_SECONDS, KeyReused, RequestKey
from api.store.sql import tables

_KEYS = tables.request_keys


class RequestKeys:
    """Fulfils ``api.store.solves.idempotency.KeyStore`` over an engine that reads."""

    _readers: Engine
    _tenant: str

    def made_by(self, key: RequestKey | None) -> str | None:
        """Return the id of what the first request with this key made."""
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
