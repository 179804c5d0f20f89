"""Health, version, and the pages behind problem types."""

import pytest

from api.http.auth.scopes import SCOPES
from api.schemas.error_kinds import ERROR_KINDS
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem


def test_health(live: Live) -> None:
    assert live.get("/livez").json() == {"status": "ok"}
    assert live.get("/readyz").json() == {"status": "ok"}


def test_version(live: Live) -> None:
    document = live.get("/version").json()
    assert document["name"] == "shardplan"
    assert {"python", "ortools", "fastapi"} <= set(document["versions"])


def test_every_problem_type_can_be_looked_up(live: Live) -> None:
    for kind in ERROR_KINDS.values():
        document = live.get(kind.type).json()
        assert (document["code"], document["status"]) == (kind.code, kind.status)
        assert document["explanation"]
    assert_problem(live.get("/problems/nothing"), 404, "not-found")


@pytest.mark.parametrize(
    "url",
    ["/v1/solves?bogus=1", "/v1/plans:evaluate?costmodel=torchrec", "/v1/cost-models?x=", "/v1/solves?stat=running"],
)
def test_unknown_parameters_are_refused(live: Live, url: str) -> None:
    answer = live.post(url, {}) if "evaluate" in url else live.get(url)
    (error,) = assert_problem(answer, 400, "invalid-parameter")["errors"]
    assert error["code"] == "unknown-parameter"
    assert error["hint"]


@pytest.mark.parametrize("url", ["/livez", "/readyz", "/version", "/v1/solves", "/v1/channels", "/v1/cost-models"])
def test_head_is_answered_like_get(live: Live, url: str) -> None:
    got, head = live.get(url), live.request("HEAD", url)
    assert (got.status_code, head.status_code) == (200, 200)
    assert head.headers["content-type"] == got.headers["content-type"]


def test_allow_lists_the_methods_of_all_routes(live: Live) -> None:
    for method, url, allowed in (
        ("DELETE", "/v1/solves", "GET, HEAD, POST"),
        ("DELETE", "/v1/channels/a", "GET, HEAD, PUT"),
        ("POST", "/livez", "GET, HEAD"),
    ):
        answer = live.request(method, url)
        assert_problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
@pytest.mark.parametrize(
    "url",
    ["/livez/", "/docs/", "/openapi.json/", "/v1/", "/v1/solves/", "/v1/channels/", "/v1/channels/a/", "/v1/keys/?x=1"],
)
def test_no_address_ends_with_a_slash(live: Live, method: str, url: str) -> None:
    answer = live.request(method, url)
    if method == "HEAD":
        assert answer.status_code == 404
    else:
        assert_problem(answer, 404, "not-found")


def test_who_is_asked_for_no_key_may_do_everything(live: Live) -> None:
    assert live.get("/v1/caller").json() == {"who": "local", "tenant": "default", "scopes": list(SCOPES)}
