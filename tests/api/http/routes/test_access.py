"""Who may do what, on every route."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.http.app import create_app
from api.http.auth.keys.format import Key
from api.http.auth.scopes import ROUTE_SCOPES, SCOPES, is_open
from api.http.openapi.document import openapi_text
from api.store.access.audit import LOCAL
from tests.support.service.live import Live, settings_for
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY


class Guarded:
    """A service that asks for keys, and one key for each scope."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.service = live.app.state.services.api_keys
        self.headers = {scope: self.header(scope) for scope in SCOPES}

    def header(self, *scopes: str, seconds: float | None = None) -> dict[str, str]:
        """Make a key; return the header that shows it."""
        _, text = self.service.create("test", scopes, expires_in_seconds=seconds, by=LOCAL)
        return {"Authorization": f"Bearer {text}"}

    def operations(self) -> list[tuple[str, str]]:
        """All operations, with addresses that lead nowhere."""
        paths = self.live.get("/openapi.json").json()["paths"]
        return [(method.upper(), path) for path, item in paths.items() for method in item]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Live.of(tmp_path_factory.mktemp("guarded"), auth="keys") as live:
        yield Guarded(live)


def address(path: str) -> str:
    return path.replace("{", "").replace("}", "")


def test_every_route_of_the_document_has_a_scope_or_is_open(guarded: Guarded) -> None:
    needed = {f"{method} {path}" for method, path in guarded.operations() if not is_open(path)}
    assert needed == set(ROUTE_SCOPES)
    assert {path for _, path in guarded.operations() if is_open(path)} == {
        "/livez",
        "/metrics",
        "/readyz",
        "/version",
        "/problems/{code}",
    }


def test_reading_is_get_and_nothing_else_is_read() -> None:
    administered = {"GET /v1/keys", "GET /v1/audit", "GET /v1/webhooks"}
    administered |= {"GET /v1/webhooks/{webhook_id}", "GET /v1/webhooks/{webhook_id}/deliveries"}
    for operation, scope in ROUTE_SCOPES.items():
        assert (scope == "read") == (operation.startswith("GET ") and operation not in administered), operation


def test_without_a_key_nothing_is_answered(guarded: Guarded) -> None:
    asked = 0
    for method, path in guarded.operations():
        if is_open(path):
            continue
        for name in (method, *(["HEAD"] if method == "GET" else [])):
            answer = guarded.live.request(name, address(path))
            assert answer.headers["www-authenticate"] == "Bearer", f"{name} {path}"
            assert answer.status_code == 401
            asked += 1
        assert_problem(guarded.live.request(method, address(path)), 401, "unauthorized")
    assert asked > 60


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/version", "/problems/not-found", "/docs", "/openapi.json"])
def test_what_has_no_data_is_open(guarded: Guarded, path: str) -> None:
    assert guarded.live.get(path).status_code == 200


@pytest.mark.parametrize("scope", SCOPES)
def test_a_key_reaches_as_far_as_its_scope(guarded: Guarded, scope: str) -> None:
    for method, path in guarded.operations():
        if is_open(path) or path.endswith("/events"):
            continue
        needed = ROUTE_SCOPES[f"{method} {path}"]
        answer = guarded.live.request(method, address(path), headers=guarded.headers[scope])
        if scope in (needed, "admin"):
            assert answer.status_code not in (401, 403), f"{method} {path}"
            continue
        problem = assert_problem(answer, 403, "forbidden")
        assert f"the scope {needed}" in problem["detail"]
        assert f'scope="{needed}"' in answer.headers["www-authenticate"]


def test_scopes_add_up(guarded: Guarded) -> None:
    headers = guarded.header("read", "solve")
    solve = guarded.live.post("/v1/solves", TINY, headers={**headers, "Prefer": "wait=60"}).json()
    digest = solve["result"]["plan_digest"]
    assert guarded.live.get(f"/v1/plans/{digest}", headers=headers).status_code == 200
    assert guarded.live.put("/v1/channels/c", {"plan_digest": digest}, headers=headers).status_code == 403
    promote = guarded.headers["promote"]
    assert guarded.live.put("/v1/channels/c", {"plan_digest": digest}, headers=promote).status_code == 201
    assert guarded.live.get("/v1/channels/c/plan", headers=headers).status_code == 200


def test_keys_that_are_not_valid(guarded: Guarded) -> None:
    good = guarded.headers["admin"]["Authorization"]
    key = Key.parse(good.removeprefix("Bearer "))
    assert key is not None
    wrong = replace(key, secret=key.secret[::-1]).text
    for shown in ("Bearer", "Basic YTpi", good.replace("Bearer ", ""), f"Bearer {wrong}", f"Bearer {Key.new().text}"):
        answer = guarded.live.get("/v1/solves", headers={"Authorization": shown})
        assert_problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert key.secret[:8] not in answer.text
    assert guarded.live.get("/v1/solves", headers={"Authorization": good}).status_code == 200


