"""Refuses bodies that are too large or not JSON, and takes compressed ones apart as they come."""

from collections.abc import Iterator

import anyio.lowlevel
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.inflating import ENCODINGS, BrokenBody, Inflater
from api.refusal import refuse


class BodyTooLarge(Exception):
    """The body crossed the limit while it was read."""


class BodyLimitMiddleware:
    """Counts the bytes of a body as they come, and those that come out of a compressed one; keeps none of them."""

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
            await refuse(
                scope, receive, send, "unsupported-media-type", refusal, {"accept-encoding": ", ".join(ENCODINGS)}
            )
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

        encoding = _encoding(headers) if has_body else "identity"
        inflated = counting_receive if encoding == "identity" else _Inflated(counting_receive, encoding, self._limit)
        try:
            await self._app(scope, inflated, watching_send)
        except BodyTooLarge:
            if started:
                raise
            await refuse(scope, receive, send, "body-too-large", self._too_large())
        except BrokenBody:
            if started:
                raise
            await refuse(scope, receive, send, "broken-body", f"the body is no {encoding}, or a part of it is missing")

    def _too_large(self) -> str:
        return f"the body is larger than {self._limit} bytes (SHARDPLAN_MAX_BODY_BYTES)"


class _Inflated:
    """Receives what is in a compressed body; the limit holds for that as well."""

    def __init__(self, receive: Receive, encoding: str, limit: int) -> None:
        self._receive, self._limit = receive, limit
        self._inflater = Inflater(encoding)
        self._pieces: Iterator[bytes] = iter(())
        self._seen, self._all_came, self._ended = 0, False, False

    async def __call__(self) -> Message:
        """Return the next piece."""
        while not self._ended:
            piece = next(self._pieces, None)
            if piece is not None:
                self._seen += len(piece)
                if self._seen > self._limit:
                    raise BodyTooLarge
                await anyio.lowlevel.checkpoint()  # others get their turn between two pieces
                return {"type": "http.request", "body": piece, "more_body": True}
            if self._all_came:
                self._inflater.end()
                self._ended = True
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._all_came = not message.get("more_body", False)
            self._pieces = self._inflater.feed(message.get("body", b""))
        return await self._receive()


def _encoding(headers: Headers) -> str:
    return headers.get("content-encoding", "identity").strip().lower()


def _media_refusal(headers: Headers) -> str:
    """Return why a body of these headers is refused, or an empty string."""
    if _encoding(headers) not in ("identity", *ENCODINGS):
        return f"bodies may be compressed with {' or '.join(ENCODINGS)}, once"
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        return "send Content-Type: application/json (UTF-8)"
    return ""
