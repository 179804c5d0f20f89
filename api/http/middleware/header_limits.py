"""Connections whose requests must begin in time and in few bytes: middlewares see none before its head is whole."""

import asyncio
import enum
import logging
import secrets

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from api.http.protocol.problem_response import closing_problem
from api.observability.request_id import HEADER
from api.schemas.error_kinds import ERROR_KINDS

#: Of a head, and of anything that follows a body and is no head. Launchers send some hundred bytes; proxies take 8 to
#: 32 KiB.
MAX_HEAD_BYTES = 64 * 1024

log = logging.getLogger(__name__)


class _Wait(enum.Enum):
    """What a connection is waited for, while nothing is being answered."""

    HEAD = enum.auto()
    REST = enum.auto()  # of a body whose request was answered before all of it came


class BoundedHeads(HttpToolsProtocol):
    """Closes connections that keep the server waiting for a head, or for the rest of a body that is not read.

    uvicorn's own limit begins with the first answer of a connection and ends with the next byte that comes. Subclasses
    set the two waits, in seconds.
    """

    head_patience_seconds: float
    body_patience_seconds: float

    _is_in_head = _is_in_body = _has_moved = _has_large_head = False
    _num_idle_bytes = 0  # since a head or a piece of a body was whole
    _waits_for: _Wait | None = None
    _end_of_patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_for(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what brings no request further."""
        self._has_moved = False
        super().data_received(data)
        if self.transport.is_closing():
            self._wait_for(None)
            return
        self._num_idle_bytes = 0 if self._has_moved else self._num_idle_bytes + len(data)
        if self._num_idle_bytes > MAX_HEAD_BYTES:
            self._close_with("head-too-large", ERROR_KINDS["head-too-large"].explanation)
            return
        self._watch()

    def on_message_begin(self) -> None:
        """Take the first byte of a head."""
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Take the last byte of a head."""
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            self._has_large_head = True
            raise ValueError  # to the parser as good as a request that it cannot read: see ``send_400_response``
        self._is_in_head, self._is_in_body, self._has_moved = False, True, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._has_moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the last byte of a request."""
        self._is_in_body, self._has_moved = False, True
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP as everything else that is wrong; a request before it that is whole is answered."""
        if self._has_large_head:
            self._close_with("head-too-large", ERROR_KINDS["head-too-large"].explanation)
        elif self._is_answering() and not self._is_in_body:
            self.cycle.keep_alive = False
        else:
            self._close_with("broken-request", msg)

    def _is_answering(self) -> bool:
        return not getattr(self.cycle, "response_complete", True)  # None before the first request

    def _watch(self) -> None:
        # While a request is answered, middlewares watch its body, and the next head may come as slowly as it likes:
        # once the answer is complete, uvicorn's own limit begins.
        if self._is_answering():
            self._wait_for(None)
        else:
            self._wait_for(_Wait.REST if self._is_in_body else _Wait.HEAD)

    def _wait_for(self, wait: _Wait | None) -> None:
        if wait is self._waits_for:
            return
        if self._end_of_patience is not None:
            self._end_of_patience.cancel()
            self._end_of_patience = None
        self._waits_for = wait
        if wait is not None:
            seconds = self.head_patience_seconds if wait is _Wait.HEAD else self.body_patience_seconds
            self._end_of_patience = self.loop.call_later(seconds, self._close_the_slow)

    def _close_the_slow(self) -> None:
        self._close_with("request-timeout", f"the head was not complete after {self.head_patience_seconds:g} seconds")

    def _close_with(self, code: str, detail: str) -> None:
        """Close the connection, with an answer where a request has begun and none is on its way."""
        self._wait_for(None)
        if self.transport.is_closing():
            return
        log.info("closed a connection before its request was whole: %s", code)
        is_answered = self._is_in_head or code == "broken-request"
        # An answer that is complete before the body is whole was this request's: it gets no second one.
        has_begun = self._is_in_body and getattr(self.cycle, "response_started", False)
        is_of_another = self._is_answering() and not self._is_in_body
        if is_answered and not (has_begun or is_of_another):
            self.transport.write(_answer(code, detail))
        self.transport.close()


def bounded_heads(head_patience_seconds: float, body_patience_seconds: float) -> type[BoundedHeads]:
    """Return the protocol with these waits."""
    waits = {"head_patience_seconds": head_patience_seconds, "body_patience_seconds": body_patience_seconds}
    return type("ConfiguredBoundedHeads", (BoundedHeads,), waits)


def _answer(code: str, detail: str) -> bytes:
    request_id = secrets.token_hex(8)
    headers, body = closing_problem(code, detail, request_id, {HEADER.lower(): request_id})
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return b"".join([STATUS_LINE[ERROR_KINDS[code].status], head.encode("ascii"), b"\r\n", body])
