"""The client asks for plans in compact form, and gives its callers the long one."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.client import (
    DigestMismatch,
    PlannerClient,
    ProblemError,
    UnexpectedAnswer,
    canonical_bytes,
    check_plan,
    fetch,
    parse_plan,
    plan_digest,
)
from planner.domain.formats.compaction import compact_document
from tests.support.client.plans import tiny_bytes, tiny_plan

DIGEST = str(tiny_plan()["plan_digest"])
COMPACT = canonical_bytes(compact_document(tiny_plan()))


def client_of(answer: Callable[[httpx.Request], httpx.Response]) -> PlannerClient:
    return PlannerClient("http://planner", transport=httpx.MockTransport(answer))


class Service:
    """A service whose only channel points at the tiny plan; one of an earlier release knows no forms."""

    def __init__(self, *, knows_forms: bool = True, compact: bytes = COMPACT) -> None:
        self.knows_forms, self.compact = knows_forms, compact
        self.queries: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        query = request.url.query.decode()
        self.queries.append(query)
        if query and not self.knows_forms:
            errors = [{"code": "unknown-parameter", "pointer": "/query/form", "message": "unknown parameter"}]
            return httpx.Response(400, json={"type": "invalid-parameter", "errors": errors})
        content = self.compact if query == "form=compact" else tiny_bytes()
        return httpx.Response(200, content=content, headers={"ETag": f'"{query}"', "X-Plan-Digest": DIGEST})


def test_callers_get_the_long_form() -> None:
    service = Service()
    client = client_of(service)
    for plan in (client.get_plan(DIGEST), client.fetch_channel("prod")):
        assert plan is not None
        assert plan.document == tiny_plan()
        assert plan.content == tiny_bytes()
        assert plan.received == COMPACT
        assert plan.digest == DIGEST
    assert service.queries == ["form=compact"] * 2


def test_a_service_that_knows_no_forms_is_asked_once() -> None:
    service = Service(knows_forms=False)
    client = client_of(service)
    for _ in range(2):
        plan = client.get_plan(DIGEST)
        assert (plan.document, plan.content) == (tiny_plan(), tiny_bytes())
    assert service.queries == ["form=compact", "", ""]


def test_other_refusals_are_those_of_the_service() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.query)
        return httpx.Response(400, json={"errors": [{"code": "other", "pointer": "/query/form"}]})

    with pytest.raises(ProblemError):
        client_of(answer).get_plan(DIGEST)
    assert asked == [b"form=compact"]


def test_a_file_has_the_form_that_is_asked_for(tmp_path: Path) -> None:
    service, path = Service(), tmp_path / "plan.json"
    client = client_of(service)
    assert fetch(client, "prod", path).document == tiny_plan()
    assert path.read_bytes() == tiny_bytes()
    again = fetch(client, "prod", path, form="compact")
    assert again.changed
    assert again.document == tiny_plan()
    assert path.read_bytes() == COMPACT


def test_the_file_of_another_form_is_written_again(tmp_path: Path) -> None:
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("If-None-Match"))
        return httpx.Response(304 if sent[-1] else 200, content=b"" if sent[-1] else COMPACT, headers={"ETag": '"e"'})

    client, path = client_of(answer), tmp_path / "plan.json"
    changes = [fetch(client, "prod", path, form=form).changed for form in ("long", "long", "compact", "compact")]
    assert changes == [True, False, True, False]
    assert sent == [None, '"e"', None, '"e"']
    note = json.loads((tmp_path / "plan.json.etag").read_bytes())
    assert note["form"] == "compact"


def test_the_long_form_of_a_service_that_knows_no_other_is_noted_as_such(tmp_path: Path) -> None:
    sent: list[str | None] = []
    service = Service(knows_forms=False)

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("If-None-Match"))
        if sent[-1] == '""' and not (service.knows_forms and request.url.query):
            return httpx.Response(304)
        return service(request)

    path = tmp_path / "plan.json"
    for form in ("compact", "compact", "long"):
        fetch(client := client_of(answer), "prod", path, form=form)
        assert path.read_bytes() == tiny_bytes()
        note = json.loads((tmp_path / "plan.json.etag").read_bytes())
        assert (note["form"], note["received_form"]) == ("long", "long")
        assert fetch(client, "prod", path, form=form).changed is False
    assert set(sent[2:]) == {'""'}  # one fetch brought the plan
    service.knows_forms = True  # an update
    assert fetch(client_of(answer), "prod", path, form="compact").changed
    assert path.read_bytes() == COMPACT


def test_both_forms_are_checked_alike() -> None:
    compact = json.loads(COMPACT)
    assert plan_digest(compact) == DIGEST
    assert check_plan(compact, world_size=2, ranks_per_host=2) == tiny_plan()
    assert parse_plan(COMPACT) == (tiny_plan(), DIGEST)


def test_a_changed_compact_plan_is_another_plan() -> None:
    changed = json.loads(COMPACT)
    changed["tables"][0]["shards"][0]["ranks"] = "0"
    with pytest.raises(DigestMismatch):
        client_of(Service(compact=canonical_bytes(changed))).get_plan(DIGEST)


@pytest.mark.parametrize(
    "change",
    [
        {"ranks": "0-"},
        {"ranks": 7},
        {"ranks": "0-9999999"},
        {"cut": "diagonal"},
        {"row_offset": "x", "cut": "rows"},
    ],
)
def test_what_cannot_be_expanded_is_no_plan(change: dict[str, Any]) -> None:
    broken = json.loads(COMPACT)
    broken["tables"][0]["shards"][0].update(change)
    with pytest.raises(UnexpectedAnswer, match="not a plan document"):
        parse_plan(canonical_bytes(broken))
    with pytest.raises(UnexpectedAnswer, match="not a plan document"):
        check_plan(broken, world_size=2, ranks_per_host=2)
