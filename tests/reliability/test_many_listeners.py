"""A thousand listeners over real connections: idle ones cost little, and none misses an event."""

import asyncio
import contextlib
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.cli.service.test_run_server import resident_bytes
from tests.support.service.server import Server
from tests.support.service.specs import TINY
from tests.support.thorough import thorough

_NUM_STEADY, _NUM_LEAVING = 600, 400
_MOST_FILES = 4096
_OTHER_FILES = 150  # connections to the database, most of them
_MOST_GROWTH_BYTES = 64 * 1024**2


@contextlib.contextmanager
def open_files(number: int) -> Iterator[None]:
    """Let processes begin with so many open files."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < _MOST_FILES:
        pytest.skip("a process may not have so many connections here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    """A server that began with the files that systems mostly let processes begin with."""
    with open_files(1024):
        server = Server(root, tmp_path, planner="plan_by_and_by", max_event_streams=4000)
    yield server.wait_until_ready()
    server.stop()


class Listener:
    """Somebody who follows a solve, and comes back where he left off."""

    def __init__(self, port: int, path: str, *, leaves_after: int | None) -> None:
        self._port, self._path, self._leaves_after = port, path, leaves_after
        self.seen: list[int] = []
        self.is_connected, self.has_ended = asyncio.Event(), False

    async def follow(self) -> None:
        """Listen to the end of the solve, over as many connections as it takes."""
        while not self.has_ended:
            await self._listen()

    async def _listen(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        last = f"Last-Event-ID: {self.seen[-1]}\r\n" if self.seen else ""
        writer.write(f"GET {self._path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{last}\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        self.is_connected.set()
        rest, before = b"", len(self.seen)
        while True:
            content = await reader.read(65_536)
            rest += content
            *whole, rest = rest.split(b"\n\n")
            for block in whole:
                self._take(block)
            if self.has_ended or (self._leaves_after and len(self.seen) - before >= self._leaves_after):
                writer.transport.abort()
                return
            assert content, "the stream broke off"

    def _take(self, block: bytes) -> None:
        fields = dict(line.split(b": ", 1) for line in block.splitlines() if line.startswith((b"id: ", b"event: ")))
        if fields.get(b"event") == b"progress":
            self.seen.append(int(fields[b"id"]))
        self.has_ended |= fields.get(b"event") == b"end"


def num_files(server: Server) -> int:
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@thorough
def test_a_thousand_listeners_miss_nothing(server: Server, tmp_path: Path) -> None:
    solve = server.client.post("/v1/solves", json=TINY).json()
    path = f"/v1/solves/{solve['id']}/events"
    files, before = num_files(server), resident_bytes(server.process.pid)

    async def test() -> list[Listener]:
        listeners = [
            Listener(server.port, path, leaves_after=None if number < _NUM_STEADY else 1 + number % 3)
            for number in range(_NUM_STEADY + _NUM_LEAVING)
        ]
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            for listener in listeners:
                group.create_task(listener.follow())
            for listener in listeners:
                await listener.is_connected.wait()
            await asyncio.sleep(1.0)  # nothing happens
            assert num_files(server) >= files + _NUM_STEADY
            assert resident_bytes(server.process.pid) - before < _MOST_GROWTH_BYTES
            (tmp_path / "go").touch()
        return listeners

    with open_files(_MOST_FILES):
        listeners = asyncio.run(test())
    ended = server.client.get(f"/v1/solves/{solve['id']}").json()
    assert ended["state"] == "succeeded"
    for listener in listeners:
        assert listener.has_ended
    seen = {tuple(listener.seen) for listener in listeners}
    assert len(seen) == 1, seen
    (numbers,) = seen
    assert numbers == tuple(range(1, len(numbers) + 1))
    assert len(numbers) > 8  # of 19 and a few: a busy server tells two that come together as one
    assert resident_bytes(server.process.pid) - before < _MOST_GROWTH_BYTES
    for _ in range(200):
        if num_files(server) <= files + _OTHER_FILES:
            break
        asyncio.run(asyncio.sleep(0.05))
    assert num_files(server) <= files + _OTHER_FILES
