"""Refuses bodies that are too large, too slow or not JSON, and takes compressed ones apart as they come."""

import time
from collections.abc import Iterator

import anyio
import anyio.lowlevel
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.auth.principal import name_of_caller
from api.http.middleware.body_budget import BodyBudget, HeldBody
from api.http.middleware.decompression import ENCODINGS, Inflater, RejectedBody
from api.http.protocol.problem_response import refuse
from cost_models.text.read_number import whole_number

#: Of a body that comes no faster, somebody sends a byte now and then to keep a connection busy.
LEAST_BYTES_PER_SECOND = 32 * 1024


class BodyLimitMiddleware:
    """Counts the bytes of a body as they come, and those that come out of a compressed one; keeps none of them.

    A body is waited for as long as ``patience_seconds``, and a second more for each ``LEAST_BYTES_PER_SECOND`` that
    have come; what is done with it meanwhile does not count. What routes keep of it until they answer is counted in
    ``budget``, by caller.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, patience_seconds: float, budget: BodyBudget) -> None:
        self._app, self._limit, self._patience_seconds, self._budget = app, max_body_bytes, patience_seconds, budget

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        has_body = "transfer-encoding" in headers or (length not in ("", "0"))
        if has_body and (problem := _media_problem(headers)):
            await refuse(
                scope, receive, send, "unsupported-media-type", problem, {"accept-encoding": ", ".join(ENCODINGS)}
            )
            return
        declared = whole_number(length[:19]) or 0
        if declared > self._limit:
            too_large = _too_large(self._limit)
            await refuse(scope, receive, send, too_large.code, too_large.detail)
            return
        seen, waited, is_whole, started = 0, 0.0, not has_body, False

        async def counting_receive() -> Message:
            nonlocal seen, waited, is_whole
            if is_whole:  # a listener now waits for the caller to hang up
                return await receive()
            began = time.monotonic()
            with anyio.move_on_after(self._patience_seconds + seen / LEAST_BYTES_PER_SECOND - waited) as patience:
                message = await receive()
            waited += time.monotonic() - began
            if patience.cancelled_caught:
                came = f"of the body, {seen} bytes came in {waited:.0f} s (SHARDPLAN_BODY_PATIENCE_SECONDS)"
                raise RejectedBody("request-timeout", came)
            is_whole = not message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self._limit:
                raise _too_large(self._limit)
            return message

        async def watching_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        encoding = _encoding(headers) if has_body else "identity"
        inflated = counting_receive if encoding == "identity" else _Inflated(counting_receive, encoding, self._limit)
        held = HeldBody(self._budget, name_of_caller(scope))

        async def holding_receive() -> Message:
            message = await inflated()
            if message.get("body"):
                held.hold(message["body"])
            return message

        try:
            held.expect(declared)
            await self._app(scope, holding_receive, watching_send)
        except ClientDisconnect:
            return  # no caller waits for an answer, and to hang up is no error
        except RejectedBody as error:
            if started:
                raise
            rejected = error.code, error.detail
        else:
            return
        finally:
            held.release()
        # Only here: the error's traceback has the pieces that came.
        await refuse(scope, receive, send, *rejected)


def _too_large(limit: int) -> RejectedBody:
    return RejectedBody("body-too-large", f"the body is larger than {limit} bytes (SHARDPLAN_MAX_BODY_BYTES)")


class _Inflated:
    """Receives what is in a compressed body; the limit holds for that as well."""

    def __init__(self, receive: Receive, encoding: str, limit: int) -> None:
        self._receive, self._limit = receive, limit
        self._inflater = Inflater(encoding)
        self._pieces: Iterator[bytes] = iter(())
        self._seen, self._all_came, self._ended = 0, False, False

    async def __call__(self) -> Message:
        while not self._ended:
            piece = next(self._pieces, None)
            if piece is not None:
                self._seen += len(piece)
                if self._seen > self._limit:
                    raise _too_large(self._limit)
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


def _media_problem(headers: Headers) -> str:
    """Return why a body of these headers is refused, or an empty string."""
    if _encoding(headers) not in ("identity", *ENCODINGS):
        return f"bodies may be compressed with {' or '.join(ENCODINGS)}, once"
    media_type, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if media_type.strip().lower() != "application/json" or charset not in ("", "utf-8"):
        return "send Content-Type: application/json (UTF-8)"
    return ""
