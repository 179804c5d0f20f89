"""A server that dies around any transaction loses nothing that it has acknowledged, and publishes nothing twice."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from api.store.access.audit import LOCAL
from api.store.database import Database
from api.store.tenants import DEFAULT_TENANT
from api.store.webhooks.records import EVENTS, WebhookRecord
from tests.support.service.failpoints import METHODS, POINTS
from tests.support.service.receivers import Receiver, receiving
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import THOROUGH, thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until

#: One moment of each transaction; with `make thorough` all of them, which takes some minutes.
CHOSEN = (
    POINTS
    if THOROUGH
    else [
        *("accept:after", "submit:commit", "begin:commit", "incumbent:commit", "publish:commit", "promote:commit"),
        *("enqueue:commit", "delivered:before"),
    ]
)


def spec_of(number: int) -> dict[str, object]:
    """A spec whose plan is no other's."""
    return tiny(name=f"solve-{number}", model__tables__0__num_embeddings=1000 + number)


class Client:
    """Sends everything until it is answered, and remembers what was."""

    def __init__(self, root: Path, folder: Path, receiver: Receiver) -> None:
        self._root, self._folder, self.receiver = root, folder, receiver
        self.acknowledged: dict[int, str] = {}
        self.promoted = 0

    def die_at(self, point: str, number: int) -> None:
        """Have a solve and a promotion while the server is to die at a point."""
        server = self.server(test_failpoint=point)
        try:
            self.use(server, number)
            assert server.process.wait(timeout=PATIENCE_SECONDS) == -9, f"the server did not die at {point}"
        finally:
            server.stop()

    def server(self, **settings: object) -> Server:
        """A server that tells the receiver."""
        hosts = f"http://127.0.0.1:{self.receiver.port}"
        return Server(self._root, self._folder, webhook_hosts=hosts, **settings)

    def subscribe(self) -> None:
        """Add a webhook while no server runs."""
        record = WebhookRecord(
            id="wh_1", url=self.receiver.url, events=EVENTS, name="n", secret="YQ==", created_at=time.time()
        )
        with closing(Database.of_file(self._folder / "shardplan.sqlite")) as database:
            database.for_tenant(DEFAULT_TENANT).add_webhook(record, by=LOCAL)

    def heard(self) -> dict[str, set[str]]:
        """Messages of ends of solves and of promotions that came, by what they are about: their ids."""
        found: dict[str, set[str]] = {}
        for message in list(self.receiver.messages):
            data = json.loads(message.body)["data"]
            about = data.get("solve_id") or f"version {data['version']}"
            found.setdefault(about, set()).add(message.headers["webhook-id"])
        return found

    def use(self, server: Server, number: int) -> None:
        """Submit a solve, wait for its end, promote its plan; give up where the server dies."""
        try:
            server.wait_until_ready()
            answer = server.client.post("/v1/solves", json=spec_of(number))
        except (AssertionError, httpx.TransportError):
            return
        assert answer.status_code in (200, 202), answer.text
        self.acknowledged[number] = answer.json()["id"]
        try:
            solve = self.ended(server, number)
            self.promote(server, solve["result"]["plan_digest"])
        except httpx.TransportError:
            return

    def ended(self, server: Server, number: int) -> dict[str, object]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            solve = server.client.get(f"/v1/solves/{self.acknowledged[number]}?wait=10").json()
            if solve["state"] == "succeeded":
                return solve
            assert time.monotonic() < deadline, solve

    def promote(self, server: Server, digest: str) -> None:
        current = server.client.get("/v1/channels/prod")
        headers = {"If-Match": current.headers["etag"]} if current.status_code == 200 else {"If-None-Match": "*"}
        answer = server.client.put("/v1/channels/prod", json={"plan_digest": digest}, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        self.promoted = answer.json()["version"]


@pytest.fixture
def client(root: Path, tmp_path: Path) -> Iterator[Client]:
    with receiving() as receiver:
        client = Client(root, tmp_path, receiver)
        client.subscribe()
        yield client


@thorough
def test_whatever_is_acknowledged_outlives_a_kill_at_any_point(client: Client, tmp_path: Path) -> None:
    for number, point in enumerate(CHOSEN):
        client.die_at(point, number)
    server = client.server()
    try:
        server.wait_until_ready()
        # Those that died before they could answer are sent again, as their clients would.
        for number in range(len(CHOSEN)):
            client.use(server, number)
        digests = {}
        for number in range(len(CHOSEN)):
            solve = client.ended(server, number)
            plan = server.client.get(solve["result"]["plan_url"]).json()
            body = {"spec": spec_of(number), "plan": plan}
            assert server.client.post("/v1/plans:evaluate", json=body).json()["valid"]
            digests[number] = solve["result"]["plan_digest"]
        history = server.client.get("/v1/channels/prod/history?page_size=500").json()["versions"]
        assert server.client.get("/v1/solves?state=queued").json()["solves"] == []
        assert server.client.get("/v1/solves?state=running").json()["solves"] == []
        # Every end and every version is told, by one message each: it may come twice, under one id.
        about = {*client.acknowledged.values(), *(f"version {item['version']}" for item in history)}
        wait_until(lambda: about <= set(client.heard()))
        assert {len(ids) for ids in client.heard().values()} == {1}
    finally:
        server.stop()
    # A line without gaps, which has every version that was acknowledged.
    assert [item["version"] for item in history] == list(range(len(history), 0, -1))
    assert len(history) >= client.promoted >= len(CHOSEN)
    assert len(set(digests.values())) == len(CHOSEN)
    connection = sqlite3.connect(tmp_path / "shardplan.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM plans").fetchone() == (len(CHOSEN),)
    (results,) = zip(*connection.execute("SELECT result FROM solves WHERE state = 'succeeded'"), strict=True)
    connection.close()
    assert sorted(json.loads(result)["plan_digest"] for result in results) == sorted(digests.values())


@thorough
def test_there_is_a_point_around_every_transaction_that_matters() -> None:
    assert len(POINTS) == 3 * len(METHODS) == 24
    assert {point.partition(":")[0] for point in CHOSEN} == set(METHODS)
