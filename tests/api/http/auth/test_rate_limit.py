"""Limits of requests: so many at once, then so many a minute, for each caller."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.http.auth import rate_limit
from api.http.auth.principal import Principal, set_principal
from api.http.auth.rate_limit import RateLimit, RateLimitMiddleware
from api.services.errors import ApiError
from api.store.access.audit import LOCAL
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem

DIGEST = "sha256:" + "0" * 64


def test_a_minute_at_once_and_then_the_rate() -> None:
    now = [1000.0]
    limit = RateLimit(6, ticks=lambda: now[0])
    assert [limit.wait_seconds("a") for _ in range(6)] == [0.0] * 6
    assert limit.wait_seconds("a") == limit.wait_seconds("a") == pytest.approx(10.0)  # refusals do not count
    assert limit.wait_seconds("b") == 0.0
    now[0] += 9.9
    assert limit.wait_seconds("a") == pytest.approx(0.1)
    now[0] += 0.1
    assert limit.wait_seconds("a") == 0.0
    assert limit.wait_seconds("a") > 0.0
    now[0] += 3600.0  # silence saves no more than one minute
    assert [limit.wait_seconds("a") for _ in range(6)] == [0.0] * 6
    assert limit.wait_seconds("a") > 0.0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_limit, "MAX_CALLERS", 2)
    limit = RateLimit(1, ticks=lambda: 0.0)
    assert [limit.wait_seconds(caller) for caller in ("a", "b", "c", "a")] == [0.0] * 4  # c made it forget a
    assert limit.wait_seconds("c") > 0.0


def answers(*requests: tuple[str, str, Principal | ApiError | None]) -> list[int]:
    """Statuses of requests, each from an address, for an address, by somebody; one a minute is allowed."""

    async def app(_scope: object, _receive: object, send: object) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def statuses() -> list[int]:
        limited, sent = RateLimitMiddleware(app, per_minute=1), []

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                sent.append(message["status"])

        for host, path, caller in requests:
            scope = {"type": "http", "method": "GET", "path": path, "client": (host, 1), "headers": []}
            if caller is not None:
                set_principal(scope, caller)
            await limited(scope, receive, send)
        return sent

    return asyncio.run(statuses())


ANN, BEN = Principal("ann", frozenset({"read"})), Principal("ben", frozenset({"read"}))
OUTSIDER = ApiError("unauthorized", "no")


def test_keys_are_counted_and_not_their_addresses() -> None:
    assert answers(("1.1.1.1", "/v1/solves", ANN), ("1.1.1.1", "/v1/solves", BEN)) == [200, 200]
    assert answers(("1.1.1.1", "/v1/solves", ANN), ("2.2.2.2", "/v1/solves", ANN)) == [200, 429]


def test_without_keys_addresses_are_counted() -> None:
    assert answers(("1.1.1.1", "/v1/solves", None), ("2.2.2.2", "/v1/solves", None)) == [200, 200]
    assert answers(("1.1.1.1", "/v1/solves", None), ("1.1.1.1", "/v1/solves", None)) == [200, 429]
    assert answers(("2001:db8::1", "/v1/solves", None), ("2001:db8::2", "/v1/solves", None)) == [200, 429]
    assert answers(("2001:db8::1", "/v1/solves", None), ("2001:db8:0:1::1", "/v1/solves", None)) == [200, 200]


@pytest.mark.parametrize("path", ["/v1/channels/ads/prod/plan", f"/v1/plans/{DIGEST}", "/livez", "/readyz", "/"])
def test_fetches_and_what_is_open_are_not_counted(path: str) -> None:
    assert answers(*[("1.1.1.1", path, ANN)] * 5) == [200] * 5


@pytest.mark.parametrize("path", ["/v1/channels/ads/prod", f"/v1/plans/{DIGEST}/explanation", "/v1/plans", "/v1"])
def test_others_are_counted(path: str) -> None:
    assert answers(*[("1.1.1.1", path, ANN)] * 2) == [200, 429]


def test_who_shows_no_valid_key_is_counted_everywhere() -> None:
    plan = "/v1/channels/ads/prod/plan"
    assert answers(("1.1.1.1", plan, OUTSIDER), ("1.1.1.1", plan, OUTSIDER), ("1.1.1.1", plan, ANN)) == [200, 429, 200]


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Live]:
    with Live.of(tmp_path, auth="keys", rate_limit_per_minute=3) as live:
        yield live


def test_a_server_with_a_limit(limited: Live) -> None:
    make = limited.app.state.services.api_keys.create
    one, other = (
        {"Authorization": f"Bearer {make(name, ['read'], expires_in_seconds=None, by=LOCAL)[1]}"} for name in "ab"
    )
    assert [limited.get("/v1/solves", headers=one).status_code for _ in range(3)] == [200] * 3
    refused = limited.get("/v1/solves", headers=one)
    problem = assert_problem(refused, 429, "too-many-requests")
    assert problem["retryable"] is True
    assert 1 <= int(refused.headers["retry-after"]) <= 20
    assert "SHARDPLAN_RATE_LIMIT_PER_MINUTE" in problem["detail"]
    assert limited.get("/v1/channels/c/plan", headers=one).status_code == 404
    assert limited.get("/v1/solves", headers=other).status_code == 200
    assert [limited.get("/v1/solves").status_code for _ in range(4)] == [401] * 3 + [429]
    assert limited.get("/readyz").status_code == 200


@pytest.mark.parametrize("code", ["storage-unavailable", "issuer-unavailable"])
def test_who_could_not_be_verified_is_not_counted(code: str) -> None:
    """Launchers share addresses, and the database being down is no fault of theirs."""
    plan = "/v1/channels/ads/prod/plan"
    assert answers(*[("1.1.1.1", plan, ApiError(code, "later"))] * 3) == [200] * 3
