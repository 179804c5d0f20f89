"""Verifies the keys that requests show: from memory for a few seconds, so that fetching plans stays fast."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from anyio import CancelScope, CapacityLimiter
from anyio.to_thread import run_sync
from sqlalchemy.exc import SQLAlchemyError

from api.http.auth.keys.format import Key
from api.http.auth.principal import Principal, bad_token
from api.services.errors import ApiError
from api.store.access.keys import ApiKeyRecord, ApiKeyVerification

#: A key that is revoked elsewhere is refused here after this time at the latest.
REMEMBERED_SECONDS = 5.0
#: How often the last uses of keys are written.
WRITTEN_EVERY_SECONDS = 60.0
MAX_REMEMBERED = 10_000
#: Reads at a time: a caller who makes keys up must not take the threads that fetches and other requests need.
_MOST_READS = 4


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known:
    record: ApiKeyRecord | None
    read_at: float  # before the database was asked, by the monotonic clock


class ApiKeyVerifier:
    """What is known of keys. To be used in the event loop, but for ``forget``."""

    def __init__(
        self,
        store: ApiKeyVerification,
        *,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._clock, self._ticks = store, clock, ticks
        self._known: OrderedDict[str, _Known] = OrderedDict()
        # Apart, so that keys that somebody makes up do not push out those that there are.
        self._unknown: OrderedDict[str, _Known] = OrderedDict()
        self._reads = CapacityLimiter(_MOST_READS)
        self._reading: dict[str, asyncio.Task[ApiKeyRecord | None]] = {}
        self._used_at: dict[str, float] = {}

    async def caller(self, authorization: str | None) -> Principal | ApiError:
        if authorization is None:
            detail = "send the header Authorization: Bearer with a key"
            return ApiError("unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
        scheme, _, credentials = authorization.partition(" ")
        key = Key.parse(credentials.strip(" ")) if scheme.lower() == "bearer" else None
        if key is None:
            return bad_token("the header Authorization has no key of this service")
        try:
            record = await self._find(key.id)
        except SQLAlchemyError:
            log.exception("the store failed; the key %s cannot be verified", key.id)
            return ApiError("storage-unavailable")
        if record is None or not key.has_digest(record.secret_digest):
            return bad_token("the key is not known")
        if record.revoked_at is not None:
            return bad_token(f"the key {record.id} was revoked")
        now = self._clock()
        if record.expires_at is not None and now >= record.expires_at:
            return bad_token(f"the key {record.id} has expired")
        self._used_at[record.id] = now
        return Principal(record.id, frozenset(record.scopes), record.tenant)

    def forget(self, key_id: str) -> None:
        """Ask the database again for a key that was changed here; what is being read was so before."""
        self._drop(key_id)
        self._reading.pop(key_id, None)

    def _drop(self, key_id: str) -> None:
        self._known.pop(key_id, None)
        self._unknown.pop(key_id, None)

    async def _find(self, key_id: str) -> ApiKeyRecord | None:
        known = self._known.get(key_id) or self._unknown.get(key_id)
        if known is not None and self._ticks() - known.read_at < REMEMBERED_SECONDS:
            return known.record
        # Thousands of launchers may show one key in the same instant: one of them asks the database.
        reading = self._reading.get(key_id)
        if reading is None:
            reading = self._reading[key_id] = asyncio.create_task(self._read(key_id))
            reading.add_done_callback(lambda ended: self._done(key_id, ended))
        return await asyncio.shield(reading)

    async def _read(self, key_id: str) -> ApiKeyRecord | None:
        async with self._reads:
            began = self._ticks()
            record = await run_sync(self._store.api_key, key_id)
        if self._reading.get(key_id) is not asyncio.current_task():
            return record  # for those who asked before it was changed
        self._drop(key_id)
        remembered = self._unknown if record is None else self._known
        remembered[key_id] = _Known(record, began)
        if len(remembered) > MAX_REMEMBERED:
            remembered.popitem(last=False)
        return record

    def _done(self, key_id: str, ended: object) -> None:
        if self._reading.get(key_id) is ended:
            del self._reading[key_id]

    async def run(self) -> None:
        """Write the last uses of keys from time to time, and once more when cancelled."""
        try:
            while True:
                await asyncio.sleep(WRITTEN_EVERY_SECONDS)
                await self.write_uses()
        finally:
            with CancelScope(shield=True):
                await self.write_uses()

    async def write_uses(self) -> None:
        """Write when keys were used last; what cannot be written now is written with the next."""
        if not self._used_at:
            return
        used_at, self._used_at = self._used_at, {}
        try:
            await run_sync(self._store.record_api_key_uses, used_at)
        except SQLAlchemyError as error:
            log.warning("the store failed; last uses of keys are written later: %s", error)
            self._used_at = {**used_at, **self._used_at}
        except Exception:
            log.exception("last uses of keys could not be written")
