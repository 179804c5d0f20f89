"""Requests that never begin, never end their head, or drag on where nobody reads: each connection is closed in time."""

import asyncio
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from api.http.middleware.header_limits import MAX_HEAD_BYTES, bounded_heads
from tests.support.service.sockets import LONG_SECONDS, heard
from tests.support.thorough import thorough

PATIENCE_SECONDS = 0.5
GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the number of bytes of the body, or as the address says: unread, or after more than the patience."""
    num_bytes, path = 0, scope["path"]
    if path == "/later":
        await asyncio.sleep(3 * PATIENCE_SECONDS)
    while path != "/unread":
        message = await receive()
        num_bytes += len(message.get("body", b""))
        if not message.get("more_body", False):
            break
    body = str(num_bytes).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    protocol = bounded_heads(PATIENCE_SECONDS, 2 * PATIENCE_SECONDS)
    # Its own limit for idle connections must not do the work.
    config = uvicorn.Config(
        app, port=0, http=protocol, lifespan="off", log_level="warning", timeout_keep_alive=int(2 * LONG_SECONDS)
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = server.force_exit = True
    thread.join()


def problem_in(answer: bytes, status: int, code: str) -> None:
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0].startswith(f"HTTP/1.1 {status} ")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    document = json.loads(body)
    assert (document["code"], document["status"]) == (code, status)
    assert headers["content-type"] == "application/problem+json"
    assert headers["connection"] == "close"
    assert headers["x-request-id"] == document["request_id"] != ""
    assert ("retry-after" in headers) == document["retryable"] == (code == "request-timeout")


def test_a_head_that_trickles_is_answered_and_its_connection_closed(port: int) -> None:
    problem_in(heard(port, GET, then=lambda: b"X"), 408, "request-timeout")


def test_a_connection_on_which_nothing_comes_is_closed_without_a_word(port: int) -> None:
    assert heard(port) == b""


def test_empty_lines_are_no_request(port: int) -> None:
    assert heard(port, then=lambda: b"\r\n") == b""


def test_the_next_head_of_a_connection_is_waited_for_no_longer_than_the_first(port: int) -> None:
    letters = itertools.chain(GET + b"X: ", itertools.repeat(ord("y")))
    stated = heard(port, GET + b"\r\n", then=lambda: bytes([next(letters)]))
    first, _, second = stated.partition(b"\r\n\r\n0")
    assert first.startswith(b"HTTP/1.1 200 ")
    problem_in(second, 408, "request-timeout")


def test_the_rest_of_a_body_that_no_one_reads_is_not_waited_for_without_end(port: int) -> None:
    stated = heard(port, POST.replace(b"/ ", b"/unread ") + b"\r\n", then=lambda: b"1\r\nx\r\n")
    assert stated.startswith(b"HTTP/1.1 200 ")
    assert stated.count(b"HTTP/1.1 ") == 1


def test_a_head_without_end_is_refused_as_it_crosses_the_limit(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS) as mine:
        mine.sendall((GET + b"X: ").ljust(4096, b"x"))
        for _ in range(MAX_HEAD_BYTES // 4096 - 1):
            mine.sendall(b"x" * 4096)
        mine.settimeout(0.1)
        with pytest.raises(TimeoutError):
            mine.recv(1)
        mine.settimeout(LONG_SECONDS)
        mine.sendall(b"x")
        problem_in(mine.recv(65_536), 431, "head-too-large")
        assert mine.recv(1) == b""


def test_trailers_without_end_are_not_preserved(port: int) -> None:
    assert heard(port, POST + b"\r\n0\r\nX: ", then=lambda: b"x" * 4096, pause=0.001) == b""


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", b"HELO x\r\n\r\n", b"GET / HTTP/1.1\r\nA B: c\r\n\r\n"])
def test_what_is_not_http_gets_a_problem_document(port: int, sent: bytes) -> None:
    problem_in(heard(port, sent), 400, "broken-request")


@thorough
def test_what_comes_in_time_is_left_alone(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS) as mine:
        # A head just below the limit, an answer after the patience, a body that takes longer than any patience (which
        # is for middlewares to judge), and pauses of less than the patience between requests.
        mine.sendall(b"GET /later HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (MAX_HEAD_BYTES - 50) + b"\r\n\r\n")
        assert mine.recv(65_536).endswith(b"\r\n\r\n0")
        mine.sendall(POST + b"\r\n")
        for _ in range(8):
            mine.sendall(b"1\r\nx\r\n")
            time.sleep(PATIENCE_SECONDS / 2)
        mine.sendall(b"0\r\n\r\n")
        assert mine.recv(65_536).endswith(b"\r\n\r\n8")
        for _ in range(4):
            time.sleep(PATIENCE_SECONDS / 2)
            mine.sendall(GET + b"\r\n")
            assert mine.recv(65_536).endswith(b"\r\n\r\n0")


def test_an_answer_is_finished_whatever_comes_after_its_request(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS) as mine:
        mine.sendall(b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
        assert mine.recv(65_536).endswith(b"\r\n\r\n0")
        mine.sendall(b"\r\n")
        assert mine.recv(65_536).endswith(b"\r\n\r\n0")


@pytest.mark.parametrize(
    "large",
    [
        GET + b"X: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
        GET + b"X: y\r\n" * (MAX_HEAD_BYTES // 6) + b"\r\n",
        GET.replace(b"/ ", b"/" + b"x" * MAX_HEAD_BYTES + b" ") + b"\r\n",
    ],
)
def test_a_large_head_is_refused_in_how_few_pieces_it_may_come(port: int, large: bytes) -> None:
    problem_in(heard(port, large), 431, "head-too-large")


def test_a_broken_body_is_answered_unless_an_answer_is_on_its_way(port: int) -> None:
    problem_in(heard(port, POST + b"\r\n", b"1\r\nx\r\n", b"zz\r\n"), 400, "broken-request")
    stated = heard(port, POST.replace(b"/ ", b"/unread ") + b"\r\n", b"zz\r\n")
    assert stated.count(b"HTTP/1.1 ") == 1


def test_a_request_that_was_answered_gets_no_second_answer_for_its_broken_body(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS) as mine:
        mine.sendall(POST.replace(b"/ ", b"/unread ") + b"\r\n")
        stated = b""
        while not stated.endswith(b"\r\n\r\n0"):
            stated += mine.recv(65_536)
        mine.sendall(b"zz\r\n")
        assert mine.recv(65_536) == b""


@thorough
@pytest.mark.parametrize("apart", [True, False])
def test_a_request_that_is_whole_is_answered_whatever_follows_it(port: int, apart: bool) -> None:
    whole, junk = b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n", b"HELO x\r\n\r\n"
    stated = heard(port, *((whole, junk) if apart else (whole + junk,)))
    assert stated.startswith(b"HTTP/1.1 200 ")
    assert stated.endswith(b"\r\n\r\n0")
