"""The use cases of keys: make and revoke."""

import time
from collections.abc import Callable, Sequence

from api.http.auth.keys.format import Key
from api.http.auth.scopes import SCOPES
from api.services.errors import found
from api.store.access.audit import Actor
from api.store.access.keys import ApiKeyRecord
from api.store.database import TenantStore


class ApiKeyService:
    """The use cases of keys; ``forget`` is called with those that were revoked."""

    def __init__(
        self,
        store: TenantStore,
        *,
        forget: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._forget, self._clock = store, forget, clock

    def create(
        self, name: str, scopes: Sequence[str], *, expires_in_seconds: float | None, by: Actor
    ) -> tuple[ApiKeyRecord, str]:
        """Make a key; the text is returned here and never again."""
        key, now = Key.new(), self._clock()
        record = ApiKeyRecord(
            id=key.id,
            name=name,
            secret_digest=key.digest,
            scopes=[scope for scope in SCOPES if scope in scopes],
            created_at=now,
            expires_at=None if expires_in_seconds is None else now + expires_in_seconds,
        )
        return self._store.add_api_key(record, by=by), key.text

    def revoke(self, key_id: str, *, by: Actor) -> ApiKeyRecord:
        """Revoke a key for good; doing it twice is harmless."""
        record = found(self._store.revoke_api_key(key_id, by=by, now=self._clock()), "key")
        self._forget(key_id)
        return record
