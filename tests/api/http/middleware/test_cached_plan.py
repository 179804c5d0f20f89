"""The short way of a fetch and the routes behind it: the same answers, byte for byte."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator

import httpx
import pytest

from api.services.plans import channels as channels_module
from api.services.plans.channels import MAX_SHARED_AGE_SECONDS, ChannelMemory, ChannelService
from api.store.plans.channels import ChannelRecord
from tests.support.service.live import Live
from tests.support.service.specs import TINY

HEADERS: tuple[dict[str, str], ...] = (
    {},
    *(
        {"Accept-Encoding": value}
        for value in ("zstd", "gzip", "identity", "gzip;q=0, zstd;q=0", "br", "*", "ZSTD;q=0.5")
    ),
)
CONDITIONS = ("", "*", '"other"', "this", "weak", "list")


@pytest.fixture(scope="module")
def digest(live: Live) -> str:
    """A plan that a channel points at, in memory as a whole and for rank 1."""
    digest = live.solve(TINY)["result"]["plan_digest"]
    assert live.put("/v1/channels/a/prod", {"plan_digest": digest}).status_code == 201
    for query in ("", "?rank=0", "?rank=1", "?form=compact"):
        assert live.get(f"/v1/channels/a/prod/plan{query}").status_code == 200
    return str(digest)


@contextlib.contextmanager
def without(live: Live, what: str) -> Iterator[None]:
    """Take a part of the app's state away: ``memory`` leaves the routes, ``services`` the short way."""
    before = getattr(live.app.state, what)
    setattr(live.app.state, what, None)
    try:
        yield
    finally:
        setattr(live.app.state, what, before)


def reported(answer: httpx.Response) -> tuple[object, ...]:
    raw = b"".join(answer.stream) if not answer.is_closed else answer.content
    return answer.status_code, sorted(answer.headers.raw), raw


def both(live: Live, method: str, url: str, **options: object) -> tuple[httpx.Response, httpx.Response]:
    """The answers with and without the short way."""
    headers = {"X-Request-Id": "same", **options.pop("headers", {})}
    short = live.request(method, url, headers=headers, **options)
    with without(live, "memory"):
        return short, live.request(method, url, headers=headers, **options)


def addresses(digest: str) -> list[str]:
    paths, queries = (f"/v1/plans/{digest}", "/v1/channels/a/prod/plan"), ("", "?rank=1", "?form=compact")
    return [f"{path}{query}" for path in paths for query in queries]


def test_what_is_in_memory_is_answered_alike_and_without_the_routes(live: Live, digest: str) -> None:
    num_cases = 0
    for url, method, headers in itertools.product(addresses(digest), ("GET", "HEAD"), HEADERS):
        etag = live.get(url, headers={"Accept-Encoding": "identity", **headers}).headers["etag"]
        values = {"this": etag, "weak": f"W/{etag}", "list": f'"x", {etag} ,"y"'}
        for condition in CONDITIONS:
            given = {"Accept-Encoding": "identity", **headers}
            if condition:
                given["If-None-Match"] = values.get(condition, condition)
            short, route = both(live, method, url, headers=given)
            assert reported(short) == reported(route), (method, url, given)
            assert short.status_code == (304 if condition in ("*", "this", "weak", "list") else 200)
            with without(live, "services"):
                alone = live.request(method, url, headers={"X-Request-Id": "same", **given})
            assert reported(alone) == reported(short)
            num_cases += 1
    assert num_cases == 6 * 2 * len(HEADERS) * len(CONDITIONS)


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", "/v1/plans/{digest}?rank=01"),
        ("GET", "/v1/plans/{digest}?rank=%31"),
        ("GET", "/v1/plans/{digest}?rank=-1"),
        ("GET", "/v1/plans/{digest}?rank=2"),
        ("GET", "/v1/plans/{digest}?rank="),
        ("GET", "/v1/plans/{digest}?rank=1&rank=0"),
        ("GET", "/v1/plans/{digest}?Rank=1"),
        ("GET", "/v1/plans/{digest}?form=long"),
        ("GET", "/v1/plans/{digest}?form="),
        ("GET", "/v1/plans/{digest}?form=Compact"),
        ("GET", "/v1/plans/{digest}?rank=1&form=compact"),
        ("GET", "/v1/plans/{digest}?"),
        ("GET", "/v1/plans/{digest}/"),
        ("GET", "/v1/plans/{digest}/plan"),
        ("GET", "/v1/plans/{digest}#1"),
        ("GET", "/v1/plans/{digest}%231"),
        ("GET", "/v1/plans/sha256:" + "0" * 64),
        ("GET", "/v1/plans/SHA256:0"),
        ("GET", "/v1/plans//{digest}"),
        ("GET", "/v1/channels/a/prod"),
        ("GET", "/v1/channels/a%2Fprod/plan"),
        ("GET", "/v1/channels/a/prod/plan/plan"),
        ("GET", "/v1/channels//plan"),
        ("GET", "/v1/channels/plan"),
        ("GET", "/v1/channels/a/other/plan"),
        ("GET", "/v1/channels/A/prod/plan"),
        ("DELETE", "/v1/plans/{digest}"),
        ("POST", "/v1/channels/a/prod/plan"),
        ("OPTIONS", "/v1/plans/{digest}"),
    ],
)
def test_what_is_odd_is_answered_alike(live: Live, digest: str, method: str, url: str) -> None:
    short, route = both(live, method, url.format(digest=digest))
    assert reported(short) == reported(route)


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_a_fetch_with_a_body_is_answered_alike(live: Live, digest: str, content_type: str) -> None:
    options = {"content": b"{}", "headers": {"Content-Type": content_type}}
    short, route = both(live, "GET", f"/v1/plans/{digest}", **options)
    assert reported(short) == reported(route)
    assert short.status_code == (200 if content_type == "application/json" else 415)


