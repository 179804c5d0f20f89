"""Tokens of an issuer on the routes of a service, and on the short way in front of them."""

import logging
from collections.abc import Iterator

import pytest

from api.http.openapi.document import KeyRequirement, openapi_document
from tests.support.service.issuer import OTHER_RSA, Issuer, claims, forged, signed
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY


class Trusting:
    """A service that trusts an issuer."""

    def __init__(self, live: Live, issuer: Issuer) -> None:
        self.live, self.issuer = live, issuer

    def headers(self, scope: str = "read solve promote", *, org: str = "ads", **changes: object) -> dict[str, str]:
        """What shows a token with some scopes."""
        return {"Authorization": f"Bearer {signed(claims(self.issuer.url, scope=scope, org=org, **changes))}"}

    def solve(self, spec: object, **who: object) -> dict[str, object]:
        """Submit a spec and return the solve when it has ended."""
        answer = self.live.post("/v1/solves", spec, headers={**self.headers(**who), "Prefer": "wait=60"})
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture(scope="module")
def trusting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    with Issuer().running() as issuer:
        settings = issuer.settings(oidc_tenant_claim="org")
        with Live.of(tmp_path_factory.mktemp("trusting"), **settings) as live:
            yield Trusting(live, issuer)


def test_a_token_reaches_as_far_as_its_scopes(trusting: Trusting) -> None:
    live = trusting.live
    assert live.get("/v1/solves", headers=trusting.headers("read")).status_code == 200
    answer = live.post("/v1/solves", TINY, headers=trusting.headers("read"))
    assert "oidc:ann" in assert_problem(answer, 403, "forbidden")["detail"]
    assert 'scope="solve"' in answer.headers["www-authenticate"]
    assert_problem(live.get("/v1/solves", headers=trusting.headers("other")), 403, "forbidden")
    assert_problem(live.get("/v1/keys", headers=trusting.headers("read solve promote")), 403, "forbidden")
    assert live.get("/v1/keys", headers=trusting.headers("admin")).status_code == 200


def test_tokens_of_two_tenants_and_the_short_way(trusting: Trusting) -> None:
    live = trusting.live
    digest = trusting.solve(TINY, org="ads")["result"]["plan_digest"]
    url = "/v1/channels/tokens/prod"
    assert live.put(url, {"plan_digest": digest}, headers=trusting.headers(org="search")).status_code == 404
    assert live.put(url, {"plan_digest": digest}, headers=trusting.headers(org="ads")).status_code == 201
    bad = {"Authorization": f"Bearer {signed(claims(trusting.issuer.url, org='ads', scope='read'), OTHER_RSA)}"}
    for address in (f"{url}/plan", f"/v1/plans/{digest}", f"{url}/plan?rank=1"):
        for _ in range(2):  # the second time from memory, in front of the routes
            assert live.get(address, headers=trusting.headers("read")).status_code == 200
            assert live.get(address, headers=trusting.headers("read", org="search")).status_code == 404
            assert live.get(address, headers=trusting.headers("solve")).status_code == 403
            assert live.get(address, headers=trusting.headers("read", exp=1.0)).status_code == 401
            assert live.get(address, headers=bad).status_code == 401
            assert live.get(address).status_code == 401


def test_the_trail_names_the_subject(trusting: Trusting) -> None:
    digest = trusting.solve(TINY, org="trail")["result"]["plan_digest"]
    headers = trusting.headers(org="trail", sub="joe@example.com")
    assert trusting.live.put("/v1/channels/c", {"plan_digest": digest}, headers=headers).status_code == 201
    (entry,) = trusting.live.get("/v1/audit", headers=trusting.headers("admin", org="trail")).json()["entries"]
    assert (entry["who"], entry["action"]) == ("oidc:joe@example.com", "channel.promote")


def test_refusals_are_problems(trusting: Trusting) -> None:
    message = claims(trusting.issuer.url, org="ads", scope="admin")
    for token in (
        forged(message, {"alg": "none", "kid": "one"}),
        signed(message, OTHER_RSA),
        signed(message, kid="new"),
        "a.b.c",
    ):
        answer = trusting.live.get("/v1/solves", headers={"Authorization": f"Bearer {token}"})
        assert_problem(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert token not in answer.text
    assert_problem(trusting.live.get("/v1/solves", headers=trusting.headers(org="Not a tenant")), 401, "unauthorized")
    assert_problem(trusting.live.get("/v1/solves", headers={"Authorization": "Bearer x"}), 401, "unauthorized")


def test_no_token_is_logged(trusting: Trusting, caplog: pytest.LogCaptureFixture) -> None:
    message = claims(trusting.issuer.url, org="logged")
    with caplog.at_level(logging.DEBUG):
        tokens = [
            signed(message),
            signed(message, OTHER_RSA),
            signed(message, kid="unheard-of"),
            signed({**message, "exp": 1.0}),
            forged(message, {"alg": "HS256", "kid": "one"}, b"x"),
            "a.b.c",
        ]
        for token in tokens:
            trusting.live.get("/v1/solves", headers={"Authorization": f"Bearer {token}"})
    for token in tokens:
        for part in token.split("."):
            assert len(part) < 10 or part not in caplog.text


def test_one_scheme_of_the_document_covers_keys_and_tokens(trusting: Trusting) -> None:
    document = openapi_document(trusting.live.app, asked=KeyRequirement.REQUIRED)
    (scheme,) = document["components"]["securitySchemes"].values()
    assert scheme["scheme"] == "bearer"
    assert "shardplan_" in scheme["description"]
    assert "JWT" in scheme["description"]
