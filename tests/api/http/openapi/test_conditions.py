"""``If-None-Match`` in the OpenAPI document: on the routes that answer 304, and on no other."""

import json
from collections.abc import Iterator

import pytest

from tests.support.paths import ROOT
from tests.support.service.live import Live
from tests.support.service.tenants import LINES, WEBHOOK_HOSTS, Tenant, filled

READS = {
    path: item["get"]
    for path, item in json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))["paths"].items()
    if "get" in item
}
CONDITIONAL = {path for path, operation in READS.items() if "304" in operation["responses"]}


def takes_condition(operation: dict[str, object]) -> bool:
    return any(
        (one["in"], one["name"]) == ("header", "if-none-match") and one["description"]
        for one in operation.get("parameters", ())
    )


@pytest.fixture(scope="module")
def tenant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    with Live.of(tmp_path_factory.mktemp("tenant"), auth="keys", webhook_hosts=WEBHOOK_HOSTS) as live:
        tenant = Tenant(live, "ours", rows=2000)
        tenant.publish()
        yield tenant


def test_routes_with_304_take_the_header() -> None:
    assert {path for path, operation in READS.items() if takes_condition(operation)} == CONDITIONAL
    assert {"/v1/plans/{digest}", "/v1/channels/{name}/plan"} <= CONDITIONAL


def test_the_app_answers_304_as_the_document_says(tenant: Tenant) -> None:
    """Any version is what the caller has: a route that compares at all answers 304."""
    answered = set()
    for path in READS:
        line = LINES.get(f"GET {path}")
        for url in line.urls if line else ():
            answer = tenant.send("GET", filled(url, tenant.ids, tenant), headers={"If-None-Match": "*"})
            if answer.status_code == 304:
                answered.add(path)
                assert answer.headers["etag"]
                assert answer.content == b""
    assert answered == CONDITIONAL