def test_the_short_way_counts_under_the_route(live: Live, digest: str) -> None:
    def count(route: str) -> float:
        labels = {"route": route, "method": "GET", "status": "2xx"}
        registry = live.app.state.services.metrics
        return registry.get_sample_value("shardplan_http_request_seconds_count", labels) or 0.0

    known = {route.path_format for route in live.app.state.routes if hasattr(route, "path_format")}
    for url, route in (
        (f"/v1/plans/{digest}", "/v1/plans/{digest}"),
        ("/v1/channels/a/prod/plan", "/v1/channels/{name}/plan"),
    ):
        assert route in known
        before = count(route)
        both(live, "GET", url)
        assert count(route) == before + 2


class SharedStore:
    """One channel that somebody else moves."""

    def __init__(self) -> None:
        self.version, self.num_reads = 1, 0

    def channel(self, name: str) -> ChannelRecord:
        self.num_reads += 1
        return ChannelRecord(name=name, version=self.version, plan_digest=f"sha256:{self.version:064x}", updated_at=0.0)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_channel_is_remembered_for_a_second_where_others_may_change_it(is_shared: bool) -> None:
    now = 100.0
    store = SharedStore()
    channels = ChannelService(store, ChannelMemory(is_shared=is_shared, monotonic=lambda: now))
    assert channels.get("c").version == 1
    store.version = 2
    now += MAX_SHARED_AGE_SECONDS * 0.99
    assert channels.peek("c").version == 1
    now += MAX_SHARED_AGE_SECONDS * 0.02
    assert (channels.peek("c") is None) is is_shared
    if is_shared:
        assert channels.get("c").version == 2
        assert channels.peek("c").version == 2


def test_an_old_answer_of_the_database_never_hides_a_newer_one() -> None:
    store = SharedStore()
    store.version = 2
    channels = ChannelService(store, ChannelMemory(is_shared=True))
    channels.get("c")
    store.version = 1  # of a query that began before, and ends now
    channels.get("c")
    assert channels.peek("c").version == 2


def test_a_move_is_not_forgotten_while_an_older_answer_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels_module, "MAX_CACHED", 2)
    store, memory = SharedStore(), ChannelMemory(is_shared=False)
    channels = ChannelService(store, memory)
    older = channels.get("c")
    channels.get("first")
    store.version = 2
    assert channels.get("c").version == 2
    channels.get("second")  # there is room for two
    memory.remember("default", older, read_at=0.0)
    assert channels.peek("c").version == 2


def test_the_second_counts_from_the_question_not_from_the_answer() -> None:
    now = 0.0

    class Slow(SharedStore):
        def channel(self, name: str) -> ChannelRecord:
            nonlocal now
            now += 5.0
            return super().channel(name)

    channels = ChannelService(Slow(), ChannelMemory(is_shared=True, monotonic=lambda: now))
    channels.get("c")
    assert channels.peek("c") is None


def test_every_answer_is_one_plan_while_the_channel_moves(live: Live, digest: str) -> None:
    """Bytes and digest fit, and no answer is older than a move that was acknowledged before."""
    other = live.solve({**TINY, "name": "another"})["result"]["plan_digest"]
    url = "/v1/channels/moving"
    etag = live.put(url, {"plan_digest": digest}).headers["etag"]
    mixed, stop = [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            answer = live.get(f"{url}/plan")
            if answer.json()["plan_digest"] != answer.headers["x-plan-digest"]:
                mixed.append(answer)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(10):
        target = (other, digest)[number % 2]
        etag = live.put(url, {"plan_digest": target}, headers={"If-Match": etag}).headers["etag"]
        assert live.get(f"{url}/plan").headers["x-plan-digest"] == target
        time.sleep(0.01)
    stop.set()
    for reader in readers:
        reader.join()
    assert mixed == []
