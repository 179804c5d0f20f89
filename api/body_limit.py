"""Refuses bodies that are too large, compressed or not JSON, before anything reads them."""

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import MEDIA_TYPE, problem_bytes
from api.problems import PROBLEMS
from api.request_id import request_id_of

#: After a refusal the rest of a body is read and thrown away for this long, so that the
#: caller, who may still be sending, sees the answer instead of a broken connection.
LINGER_SECONDS = 2.0


class BodyTooLarge(Exception):
    """The body crossed the limit while it was read."""


class BodyLimitMiddleware:
    """Counts the bytes of a body as they come; keeps none of them."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app, self._limit = app, max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        has_body = "transfer-encoding" in headers or (length not in ("", "0"))
        if has_body and (refusal := _media_refusal(headers)):
            await self._refuse(scope, receive, send, "unsupported-media-type", refusal)
            return
        if length.isdecimal() and (len(length) > 18 or int(length) > self._limit):
            await self._refuse(scope, receive, send, "body-too-large", self._too_large())
            return
        seen, started = 0, False

        async def counting_receive() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise BodyTooLarge
            return message

        async def watching_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, counting_receive, watching_send)
        except BodyTooLarge:
            if started:
                raise
            await self._refuse(scope, receive, send, "body-too-large", self._too_large())

    def _too_large(self) -> str:
        return f"the body is larger than {self._limit} bytes (SHARDPLAN_MAX_BODY_BYTES)"

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, code: str, detail: str) -> None:
        """Answer at once, then let the sender finish for a moment, and close."""
        body = problem_bytes(code, detail, request_id_of(scope))
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            (b"cache-control", b"no-store"),
        ]
        if code == "unsupported-media-type":
            headers.append((b"accept-encoding", b"identity"))
        await send({"type": "http.response.start", "status": PROBLEMS[code].status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if "expect" not in Headers(scope=scope):
            with anyio.move_on_after(LINGER_SECONDS):
                while (await receive()).get("more_body", False):
                    pass
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _media_refusal(headers: Headers) -> str:
    """Return why a body of these headers is refused, or an empty string."""
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return "compressed bodies are not accepted; send the JSON as it is"
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        return "send Content-Type: application/json (UTF-8)"
    return ""
