"""Streams of events over a real port: improvements as they come, storms of listeners, and the end of the server."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.cli.service.test_run_server import resident_bytes
from tests.api.http.protocol.test_server_sent_events import names
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(root, tmp_path, planner="plan_then_hang").wait_until_ready()
    yield server
    server.stop()


def submit(server: Server) -> str:
    return str(server.client.post("/v1/solves", json=tiny(solver__time_limit_seconds=60)).json()["id"])


def read(server: Server, path: str, chunks: list[bytes]) -> None:
    with httpx.stream("GET", f"http://127.0.0.1:{server.port}{path}", timeout=PATIENCE_SECONDS) as answer:
        chunks += answer.iter_raw()


@thorough
def test_improvements_come_while_the_solve_runs_and_a_cancel_ends_the_stream(server: Server) -> None:
    solve_id, chunks = submit(server), []
    reader = threading.Thread(target=read, args=(server, f"/v1/solves/{solve_id}/events", chunks))
    reader.start()
    wait_until(lambda: ("progress", "1") in names(b"".join(chunks)))
    assert reader.is_alive()
    server.client.post(f"/v1/solves/{solve_id}:cancel")
    reader.join(timeout=PATIENCE_SECONDS)
    assert not reader.is_alive()
    assert names(b"".join(chunks))[-2:] == [("progress", "1"), ("end", "1")]


@thorough
def test_a_stopping_server_ends_streams(server: Server) -> None:
    solve_id, chunks = submit(server), []
    reader = threading.Thread(target=read, args=(server, f"/v1/solves/{solve_id}/events", chunks))
    reader.start()
    wait_until(lambda: ("progress", "1") in names(b"".join(chunks)))
    errors = server.stop()
    reader.join(timeout=PATIENCE_SECONDS)
    assert not reader.is_alive()  # the body was ended as it should be, else reading it would have raised
    assert names(b"".join(chunks))[-1] == ("progress", "1")
    assert server.process.returncode == 0
    assert "Traceback" not in errors


@thorough
def test_storms_of_listeners_leave_nothing_behind(server: Server) -> None:
    solve_id = submit(server)
    request = f"GET /v1/solves/{solve_id}/events HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    def storm() -> None:
        with contextlib.ExitStack() as stack:
            sockets = [
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS))
                for _ in range(300)
            ]
            for one in sockets:
                one.sendall(request)
            for one in sockets:
                assert one.recv(12) == b"HTTP/1.1 200"

    seen: list[bytes] = []
    survivor = threading.Thread(target=read, args=(server, f"/v1/solves/{solve_id}/events", seen))
    survivor.start()
    storm()
    before = resident_bytes(server.process.pid)
    for _ in range(4):
        storm()
    assert resident_bytes(server.process.pid) - before < 32 * 1024**2
    files = Path("/proc") / str(server.process.pid) / "fd"
    wait_until(lambda: len(os.listdir(files)) < 150)
    server.client.post(f"/v1/solves/{solve_id}:cancel")
    survivor.join(timeout=PATIENCE_SECONDS)
    assert names(b"".join(seen))[-1][0] == "end"
