"""Bodies that are too large or of another kind are refused before they are read; compressed ones are taken apart."""

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import zstandard
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from api.http.middleware.body_budget import BodyBudget
from api.http.middleware.body_limits import BodyLimitMiddleware
from tests.support.service.live import Live, settings_for
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, raw
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

JSON = {"Content-Type": "application/json"}
LIMIT = 64 * 1024
WIDE = BodyBudget(max_bytes=2**40, max_caller_bytes=2**40)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> object:
    with Live.of(tmp_path_factory.mktemp("small"), max_body_bytes=LIMIT) as live:
        yield live


class Chunks:
    """A body in chunks of 16 KiB that counts how much of it was taken."""

    def __init__(self, num_bytes: int) -> None:
        self.num_bytes, self.taken = num_bytes, 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.taken < self.num_bytes:
            self.taken += 16_384
            yield b" " * 16_384


def test_a_body_at_the_limit_is_read_and_one_byte_more_is_not(small: Live) -> None:
    at_limit = raw(TINY).ljust(LIMIT)
    assert small.request("POST", "/v1/specs:validate", content=at_limit, headers=JSON).status_code == 200
    refused = small.request("POST", "/v1/specs:validate", content=at_limit + b" ", headers=JSON)
    assert str(LIMIT) in assert_problem(refused, 413, "body-too-large")["detail"]
    assert small.num_solves() == 0


def test_a_body_without_a_length_is_refused_as_it_crosses(small: Live) -> None:
    refused = small.request("POST", "/v1/solves", content=Chunks(10 * LIMIT), headers=JSON)
    assert_problem(refused, 413, "body-too-large")
    assert small.num_solves() == 0


@pytest.mark.parametrize("length", ["99999999999999999999999999", str(LIMIT + 1)])
def test_a_length_beyond_the_limit_is_refused_unread(small: Live, length: str) -> None:
    body = Chunks(16_384)
    refused = small.request("POST", "/v1/solves", content=body, headers={**JSON, "Content-Length": length})
    assert_problem(refused, 413, "body-too-large")


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": ""},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json; charset=utf-16"},
        {"Content-Type": "application/json", "Content-Encoding": "br"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip, gzip"},
        {"Content-Type": "text/plain", "Content-Encoding": "gzip"},
    ],
)
def test_bodies_of_another_kind(small: Live, headers: dict[str, str]) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    refused = small.request("POST", "/v1/solves", content=bomb, headers=headers)
    assert_problem(refused, 415, "unsupported-media-type")
    assert refused.headers["accept-encoding"] == "gzip, zstd"


COMPRESSED = {"gzip": gzip.compress, "zstd": zstandard.compress}


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_compressed_bodies(small: Live, encoding: str) -> None:
    compress, headers = COMPRESSED[encoding], {**JSON, "Content-Encoding": encoding}
    plain = small.request("POST", "/v1/specs:validate", content=raw(TINY), headers=JSON)
    at_limit, half = raw(TINY).ljust(LIMIT), len(raw(TINY)) // 2
    whole, parts = compress(at_limit), compress(at_limit[:half]) + compress(at_limit[half:])
    for body in (whole, parts):
        answer = small.request("POST", "/v1/specs:validate", content=body, headers=headers)
        assert (answer.status_code, answer.json()) == (200, plain.json())
    refused = small.request("POST", "/v1/specs:validate", content=compress(at_limit + b" "), headers=headers)
    assert str(LIMIT) in assert_problem(refused, 413, "body-too-large")["detail"]


@thorough
@pytest.mark.parametrize("encoding", COMPRESSED)
def test_compressed_bodies_that_are_broken(small: Live, encoding: str) -> None:
    whole = COMPRESSED[encoding](raw(TINY))
    for body in (whole[:-1], whole + b"more and more", b"{}", raw(TINY)):
        headers = {**JSON, "Content-Encoding": encoding}
        assert_problem(small.request("POST", "/v1/solves", content=body, headers=headers), 400, "broken-body")
    assert small.num_solves() == 0


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_bodies_in_parts(small: Live, encoding: str) -> None:
    compress, headers = COMPRESSED[encoding], {**JSON, "Content-Encoding": encoding}
    whole = raw(TINY)
    pieces = b"".join(compress(whole[at : at + 64]) for at in range(0, len(whole), 64))
    assert len(pieces) > 5 * len(compress(b""))
    assert small.request("POST", "/v1/specs:validate", content=pieces, headers=headers).status_code == 200
    # Thousands of parts with nothing in them are work without end for a few bytes.
    empty = compress(b"") * 2000
    for body in (empty, empty + compress(whole)):
        assert_problem(small.request("POST", "/v1/specs:validate", content=body, headers=headers), 400, "broken-body")


