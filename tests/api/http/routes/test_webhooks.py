"""Webhooks over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from api.cli.errors import ServerTrouble
from api.cli.service.process import start_errors
from api.store.webhooks import records as limits
from tests.support.service.live import Live, settings_for
from tests.support.service.problems import assert_problem

URL = "https://hooks.test/shardplan?token=very-private"
BODY = {"url": URL, "name": "pager", "events": ["solve.failed", "solve.succeeded"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live.of(tmp_path_factory.mktemp("data"), webhook_hosts="hooks.test") as live:
        yield live


def test_a_webhook_is_added_looked_at_and_deleted(service: Live) -> None:
    made = service.post("/v1/webhooks", BODY)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    hook = made.json()
    secret = hook.pop("secret")
    assert secret.startswith("whsec_")
    assert (hook["url"], hook["events"], hook["state"]) == (URL, ["solve.succeeded", "solve.failed"], "active")
    assert service.get(f"/v1/webhooks/{hook['id']}").json() == hook
    listed = service.get("/v1/webhooks")
    assert hook in listed.json()["webhooks"]
    assert secret not in listed.text
    assert service.get(f"/v1/webhooks/{hook['id']}/deliveries").json() == {"deliveries": [], "next_page_token": None}
    assert service.post(f"/v1/webhooks/{hook['id']}:enable").json() == hook
    assert service.request("DELETE", f"/v1/webhooks/{hook['id']}").status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", ":enable"), ("GET", "/deliveries")):
        assert_problem(service.request(method, f"/v1/webhooks/{hook['id']}{path}"), 404, "not-found")
    assert_problem(service.post(f"/v1/webhooks/{hook['id']}/deliveries/msg_0:resend"), 404, "not-found")
    trail = service.get(f"/v1/audit?subject=webhooks/{hook['id']}")
    assert [entry["action"] for entry in trail.json()["entries"]] == ["webhook.delete", "webhook.create"]
    assert trail.json()["entries"][1]["after"]["host"] == "https://hooks.test"
    for private in ("very-private", secret.removeprefix("whsec_")):
        assert private not in trail.text


def test_all_events_are_reported_where_none_is_named(service: Live) -> None:
    made = service.post("/v1/webhooks", {"url": URL, "name": "all"}).json()
    assert made["events"] == list(limits.EVENTS)
    service.request("DELETE", f"/v1/webhooks/{made['id']}")


@pytest.mark.parametrize(
    "url",
    [
        "https://other.test/",
        "http://hooks.test/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://0x7f.1/",
        "file:///etc/passwd",
        "http+unix://%2Frun%2Fdocker.sock/",
    ],
)
def test_what_the_list_does_not_allow_is_refused(service: Live, url: str) -> None:
    problem = assert_problem(service.post("/v1/webhooks", {**BODY, "url": url}), 422, "webhook-refused")
    assert url not in problem["detail"]
    assert service.get("/v1/webhooks").json() == {"webhooks": []}


@pytest.mark.parametrize(
    "change",
    [{"url": ""}, {"url": "x" * 2001}, {"events": []}, {"events": ["x"]}, {"name": ""}, {"name": "é"}, {"x": 1}],
)
def test_bodies_that_break_rules(service: Live, change: dict[str, object]) -> None:
    assert_problem(service.post("/v1/webhooks", {**BODY, **change}), 422, "invalid-problem")


def test_there_are_only_so_many(service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.store.webhooks.webhooks.MAX_WEBHOOKS", 0)
    assert_problem(service.post("/v1/webhooks", BODY), 409, "too-many-webhooks")


def test_a_list_that_cannot_be_read_is_reported_at_the_start(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, webhook_hosts="ftp://x")
    with (
        pytest.raises(ServerTrouble, match="SHARDPLAN_WEBHOOK_HOSTS"),
        start_errors(settings),
        Live.of(tmp_path, webhook_hosts="ftp://x"),
    ):
        pass


def test_the_trail_has_no_query_of_an_address_without_a_path(service: Live) -> None:
    made = service.post("/v1/webhooks", {"url": "https://hooks.test?token=very-private", "name": "bare"}).json()
    trail = service.get(f"/v1/audit?subject=webhooks/{made['id']}")
    assert trail.json()["entries"][0]["after"]["host"] == "https://hooks.test"
    assert "very-private" not in trail.text
    service.request("DELETE", f"/v1/webhooks/{made['id']}")
