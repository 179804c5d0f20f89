"""``Idempotency-Key``: a request that is sent again is answered by what it made the first time."""

import contextlib
import hashlib
import time
from collections.abc import Iterator
from typing import Annotated

from fastapi import Header, Request

from api.services.errors import ApiError
from api.store.solves.idempotency import RequestKey
from planner.domain.formats.canonical_json import digest

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern="^[!-~]([ -~]{0,253}[!-~])?$",
        description="Name of this request, 1 to 255 printable ASCII characters: sent again, it happens once.",
    ),
]


def request_key(request: Request, body: bytes, key: str | None) -> RequestKey | None:
    """Return the key of a request with its fingerprint, ``None`` if the caller gave none."""
    if key is None:
        return None
    identity = {"query": sorted(request.query_params.multi_items()), "body": hashlib.sha256(body).hexdigest()}
    return RequestKey(scope=request.url.path, key=key, fingerprint=digest(identity), at=time.time())


class KeysInFlight:
    """The keys of a tenant's requests that are being read and stored now. To be used in the event loop."""

    def __init__(self, tenant: str, held: set[tuple[str, str, str]]) -> None:
        """``held`` is of all tenants."""
        self._tenant, self._keys = tenant, held

    @contextlib.contextmanager
    def holding(self, key: RequestKey | None) -> Iterator[None]:
        """Reject a request while another one with its key is on its way into the store."""
        if key is None:
            yield
            return
        name = (self._tenant, key.scope, key.key)
        if name in self._keys:
            raise ApiError("key-in-flight")
        self._keys.add(name)
        try:
            yield
        finally:
            self._keys.discard(name)
