"""Bytes of bodies that a server holds, in all and by caller; and callers who hang up."""

import asyncio
import gzip
import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from api.http.middleware.body_budget import BodyBudget
from api.http.middleware.body_limits import BodyLimitMiddleware
from api.http.middleware.request_observers import ObservedRequestsMiddleware
from tests.support.service.live import settings_for

KIB = 1024
LIMIT = 64 * KIB


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Keep the whole body, and say how long it is."""
    body = str(len(await Request(scope, receive).body())).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Caller:
    """Sends one body piece by piece."""

    def __init__(self, served: object, address: str, headers: dict[str, str] | None = None) -> None:
        names = {"content-type": "application/json", "transfer-encoding": "chunked", "expect": "x", **(headers or {})}
        raw = [(name.encode(), value.encode()) for name, value in names.items()]
        self._scope = {"type": "http", "method": "POST", "path": "/", "headers": raw, "client": (address, 1)}
        self._queue: asyncio.Queue[Message] = asyncio.Queue()
        self.status, self.body, self.headers = 0, b"", {}
        self._task = asyncio.create_task(served(self._scope, self._queue.get, self._send))

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        self.body += message.get("body", b"")

    async def send(self, piece: bytes, *, more: bool = True) -> int:
        """Send a piece; return the status of the answer, 0 while there is none."""
        self._queue.put_nowait({"type": "http.request", "body": piece, "more_body": more})
        for _ in range(20):
            await asyncio.sleep(0)
        return self.status

    async def end(self) -> bytes:
        await self.send(b"", more=False)
        await self._task
        return self.body

    async def hang_up(self) -> None:
        self._queue.put_nowait({"type": "http.disconnect"})
        await self._task


def limited(*, all_kib: int, caller_kib: int) -> BodyLimitMiddleware:
    budget = BodyBudget(max_bytes=all_kib * KIB, max_caller_bytes=caller_kib * KIB)
    return BodyLimitMiddleware(app, max_body_bytes=LIMIT, patience_seconds=60.0, budget=budget)


def test_each_caller_has_its_share_and_all_together_theirs() -> None:
    async def test() -> None:
        served = limited(all_kib=100, caller_kib=64)
        first, second = Caller(served, "10.0.0.1"), Caller(served, "10.0.0.1")
        assert await first.send(b" " * 40 * KIB) == 0
        assert await second.send(b" " * 20 * KIB) == 0
        assert await second.send(b" " * 5 * KIB) == 429
        assert (json.loads(second.body)["code"], second.headers[b"retry-after"]) == ("caller-bodies-full", b"1")
        other = Caller(served, "10.0.0.2")
        assert await other.send(b" " * 60 * KIB) == 0  # what was refused is held no more
        third = Caller(served, "10.0.0.3")
        assert await third.send(b" " * KIB) == 503
        assert (json.loads(third.body)["code"], third.headers[b"retry-after"]) == ("bodies-full", b"1")
        assert await first.end() == b"40960"
        await other.hang_up()
        again = Caller(served, "10.0.0.1")
        assert await again.send(b" " * 64 * KIB) == 0
        assert await again.end() == b"65536"

    asyncio.run(test())


def test_a_length_that_would_be_too_much_is_refused_unread() -> None:
    async def test() -> None:
        served = limited(all_kib=100, caller_kib=64)
        first = Caller(served, "10.0.0.1")
        await first.send(b" " * 40 * KIB)
        second = Caller(served, "10.0.0.1", {"content-length": str(30 * KIB)})
        await asyncio.sleep(0)
        assert second.status == 429
        third = Caller(served, "10.0.0.1", {"content-length": str(24 * KIB)})
        assert await third.send(b" " * 24 * KIB, more=False) == 200
        await first.hang_up()

    asyncio.run(test())


def test_what_comes_out_of_a_compressed_body_counts() -> None:
    async def test() -> None:
        served = limited(all_kib=100, caller_kib=64)
        held = Caller(served, "10.0.0.1", {"content-encoding": "gzip"})
        packed = gzip.compress(b" " * 60 * KIB)
        assert await held.send(packed) == 0
        assert await Caller(served, "10.0.0.1").send(b" " * 5 * KIB) == 429
        await held.hang_up()

    asyncio.run(test())


def test_single_bytes_count_as_what_they_take() -> None:
    async def test() -> None:
        served = limited(all_kib=1, caller_kib=1)
        caller = Caller(served, "10.0.0.1")
        assert [await caller.send(b" ") for _ in range(9)] == [0] * 8 + [429]

    asyncio.run(test())


@pytest.mark.parametrize("name", ["max_caller_bodies_bytes", "max_bodies_bytes"])
def test_a_limit_below_one_body_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="less than one body may have"):
        settings_for(tmp_path, max_body_bytes=2048, **{name: 2047})
    assert settings_for(tmp_path, max_body_bytes=2048, **{name: 2048})
    defaults = settings_for(tmp_path, max_body_bytes=2048)
    assert (defaults.caller_bodies_bytes, defaults.bodies_bytes) == (8192, 16384)


def test_a_caller_who_hangs_up_is_no_failure() -> None:
    statuses: list[int] = []

    async def test() -> None:
        served = ObservedRequestsMiddleware(
            limited(all_kib=64, caller_kib=64), observers=[lambda _scope, status, *_: statuses.append(status)]
        )
        caller = Caller(served, "10.0.0.1")
        await caller.send(b" ")
        await caller.hang_up()
        answered = Caller(served, "10.0.0.1")
        await answered.end()

    asyncio.run(test())
    assert statuses == [499, 200]


def test_what_fails_is_a_failure() -> None:
    statuses: list[int] = []

    async def fail(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise ZeroDivisionError

    async def test() -> None:
        served = ObservedRequestsMiddleware(fail, observers=[lambda _scope, status, *_: statuses.append(status)])
        with pytest.raises(ZeroDivisionError):
            await Caller(served, "10.0.0.1").end()

    asyncio.run(test())
    assert statuses == [500]
