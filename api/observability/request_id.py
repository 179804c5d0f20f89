"""Gives every request an id, which stands in the answer, in problems and in the log."""

import re
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER = "X-Request-Id"
_NAME = HEADER.lower().encode()
_ACCEPTED = re.compile(rb"[A-Za-z0-9_.\-]{1,64}")


def request_id_of(scope: Mapping[str, Any]) -> str:
    return str(scope.get("state", {}).get("request_id", ""))


class RequestIdMiddleware:
    """Takes the caller's ``X-Request-Id`` where it is harmless, else makes one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Headers as they come, not as Starlette wraps them: this is on the way of every fetch.
        given = next((value for name, value in scope["headers"] if name == _NAME), b"")
        request_id = given.decode() if _ACCEPTED.fullmatch(given) else secrets.token_hex(8)
        own = (_NAME, request_id.encode())
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*(header for header in message["headers"] if header[0] != _NAME), own]
            await send(message)

        await self._app(scope, receive, send_with_id)
