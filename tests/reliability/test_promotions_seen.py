"""A channel that moves while launchers read it from two servers: whole plans, and none older than it may be."""

import itertools
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from api.services.plans.channels import MAX_SHARED_AGE_SECONDS
from benchmarks.service.local_postgres import Postgres
from planner.domain.formats.canonical_json import plan_digest
from tests.support.service.patient import patient_client
from tests.support.service.server import Server
from tests.support.service.specs import tiny
from tests.support.thorough import THOROUGH, thorough

#: Versions of the channel; with `make thorough` ten times as many.
_NUM_VERSIONS = 250 if THOROUGH else 25
_NUM_AT_ONCE = 25
_SECONDS_BETWEEN = 0.12
_CHANNEL = "/v1/channels/moving/prod"
_ENCODINGS = ("identity", "gzip", "zstd")


@dataclass(frozen=True)
class Seen:
    """One fetch."""

    server: int
    began: float
    ended: float
    version: int


@dataclass
class History:
    """What was promoted when, by versions counted from 1, and what was read."""

    digests: list[str]
    begun: dict[int, float] = field(default_factory=dict)
    acknowledged: dict[int, float] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    not_whole: list[str] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)  # by ETag, of both servers
    stop: threading.Event = field(default_factory=threading.Event)

    def newest_before(self, moment: float) -> int:
        """The newest version whose promotion was acknowledged before."""
        return max((version for version, at in self.acknowledged.items() if at < moment), default=1)


@pytest.fixture
def servers(root: Path, tmp_path: Path, postgres: Postgres) -> Iterator[list[Server]]:
    url = postgres.new_database()
    servers = [Server(root, tmp_path / name, database_url=url) for name in ("one", "two")]
    try:
        yield [server.wait_until_ready() for server in servers]
    finally:
        for server in servers:
            server.stop()


def published(servers: list[Server]) -> list[str]:
    """Plans, no two of them equal; no more of them wait at a time than servers take."""
    digests: list[str] = []
    while len(digests) < _NUM_VERSIONS:
        places = []
        for number in range(len(digests), min(len(digests) + _NUM_AT_ONCE, _NUM_VERSIONS)):
            client = servers[number % 2].client
            spec = tiny(name=f"version-{number + 1}", model__tables__0__num_embeddings=1000 + number)
            places.append((client, client.post("/v1/solves", json=spec).headers["location"]))
        digests += [client.get(f"{place}?wait=60").json()["result"]["plan_digest"] for client, place in places]
    assert len(set(digests)) == _NUM_VERSIONS
    return digests


def read(history: History, number: int, url: str) -> None:
    """Fetch the plan of the channel again and again, in every encoding, whole and on condition."""
    version_of = {digest: version for version, digest in enumerate(history.digests, start=1)}
    known: dict[str, str] = {}
    with patient_client(url) as client:
        for encoding in itertools.cycle(_ENCODINGS):
            if history.stop.is_set():
                return
            headers = {"Accept-Encoding": encoding}
            if encoding in known:
                headers["If-None-Match"] = known[encoding]
            began = time.monotonic()
            answer = client.get(f"{_CHANNEL}/plan", headers=headers)
            ended = time.monotonic()
            digest, etag = answer.headers["x-plan-digest"], answer.headers["etag"]
            if answer.status_code == 304:
                if etag != known.pop(encoding):
                    history.not_whole.append(f"304 of {etag}")
            elif answer.status_code != 200:
                history.not_whole.append(answer.text)
                continue
            else:
                known[encoding] = etag
                whole = answer.headers.get("content-encoding", "identity") == encoding
                whole &= plan_digest(answer.json()) == answer.json()["plan_digest"] == digest
                whole &= history.bodies.setdefault(etag, answer.content) == answer.content
                if not whole:
                    history.not_whole.append(f"{digest} {etag}")
            history.seen.append(Seen(number, began, ended, version_of[digest]))


def promote(history: History, client: httpx.Client, version: int, condition: dict[str, str]) -> dict[str, str]:
    """Move the channel to a version; return the condition of the next move."""
    history.begun[version] = time.monotonic()
    answer = client.put(_CHANNEL, json={"plan_digest": history.digests[version - 1]}, headers=condition)
    history.acknowledged[version] = time.monotonic()
    assert answer.json()["version"] == version, answer.text
    return {"If-Match": answer.headers["etag"]}


@thorough
def test_every_fetch_is_one_plan_and_none_that_is_too_old(servers: list[Server]) -> None:
    history = History(published(servers))
    condition = promote(history, servers[0].client, 1, {"If-None-Match": "*"})
    readers = [
        threading.Thread(target=read, args=(history, number, str(server.client.base_url)))
        for number, server in enumerate(servers)
        for _ in range(2)
    ]
    for reader in readers:
        reader.start()
    try:
        for version in range(2, _NUM_VERSIONS + 1):
            condition = promote(history, servers[0].client, version, condition)
            time.sleep(_SECONDS_BETWEEN)
    finally:
        history.stop.set()
        for reader in readers:
            reader.join()
    assert history.not_whole == []
    assert len(history.bodies) > _NUM_VERSIONS  # in several encodings
    for one in history.seen:
        assert history.begun[one.version] <= one.ended, one
        # Where it was promoted, at once; on the other server a second later.
        allowed = 0.0 if one.server == 0 else MAX_SHARED_AGE_SECONDS
        assert one.version >= history.newest_before(one.began - allowed), one
    for number in range(len(servers)):
        mine = {one.version for one in history.seen if one.server == number}
        assert len(mine) > 3, mine  # the channel moved under the eyes of both