@thorough
@pytest.mark.parametrize("encoding", COMPRESSED)
def test_a_gibibyte_in_a_mebibyte_is_refused_soon_and_with_little_memory(encoding: str) -> None:
    make = zlib.compressobj(9, wbits=31) if encoding == "gzip" else zstandard.ZstdCompressor().compressobj()
    zeros = bytes(2**20)
    bomb = b"".join([*(make.compress(zeros) for _ in range(1024)), make.flush()])
    assert len(bomb) < 2**20
    chunks, statuses = [bomb[at : at + 65_536] for at in range(0, len(bomb), 65_536)], []

    async def receive() -> dict[str, object]:
        body = chunks.pop(0) if chunks else b""
        return {"type": "http.request", "body": body, "more_body": bool(chunks)}

    async def send(message: dict[str, object]) -> None:
        statuses.append(message.get("status"))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()

    named = {"content-type": "application/json", "content-encoding": encoding}
    headers = [(name.encode(), value.encode()) for name, value in named.items()]
    scope = {"type": "http", "headers": [*headers, (b"transfer-encoding", b"chunked")], "state": {}}
    tracemalloc.start()
    asyncio.run(
        BodyLimitMiddleware(app, max_body_bytes=2**25, patience_seconds=PATIENCE_SECONDS, budget=WIDE)(
            scope, receive, send
        )
    )
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert statuses[0] == 413
    assert peak_bytes < 2**25 + 2**24


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON; charset=UTF-8"])
def test_json_is_json(small: Live, media_type: str) -> None:
    headers = {"Content-Type": media_type}
    assert small.request("POST", "/v1/specs:validate", content=raw(TINY), headers=headers).status_code == 200


@pytest.mark.parametrize("encoding", ["identity", "gzip", "br"])
def test_a_missing_body_is_an_empty_document(small: Live, encoding: str) -> None:
    answer = small.post("/v1/solves", headers={"Content-Encoding": encoding})
    problem = assert_problem(answer, 422, "invalid-problem")
    assert problem["errors"][0]["message"] == "the document is empty"


def test_the_default_limit_is_32_mebibytes(tmp_path: Path) -> None:
    assert settings_for(tmp_path).max_body_bytes == 33_554_432


def answer_to(body: AsyncIterator[bytes], patience_seconds: float) -> tuple[int, bytes]:
    """What is answered to a body that comes by and by, and what of it the app behind had read."""
    statuses, read = [], b""

    async def receive() -> dict[str, object]:
        piece = await anext(body, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    async def send(message: dict[str, object]) -> None:
        statuses.append(message.get("status"))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal read
        read = await Request(scope, receive).body()
        await send({"type": "http.response.start", "status": 200, "headers": []})

    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "headers": headers, "state": {}}
    limited = BodyLimitMiddleware(app, max_body_bytes=2**25, patience_seconds=patience_seconds, budget=WIDE)
    asyncio.run(limited(scope, receive, send))
    return statuses[0], read


async def pieces(number: int, num_bytes: int, seconds_between: float) -> AsyncIterator[bytes]:
    for _ in range(number):
        await asyncio.sleep(seconds_between)
        yield b" " * num_bytes


def test_a_body_that_trickles_is_given_up_and_a_slow_one_is_read() -> None:
    assert answer_to(pieces(36_000, 1, 0.1), patience_seconds=0.5) == (408, b"")
    # One second of patience more for each 32 KiB.
    status, read = answer_to(pieces(10, 16_384, 0.1), patience_seconds=0.5)
    assert (status, len(read)) == (200, 163_840)


@thorough
def test_what_is_done_with_a_body_takes_no_patience() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async for _ in Request(scope, receive).stream():
            await asyncio.sleep(0.3)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        assert (await receive())["type"] == "http.disconnect"

    messages: list[dict[str, object]] = [
        {"type": "http.request", "body": b" ", "more_body": more} for more in (1, 1, 0)
    ]
    statuses = []

    async def receive() -> dict[str, object]:
        if not messages:
            await asyncio.sleep(1)
            return {"type": "http.disconnect"}
        return messages.pop(0)

    async def send(message: dict[str, object]) -> None:
        statuses.append(message.get("status"))

    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "headers": headers, "state": {}}
    asyncio.run(BodyLimitMiddleware(app, max_body_bytes=2**25, patience_seconds=0.5, budget=WIDE)(scope, receive, send))
    assert statuses == [200]
