"""Refuses bodies that are too large, compressed or not JSON, before anything reads them."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.refusal import refuse


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
            await refuse(scope, receive, send, "unsupported-media-type", refusal, {"accept-encoding": "identity"})
            return
        if length.isdecimal() and (len(length) > 18 or int(length) > self._limit):
            await refuse(scope, receive, send, "body-too-large", self._too_large())
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
            await refuse(scope, receive, send, "body-too-large", self._too_large())

    def _too_large(self) -> str:
        return f"the body is larger than {self._limit} bytes (SHARDPLAN_MAX_BODY_BYTES)"


def _media_refusal(headers: Headers) -> str:
    """Return why a body of these headers is refused, or an empty string."""
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return "compressed bodies are not accepted; send the JSON as it is"
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        return "send Content-Type: application/json (UTF-8)"
    return ""
