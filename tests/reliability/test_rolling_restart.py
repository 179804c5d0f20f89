"""Servers that are restarted one after the other: launchers notice nothing, and every solve ends."""

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.service.local_postgres import Postgres
from tests.support.service.server import Server
from tests.support.service.specs import TINY, raw, tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

_CHANNEL = "/v1/channels/ads/prod"
_NUM_LAUNCHERS = 4
#: Times that each server is restarted.
_NUM_ROUNDS = 1


class Pair:
    """Two servers on one database; a client that one does not answer goes to the other."""

    def __init__(self, root: Path, folder: Path, url: str) -> None:
        self._root, self._folder, self._url = root, folder, url
        self.servers = [self._start(0), self._start(1)]
        self.stop = threading.Event()
        self.fetched, self.failed, self.turned = 0, [], 0
        self.solves: dict[int, str] = {}
        self.lock = threading.Lock()

    def _start(self, number: int) -> Server:
        return Server(self._root, self._folder / f"{number}", database_url=self._url)

    def restart(self, number: int) -> None:
        """Tell a server to stop, as a deployment does, and start another one on its data."""
        before = self.servers[number]
        message = before.stop(signal.SIGTERM)
        assert before.process.returncode == 0, message
        assert "Traceback" not in message
        self.servers[number] = self._start(number).wait_until_ready()

    def ask(self, first: int, send: Callable[[str], httpx.Response]) -> httpx.Response | None:
        """Send a request to one server and, where it gives no answer, to the other; ``None``: neither did."""
        for number in (first, 1 - first):
            try:
                answer = send(str(self.servers[number].client.base_url))
            except httpx.TransportError:
                with self.lock:
                    self.turned += 1
                continue
            if answer.status_code != 503:
                return answer
        return None

    def fetch(self, number: int) -> None:
        """Fetch the plan all the time, over a connection that is kept."""
        with httpx.Client(timeout=PATIENCE_SECONDS) as client:
            while not self.stop.is_set():
                answer = self.ask(number % 2, lambda url: client.get(f"{url}{_CHANNEL}/plan"))
                with self.lock:
                    if answer is not None and answer.status_code == 200 and answer.json()["name"] == "promoted":
                        self.fetched += 1
                    else:
                        self.failed.append("no answer" if answer is None else answer.text)
                time.sleep(0.005)

    def submit(self) -> None:
        """Submit solves all the time, each under a key, so that it is safe to send one again."""
        number = 0
        while not self.stop.is_set():
            spec = tiny(name=f"{number}", model__tables__0__num_embeddings=3000 + number)
            headers = {"Idempotency-Key": f"{number}"}
            answer = self.ask(
                number % 2,
                lambda url, spec=spec, headers=headers: httpx.post(
                    f"{url}/v1/solves", json=spec, headers=headers, timeout=PATIENCE_SECONDS
                ),
            )
            if answer is not None and answer.status_code in (200, 202):
                self.solves[number] = answer.json()["id"]
                number += 1
            time.sleep(0.1)


@pytest.fixture
def pair(root: Path, tmp_path: Path, postgres: Postgres) -> Iterator[Pair]:
    pair = Pair(root, tmp_path, postgres.new_database())
    try:
        for server in pair.servers:
            server.wait_until_ready()
        yield pair
    finally:
        for server in pair.servers:
            server.stop()


@thorough
def test_servers_are_restarted_one_by_one_and_no_launcher_notices(pair: Pair) -> None:
    client = pair.servers[0].client
    solve = client.post("/v1/solves", json=tiny(name="promoted"), headers={"Prefer": "wait=30"}).json()
    client.put(_CHANNEL, json={"plan_digest": solve["result"]["plan_digest"]}).raise_for_status()
    threads = [threading.Thread(target=pair.fetch, args=(number,)) for number in range(_NUM_LAUNCHERS)]
    threads.append(threading.Thread(target=pair.submit))
    for thread in threads:
        thread.start()
    try:
        for _ in range(_NUM_ROUNDS):
            for number in (0, 1):
                pair.restart(number)
                time.sleep(0.3)
    finally:
        pair.stop.set()
        for thread in threads:
            thread.join()
    assert pair.failed == []
    assert pair.fetched > 200
    assert pair.turned  # they had to go to the other server
    assert len(pair.solves) > 10
    client = pair.servers[0].client
    for solve_id in pair.solves.values():
        assert client.get(f"/v1/solves/{solve_id}?wait=60").json()["state"] == "succeeded"
    listed = client.get("/v1/solves?page_size=500").json()["solves"]
    assert len(listed) == len(pair.solves) + 1  # none was made twice


@thorough
def test_a_request_that_a_server_has_begun_to_read_is_answered_before_it_stops(root: Path, tmp_path: Path) -> None:
    server, body = Server(root, tmp_path).wait_until_ready(), raw(TINY)
    head = "POST /v1/solves HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as slow:
        slow.sendall(head.encode() + body[:10])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.process.poll() is None
        slow.sendall(body[10:])
        answer = b"".join(iter(lambda: slow.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 202 ")
    solve = json.loads(answer.partition(b"\r\n\r\n")[2])
    server.stop()
    server = Server(root, tmp_path).wait_until_ready()
    try:
        assert server.client.get(f"/v1/solves/{solve['id']}?wait=30").json()["state"] == "succeeded"
    finally:
        server.stop()
