"""Headers that must be there, that may be there once, and that are lists."""

import httpx
import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY

SINGLE = [
    "authorization",
    "content-length",
    "content-type",
    "host",
    "idempotency-key",
    "last-event-id",
    "traceparent",
    "x-request-id",
]


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.parametrize("second", ["1", "2"])
def test_a_header_that_must_be_single_is_refused_twice(live: Live, name: str, second: str) -> None:
    headers = [("Host", "test")] if name != "host" else []
    answer = live.get("/v1/solves", headers=[*headers, (name, "1"), ("Accept", "*/*"), (name.title(), second)])
    assert name in assert_problem(answer, 400, "broken-request")["detail"].lower()


def test_two_keys_are_refused_also_in_front_of_the_routes(live: Live) -> None:
    digest = live.solve(TINY)["result"]["plan_digest"]
    url = f"/v1/plans/{digest}"
    assert live.get(url).status_code == 200  # from memory from now on
    assert_problem(
        live.get(url, headers=[("Authorization", "Bearer a"), ("Authorization", "Bearer b")]), 400, "broken-request"
    )


@pytest.mark.parametrize("url", ["/livez", "/v1/solves", "/nothing"])
def test_a_request_without_a_host_is_refused(live: Live, url: str) -> None:
    answer = live.get(url, headers={"Host": ""})
    assert answer.status_code != 400  # it is there, and empty
    request = httpx.Request("GET", f"http://test{url}")
    del request.headers["host"]
    answer = live.send(request)
    assert "Host" in assert_problem(answer, 400, "broken-request")["detail"]


def test_lists_in_several_lines_are_one_list(live: Live) -> None:
    digest = live.solve(TINY)["result"]["plan_digest"]
    url = "/v1/channels/rules/lines"
    created = live.put(url, {"plan_digest": digest}, headers=[("If-None-Match", '"a"'), ("If-None-Match", '"b"')])
    assert created.status_code == 201
    etag = created.headers["etag"]
    moved = live.put(url, {"plan_digest": digest}, headers=[("If-Match", '"other"'), ("If-Match", etag)])
    assert moved.status_code == 200
    etag = moved.headers["etag"]
    plan = live.get(f"{url}/plan", headers={"Accept-Encoding": "identity"})
    for address, tag in ((url, etag), (f"{url}/plan", plan.headers["etag"])):
        headers = [("If-None-Match", '"other"'), ("Accept-Encoding", "br"), ("If-None-Match", tag)]
        for _ in range(2):  # the second time from memory
            assert live.get(address, headers=[*headers, ("Accept-Encoding", "identity;q=1")]).status_code == 304
    twice = [("Content-Type", "application/json"), ("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")]
    assert_problem(live.request("POST", "/v1/solves", content=b"x", headers=twice), 415, "unsupported-media-type")
    both = [("Accept-Encoding", "br"), ("Accept-Encoding", "gzip")]
    assert live.get(f"{url}/plan", headers=both).headers["content-encoding"] == "gzip"
