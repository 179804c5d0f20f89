"""Notifies observers of every request once it is over: metrics and the log of accesses share one look at it."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.observability.metrics import CALLER_GONE

#: Hears of a request that is over: its scope, status, seconds, and the bytes of the answer's body. In the event loop,
#: so it must be quick.
Observer = Callable[[Mapping[str, Any], int, float, int], None]


class ObservedRequestsMiddleware:
    """Measures requests; what fails on the way counts as 500, which is what its caller will see.

    Where nothing failed and nothing was answered, the caller hung up before: that is no failure of the service.
    """

    def __init__(self, app: ASGIApp, *, observers: Sequence[Observer]) -> None:
        self._app, self._observers = app, observers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status, num_bytes = CALLER_GONE, 0

        async def watching_send(message: Message) -> None:
            nonlocal status, num_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                num_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watching_send)
        except BaseException:
            status = 500 if status == CALLER_GONE else status
            raise
        finally:
            seconds = time.perf_counter() - began
            for observer in self._observers:
                observer(scope, status, seconds, num_bytes)
