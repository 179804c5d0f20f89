"""What one tenant has is to another as if it were not there: on every route, in memory, by digest and by key."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.http.auth.scopes import ROUTE_SCOPES
from api.services.errors import ApiError
from api.store.solves.idempotency import RequestKey
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny
from tests.support.service.tenants import LINES, UNKNOWN, WEBHOOK_HOSTS, Tenant, filled
from tests.support.thorough import thorough


class Both:
    """A service with two tenants."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.ours, self.theirs = Tenant(live, "ours", rows=2000), Tenant(live, "theirs", rows=3000)
        self.ours.publish()

    def state(self) -> list[str]:
        """All that can be read of ours, but for what a look changes."""
        urls = [
            f"/v1/{path}"
            for path in (
                "solves",
                f"solves/{self.ours.ids['solve']}",
                "plans",
                "channels",
                f"channels/{self.ours.ids['channel']}/history",
                "statistics",
                "measurements",
                "cost-models",
                f"hardware-profiles/{self.ours.ids['profile']}/cost-model",
                "webhooks",
                "audit",
            )
        ]
        return [self.ours.send("GET", url).text for url in urls]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with Live.of(tmp_path_factory.mktemp("tenants"), auth="keys", webhook_hosts=WEBHOOK_HOSTS) as live:
        yield Both(live)


def reported(answer: Any) -> tuple[int, str]:
    """Status and body of an answer, without what differs between any two requests."""
    return answer.status_code, re.sub(r'"request_id": ?"[^"]*"', "", answer.text)


@thorough
def test_every_route_that_asks_who_it_is_has_a_line(both: Both) -> None:
    paths = both.live.get("/openapi.json").json()["paths"]
    operations = {f"{method.upper()} {path}" for path, item in paths.items() for method in item if path[:3] == "/v1"}
    assert set(LINES) == operations == set(ROUTE_SCOPES)


@thorough
@pytest.mark.parametrize("operation", LINES)
def test_a_route_reports_nothing_of_others(both: Both, operation: str) -> None:
    line, ours, theirs = LINES[operation], both.ours, both.theirs
    method = operation.partition(" ")[0]
    before = both.state()
    markers = [value for name, value in ours.ids.items() if name != "profile"] + ["ours"]
    for url in line.urls:
        for body in line.bodies:
            options = {} if body is None else {"json": filled(body, ours.ids, theirs)}
            foreign = theirs.send(method, filled(url, ours.ids, theirs), **options)
            if line.kind == "shared":
                assert reported(foreign) == reported(ours.send(method, url, **options))
                assert foreign.status_code == 200
                continue
            assert not [marker for marker in markers if marker in foreign.text], foreign.text
            if line.kind == "own":
                assert foreign.status_code in (200, 201), foreign.text
                continue
            options = {} if body is None else {"json": filled(body, UNKNOWN, theirs)}
            unknown = theirs.send(method, filled(url, UNKNOWN, theirs), **options)
            assert reported(foreign) == reported(unknown)
            in_body_or_query = body is not None or "?measurements=" in url
            assert foreign.status_code in ((404, 422) if in_body_or_query else (404,)), foreign.text
            if method == "GET":
                url_of_ours = filled(url, ours.ids, ours)
                assert theirs.send("HEAD", filled(url, ours.ids, theirs)).status_code == foreign.status_code
                # Without this the address might be one that nobody can have: to its owner it is there.
                assert reported(ours.send("GET", url_of_ours)) != reported(unknown)
    assert both.state() == before


def test_lists_report_their_owner(both: Both) -> None:
    for path, name in (("solves", "solve"), ("plans", "plan"), ("statistics", "statistics"), ("channels", "channel")):
        assert both.ours.ids[name] in both.ours.send("GET", f"/v1/{path}").text
    for path, name in (("measurements", "measurements"), ("cost-models", "model"), ("keys", "key")):
        assert both.ours.ids[name] in both.ours.send("GET", f"/v1/{path}").text
    assert "channels/ours/prod" in both.ours.send("GET", "/v1/audit").text
    assert [entry["seq"] for entry in both.theirs.send("GET", "/v1/audit").json()["entries"]][-1] == 1


def test_equal_specs_of_two_tenants_are_two_solves_and_two_plans(both: Both) -> None:
    digests = set()
    for tenant in (both.ours, both.theirs):
        solve = tenant.solve(tiny(name=f"equal-of-{tenant.name}"))
        plan = tenant.send("GET", solve["result"]["plan_url"])
        assert plan.json()["name"] == f"equal-of-{tenant.name}"  # equal digests, and nobody's words but the tenant's
        digests.add(plan.json()["plan_digest"])
    assert len(digests) == 1
    ids = {tenant.solve(TINY)["id"] for tenant in (both.ours, both.theirs)}
    assert len(ids) == 2
    assert both.ours.solve(TINY)["id"] in ids  # and within a tenant, once


def test_a_key_of_a_request_is_of_its_tenant(both: Both) -> None:
    made = {}
    for rows, tenant in ((4000, both.ours), (5000, both.theirs)):
        spec = tiny(model__tables__0__num_embeddings=rows)
        for _ in range(2):
            answer = tenant.send("POST", "/v1/solves", json=spec, headers={"Idempotency-Key": "once"})
            assert answer.status_code in (200, 202), answer.text
            made.setdefault(tenant.name, set()).add(answer.json()["id"])
    assert [len(ids) for ids in made.values()] == [1, 1]
    assert made["ours"] != made["theirs"]