def test_a_key_that_has_expired(guarded: Guarded) -> None:
    headers = guarded.header("read", seconds=0.3)
    assert guarded.live.get("/v1/solves", headers=headers).status_code == 200
    time.sleep(0.35)
    problem = assert_problem(guarded.live.get("/v1/solves", headers=headers), 401, "unauthorized")
    assert "has expired" in problem["detail"]


def test_keys_over_http(guarded: Guarded) -> None:
    admin = guarded.headers["admin"]
    body = {"name": "launchers", "scopes": ["solve", "read"], "expires_in_seconds": 3600}
    made = guarded.live.post("/v1/keys", body, headers=admin)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    key = made.json()
    assert (key["name"], key["scopes"], key["revoked_at"]) == ("launchers", ["read", "solve"], None)
    shown = {"Authorization": f"Bearer {key['key']}"}
    assert guarded.live.get("/v1/solves", headers=shown).status_code == 200
    listed = guarded.live.get("/v1/keys", headers=admin)
    assert key["key"].rpartition("_")[2] not in listed.text
    assert key["id"] in {one["id"] for one in listed.json()["keys"]}
    for _ in range(2):  # at once, and twice is harmless
        assert guarded.live.request("DELETE", f"/v1/keys/{key['id']}", headers=admin).status_code == 204
    assert "was revoked" in assert_problem(guarded.live.get("/v1/solves", headers=shown), 401, "unauthorized")["detail"]
    (one,) = [one for one in guarded.live.get("/v1/keys", headers=admin).json()["keys"] if one["id"] == key["id"]]
    assert one["revoked_at"] is not None
    assert_problem(guarded.live.request("DELETE", "/v1/keys/nothing", headers=admin), 404, "not-found")


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": ["read"]},
        {"name": "", "scopes": ["read"]},
        {"name": "n", "scopes": []},
        {"name": "n", "scopes": ["root"]},
        {"name": "n", "scopes": ["read"], "expires_in_seconds": 0},
    ],
)
def test_keys_that_cannot_be_made(guarded: Guarded, body: object) -> None:
    assert_problem(guarded.live.post("/v1/keys", body, headers=guarded.headers["admin"]), 422, "invalid-problem")


def test_a_server_that_asks_no_one_shows_no_locks(tmp_path: Path) -> None:
    document = create_app(settings_for(tmp_path, auth="none")).openapi()
    assert "requires no key" in document["info"]["description"]
    assert "securitySchemes" not in document["components"]
    for item in document["paths"].values():
        for operation in item.values():
            assert "security" not in operation
            assert "401" not in operation["responses"]
    assert "429" in document["paths"]["/v1/solves"]["post"]["responses"]  # limits of rates need no keys


@pytest.mark.parametrize("auth", ["any", "keys"])
def test_the_document_says_who_may(tmp_path: Path, auth: str) -> None:
    """The committed document is that of all servers; a server that asks for keys says so."""
    app = create_app(settings_for(tmp_path, auth="keys"))
    document = json.loads(openapi_text(app)) if auth == "any" else app.openapi()
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    anyone = [{}] if auth == "any" else []
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if is_open(path):
                assert "security" not in operation
                continue
            needed = ROUTE_SCOPES[f"{method.upper()} {path}"]
            assert operation["security"] == [{"key": [needed]}, *anyone]
            assert {"401", "403"} <= set(operation["responses"])


def test_plans_in_memory_are_for_keys_that_may_read(guarded: Guarded) -> None:
    live, headers = guarded.live, guarded.headers
    sent = live.request("POST", "/v1/solves", json=TINY, headers={**headers["solve"], "Prefer": "wait=30"}).json()
    digest = sent["result"]["plan_digest"]
    promoted = live.request("PUT", "/v1/channels/fast", json={"plan_digest": digest}, headers=headers["promote"])
    assert promoted.status_code == 201
    for url in (f"/v1/plans/{digest}", "/v1/channels/fast/plan", f"/v1/plans/{digest}?rank=1"):
        for _ in range(2):  # the second time it is in memory
            assert live.get(url, headers=headers["read"]).status_code == 200
        for method in ("GET", "HEAD"):
            assert live.request(method, url).status_code == 401
            assert live.request(method, url, headers={"Authorization": "Bearer shardplan_x_y"}).status_code == 401
            for scope in ("solve", "promote"):
                assert live.request(method, url, headers=headers[scope]).status_code == 403
            assert live.request(method, url, headers=headers["admin"]).status_code == 200


@pytest.mark.parametrize(
    ("granted", "scopes"),
    [
        (["read"], ["read"]),
        (["promote", "read", "solve"], ["read", "solve", "promote"]),
        (["admin"], ["read", "solve", "promote", "admin"]),
    ],
)
def test_a_caller_is_answered_with_its_scopes(guarded: Guarded, granted: list[str], scopes: list[str]) -> None:
    header = guarded.header(*granted)
    answer = guarded.live.get("/v1/caller", headers=header)
    document = answer.json()
    assert (document["scopes"], document["tenant"]) == (scopes, "default")
    assert document["who"] in header["Authorization"]
    assert answer.headers["cache-control"] == "no-store"
