"""Launchers ask a channel for the plan of their size, and a service that does not know sizes for its one plan."""

import httpx
import pytest

from api.client import PlannerClient, ProblemError, canonical_bytes
from api.client.plan_file import fetch
from tests.api.client.test_client import DIGEST, Script, problem
from tests.support.client.plans import tiny_plan

OTHER = "sha256:" + "0" * 64


def plan_answer() -> httpx.Response:
    headers = {"ETag": '"e1"', "X-Plan-Digest": DIGEST}
    return httpx.Response(200, content=canonical_bytes(tiny_plan()), headers=headers)


def unknown(name: str) -> httpx.Response:
    errors = [{"code": "unknown-parameter", "pointer": f"/query/{name}", "message": "unknown"}]
    return problem(400, errors=errors)


def test_the_size_is_sent(tmp_path: object) -> None:
    script = Script(plan_answer(), plan_answer())
    client = script.client()
    assert client.fetch_channel("ads/prod", world_size=8) is not None
    fetch(client, "ads/prod", f"{tmp_path}/plan.json", world_size=6)
    assert [request.url.params["world_size"] for request in script.requests] == ["8", "6"]
    assert script.requests[0].url.params["form"] == "compact"


def test_a_service_without_sizes_is_asked_once(tmp_path: object) -> None:
    script = Script(unknown("world_size"), plan_answer(), plan_answer())
    client = script.client()
    assert client.fetch_channel("ads/prod", world_size=8) is not None
    assert client.fetch_channel("ads/prod", world_size=8) is not None
    assert ["world_size" in request.url.params for request in script.requests] == [True, False, False]


def test_a_size_that_there_is_not_is_an_error() -> None:
    script = Script(problem(404))
    with pytest.raises(ProblemError) as caught:
        script.client().fetch_channel("ads/prod", world_size=8)
    assert caught.value.status == 404


def promote(client: PlannerClient) -> dict[str, object]:
    return client.promote("ads/prod", DIGEST, by_world_size={8: DIGEST, 6: OTHER})


def test_all_sizes_are_promoted_together() -> None:
    script = Script(httpx.Response(201, json={"plan_digest": DIGEST}))
    promote(script.client())
    assert script.requests[0].content == canonical_bytes(
        {"plan_digest": DIGEST, "plan_digests": {"6": OTHER, "8": DIGEST}}
    )


@pytest.mark.parametrize(
    ("stands", "is_done"),
    [({"6": OTHER, "8": DIGEST}, True), ({"6": DIGEST, "8": DIGEST}, False), ({}, False)],
)
def test_a_lost_answer_is_known_by_all_plans(stands: dict[str, str], is_done: bool) -> None:
    now = httpx.Response(200, json={"plan_digest": DIGEST, "plan_digests": stands}, headers={"ETag": '"v1"'})
    client = Script(problem(412), now).client()
    if is_done:
        assert promote(client)["plan_digests"] == stands
    else:
        with pytest.raises(ProblemError):
            promote(client)