def test_a_key_in_flight_is_of_its_tenant(both: Both) -> None:
    key = RequestKey(scope="/v1/solves", key="k", fingerprint="f", at=1.0)
    tenants = both.live.app.state.memory
    ours, theirs = (tenants.peek(name).keys for name in ("ours", "theirs"))
    with (
        ours.holding(key),
        theirs.holding(key),
        pytest.raises(ApiError, match="Send the request again"),
        ours.holding(key),
    ):
        pass


def test_what_is_in_memory_is_of_its_tenant(both: Both) -> None:
    ours, theirs = both.ours, both.theirs
    digest = ours.ids["plan"]
    urls = [
        f"{path}{query}"
        for path in (f"/v1/plans/{digest}", f"/v1/channels/{ours.ids['channel']}/plan")
        for query in ("", "?rank=0")
    ]
    for url in urls:
        for _ in range(2):  # the second time from memory, in front of the routes
            etag = ours.send("GET", url).headers["etag"]
        for method in ("GET", "HEAD"):
            for headers in ({}, {"If-None-Match": etag}, {"If-None-Match": "*"}):
                assert theirs.send(method, url, headers=headers).status_code == 404
    again = theirs.solve(tiny(name="mine", model__tables__0__num_embeddings=2000))
    assert again["result"]["plan_digest"] == digest
    for _ in range(2):
        assert theirs.send("GET", f"/v1/plans/{digest}").json()["name"] == "mine"
        assert theirs.send("GET", f"/v1/plans/{digest}?rank=0").json()["name"] == "mine"
        assert ours.send("GET", f"/v1/plans/{digest}").json()["name"] == "spec-of-ours"
        assert ours.send("GET", f"/v1/plans/{digest}?rank=0").json()["name"] == "spec-of-ours"


def test_plans_are_not_for_caches_that_tenants_share(both: Both) -> None:
    ids = both.ours.ids
    for url in (
        f"/v1/plans/{ids['plan']}",
        f"/v1/plans/{ids['plan']}/diff/{ids['plan']}",
        f"/v1/channels/{ids['channel']}/plan",
        f"/v1/statistics/{ids['statistics']}",
        f"/v1/measurements/{ids['measurements']}",
        f"/v1/cost-models/{ids['model']}/document",
    ):
        assert both.ours.send("GET", url).headers["cache-control"].startswith("private, "), url


def test_metrics_name_no_one(both: Both) -> None:
    for tenant in (both.ours, both.theirs):
        tenant.send("GET", f"/v1/plans/{tenant.ids['plan']}")
    text = both.live.get("/metrics").text
    assert "shardplan_solves" in text
    assert "ours" not in re.sub("hours|yours", "", text)
    assert "theirs" not in text
    assert "tenant" not in text


def test_keys_that_are_made_over_http_are_of_their_makers_tenant(both: Both) -> None:
    key = both.ours.made("POST", "/v1/keys", {"name": "more", "scopes": ["read"]})
    assert key["tenant"] == "ours"
    shown = {"Authorization": f"Bearer {key['key']}"}
    assert both.live.get(f"/v1/plans/{both.ours.ids['plan']}", headers=shown).status_code == 200
    assert both.live.get(f"/v1/solves/{both.theirs.ids['solve']}", headers=shown).status_code == 404
    refused = both.ours.send("POST", "/v1/keys", json={"name": "n", "scopes": ["read"], "tenant": "theirs"})
    assert_problem(refused, 422, "invalid-problem")


def test_fits_of_one_name_are_two(both: Both) -> None:
    for tenant in (both.ours, both.theirs):
        wanted = {"name": "same", "measurements": [tenant.ids["measurements"]]}
        answer = tenant.send("POST", "/v1/cost-models", json=wanted, headers={"Prefer": "wait=60"})
        assert (answer.json()["id"], answer.json()["state"]) == ("same@1", "ready"), answer.text
        assert answer.json()["measurements"] == [tenant.ids["measurements"]]
    documents = [tenant.send("GET", "/v1/cost-models/same@1").json()["digest"] for tenant in (both.ours, both.theirs)]
    assert len(set(documents)) == 2


def test_every_tenant_has_the_models_of_the_package(both: Both) -> None:
    listed = [
        {one["digest"] for one in tenant.send("GET", "/v1/cost-models").json()["cost_models"] if one["digest"]}
        for tenant in (both.ours, both.theirs)
    ]
    shipped = {
        one.digest for one in both.live.app.state.services.store.models(limit=99, after=None) if one.digest is not None
    }
    assert shipped
    assert shipped < listed[0]
    assert shipped < listed[1]


def test_a_solve_that_a_tenant_follows_ends(both: Both) -> None:
    solve = both.theirs.solve(tiny(model__tables__0__num_embeddings=6000))
    stream = both.theirs.send("GET", f"/v1/solves/{solve['id']}/events").text
    assert "event: end" in stream


def test_routes_come_to_the_service_by_their_caller_alone(root: Path) -> None:
    """Whoever reads ``app.state`` in a route could answer one tenant with what another one has."""
    sources = sorted((root / "api" / "http" / "routes").glob("*.py"))
    assert sources
    for source in sources:
        text = source.read_text()
        for word in ("app.state", "for_tenant", "open_store", "Database", "store.database"):
            assert word not in text, f"{source.name}: {word}"
