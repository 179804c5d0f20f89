"""A power cut at any moment: what is on the disk then is whole, and has everything that was acknowledged."""

import random
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.service.patient import patient_client
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import THOROUGH, thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until

#: Moments at which the disk is looked at; with `make thorough` ten times as many.
_NUM_CUTS = 150 if THOROUGH else 15
_SEED = 8
_NUM_CLIENTS = 3
#: What a database and its log of writes are in; the index of the log (-shm) is memory, and lost.
_SUFFIXES = ("", "-wal")


class Acknowledged:
    """What the server has answered for, as far as clients know."""

    def __init__(self) -> None:
        self.accepted: dict[str, str] = {}  # ids of solves, and under which key they were sent
        self.succeeded: dict[str, str] = {}  # and their plans
        self.promoted: dict[str, int] = {}  # channels, and their newest version

    def copy(self) -> "Acknowledged":
        """What is known by now."""
        copied = Acknowledged()
        copied.accepted, copied.succeeded = dict(self.accepted), dict(self.succeeded)
        copied.promoted = dict(self.promoted)
        return copied


def work(server: Server, seen: Acknowledged, stop: threading.Event, number: int) -> None:
    """Submit solves, wait for one in three, and point a channel at its plan, again and again."""
    channel, etag, turn = f"/v1/channels/c{number}", "", 0
    with patient_client(str(server.client.base_url)) as client:
        while not stop.is_set():
            turn += 1
            name = f"of-{number}-{turn}"
            headers = {"Idempotency-Key": name, **({"Prefer": "wait=30"} if turn % 3 == 0 else {})}
            spec = tiny(name=name, model__tables__0__num_embeddings=10_000 * (number + 1) + turn)
            solve = client.post("/v1/solves", json=spec, headers=headers).raise_for_status().json()
            seen.accepted[solve["id"]] = name
            if solve["state"] != "succeeded":
                continue
            seen.succeeded[solve["id"]] = solve["result"]["plan_digest"]
            condition = {"If-Match": etag} if etag else {"If-None-Match": "*"}
            body = {"plan_digest": solve["result"]["plan_digest"]}
            answer = client.put(channel, json=body, headers=condition).raise_for_status()
            etag = answer.headers["etag"]
            seen.promoted[f"c{number}"] = answer.json()["version"]


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(root, tmp_path / "data", solver_processes=2).wait_until_ready()
    server.client.post("/v1/solves", json=tiny(), headers={"Prefer": "wait=60"})  # the solvers are loaded by now
    yield server
    server.stop()


def cut(server: Server, source: Path, target: Path) -> None:
    """Copy what is written in one instant, in which the server does nothing."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        while (Path("/proc") / str(server.process.pid) / "stat").read_text().rpartition(")")[2].split()[0] != "T":
            pass
        target.mkdir()
        for name in ("shardplan.sqlite", "queue.sqlite"):
            for suffix in _SUFFIXES:
                if (source / f"{name}{suffix}").exists():
                    shutil.copyfile(source / f"{name}{suffix}", target / f"{name}{suffix}")
    finally:
        server.process.send_signal(signal.SIGCONT)


def tear(target: Path, draw: random.Random) -> None:
    """Have half a page more in the log: what was being written when the power went away."""
    with (target / "shardplan.sqlite-wal").open("ab") as log:
        log.write(draw.randbytes(draw.randrange(1, 6000)))


def check(folder: Path, seen: Acknowledged) -> None:
    """Open a copy as any program would, and look for what was acknowledged."""
    with closing(sqlite3.connect(folder / "shardplan.sqlite")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        states = dict(connection.execute("SELECT id, state FROM solves"))
        keys = dict(connection.execute("SELECT resource, key FROM request_keys"))
        plans = {digest for (digest,) in connection.execute("SELECT digest FROM plans")}
        versions = dict(connection.execute("SELECT name, version FROM channels"))
        history = connection.execute("SELECT name, count(*), max(version) FROM channel_history GROUP BY name")
        lines = {name: (number, last) for name, number, last in history}
    assert seen.accepted.items() <= keys.items()
    assert set(seen.accepted) <= set(states)
    assert {solve for solve, state in states.items() if state == "succeeded"} >= set(seen.succeeded)
    assert plans >= set(seen.succeeded.values())
    for name, version in seen.promoted.items():
        assert versions[name] >= version
        assert lines[name] == (versions[name], versions[name])


def wait_for_load(seen: Acknowledged) -> None:
    """Wait until all clients have pointed a channel at a plan, and many solves were accepted, however slow it is."""
    wait_until(lambda: len(seen.accepted) > _NUM_CUTS and len(seen.promoted) >= _NUM_CLIENTS)


@thorough
def test_what_was_acknowledged_is_on_the_disk_at_any_moment(server: Server, root: Path, tmp_path: Path) -> None:
    seen, stop, draw = Acknowledged(), threading.Event(), random.Random(_SEED)
    clients = [threading.Thread(target=work, args=(server, seen, stop, number)) for number in range(_NUM_CLIENTS)]
    for client in clients:
        client.start()
    known = []
    try:
        for number in range(_NUM_CUTS):
            assert not stop.wait(draw.uniform(0.02, 0.4))
            if number == _NUM_CUTS - 1:
                wait_for_load(seen)
            known.append(seen.copy())  # before the cut: all of this was answered
            cut(server, tmp_path / "data", tmp_path / str(number))
    finally:
        stop.set()
        for client in clients:
            client.join()
    for number, acknowledged in enumerate(known):
        if number % 2:
            tear(tmp_path / str(number), draw)
        check(tmp_path / str(number), acknowledged)

    last = Server(root, tmp_path / str(_NUM_CUTS - 1)).wait_until_ready()
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        for solve_id in known[-1].accepted:
            while (state := last.client.get(f"/v1/solves/{solve_id}?wait=30").json()["state"]) in ("queued", "running"):
                assert time.monotonic() < deadline
            assert state == "succeeded"
        for digest in known[-1].succeeded.values():
            assert last.client.get(f"/v1/plans/{digest}").json()["plan_digest"] == digest
    finally:
        last.stop()
