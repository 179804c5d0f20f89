"""The two forms of a plan over HTTP: the long one is the default, and expanded from the compact one."""

from collections.abc import Iterator
from typing import Any

import pytest

from api.http.routes import plans
from api.services.plans import forms
from api.services.plans.forms import compact_bytes, gathered, long_bytes
from planner.domain.formats.canonical_json import canonical_bytes, plan_digest
from planner.domain.formats.compact_form import long_parts
from planner.domain.formats.compaction import compact_document
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny

ENCODINGS = ("identity", "gzip", "zstd")


@pytest.fixture(scope="module")
def digest(live: Live) -> str:
    digest = str(live.solve(TINY)["result"]["plan_digest"])
    assert live.put("/v1/channels/forms/prod", {"plan_digest": digest}).status_code == 201
    return digest


@pytest.fixture(params=["/v1/plans/{}", "/v1/channels/forms/prod/plan"])
def address(request: pytest.FixtureRequest, digest: str) -> str:
    return str(request.param).format(digest)


def test_both_forms_are_the_same_plan(live: Live, address: str, digest: str) -> None:
    default, long, compact = (live.get(address + query) for query in ("", "?form=long", "?form=compact"))
    assert default.content == long.content
    assert default.headers["etag"] == long.headers["etag"] != compact.headers["etag"]
    assert compact.json() == compact_document(long.json())
    assert compact.content == canonical_bytes(compact.json())
    assert long_bytes(compact.content) == long.content
    assert plan_digest(compact.json()) == digest == compact.headers["x-plan-digest"]
    again = live.get(f"{address}?form=compact", headers={"If-None-Match": compact.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert live.request("HEAD", f"{address}?form=compact").headers["etag"] == compact.headers["etag"]


def test_the_compact_form_is_stored(live: Live, digest: str) -> None:
    stored = live.app.state.services.store.plan(digest)
    assert stored.canonical == live.get(f"/v1/plans/{digest}?form=compact").content


def test_a_plan_that_was_stored_in_long_form_has_both_forms(live: Live, digest: str) -> None:
    compact, long = (live.get(f"/v1/plans/{digest}?form={form}").content for form in ("compact", "long"))
    assert compact_bytes(long) == compact_bytes(compact) == compact


@pytest.mark.parametrize("query", ["form=compact&rank=0", "rank=0&form=compact", "form=short", "form="])
def test_forms_that_there_are_not(live: Live, address: str, query: str) -> None:
    assert_problem(live.get(f"{address}?{query}"), 400, "invalid-parameter")


def test_a_slice_may_be_asked_for_in_long_form(live: Live, address: str) -> None:
    assert live.get(f"{address}?rank=1&form=long").content == live.get(f"{address}?rank=1").content


@pytest.fixture(scope="module")
def large_digest(live: Live) -> str:
    """Of a plan whose long form no test fetches but under ``large_address``, so that it is never in memory."""
    digest = str(live.solve(tiny(model__tables__0__num_embeddings=1001))["result"]["plan_digest"])
    assert live.put("/v1/channels/large/prod", {"plan_digest": digest}).status_code == 201
    return digest


@pytest.fixture(params=["/v1/plans/{}", "/v1/channels/large/prod/plan"])
def large_address(request: pytest.FixtureRequest, large_digest: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(forms, "MOST_READY_SHARDS", 0)
    return str(request.param).format(large_digest)


def test_a_large_long_form_is_written_while_it_is_sent(live: Live, large_address: str) -> None:
    compact = live.get(f"{large_address}?form=compact")
    etags = {compact.headers["etag"]}
    for encoding in ENCODINGS:
        answer = live.get(large_address, headers={"Accept-Encoding": encoding})
        assert answer.content == long_bytes(compact.content)
        assert answer.headers.get("content-encoding", "identity") == encoding
        assert answer.headers["x-plan-digest"] == compact.headers["x-plan-digest"]
        assert answer.headers["cache-control"] == compact.headers["cache-control"]
        assert "content-length" not in answer.headers
        etags.add(answer.headers["etag"])
        sent = {"Accept-Encoding": encoding, "If-None-Match": answer.headers["etag"]}
        assert live.get(large_address, headers=sent).status_code == 304
        head = live.request("HEAD", large_address, headers={"Accept-Encoding": encoding})
        assert (head.headers["etag"], head.content) == (answer.headers["etag"], b"")
        assert "content-length" not in head.headers
        assert head.headers["content-type"] == answer.headers["content-type"]
    assert len(etags) == len(ENCODINGS) + 1


def test_a_large_long_form_is_counted_once_and_expanded_for_its_bytes_alone(
    live: Live, large_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    etag = live.get(large_address).headers["etag"]  # counts its shards, if no fetch before did
    expanded: list[object] = []

    def parts(plan: dict[str, Any]) -> Iterator[bytes]:
        expanded.append(plan)
        return long_parts(plan)

    monkeypatch.setattr(forms, "long_parts", parts)
    monkeypatch.setattr(forms, "num_shards", lambda _: pytest.fail("its shards are counted again"))
    assert live.get(large_address, headers={"If-None-Match": etag}).status_code == 304
    assert live.request("HEAD", large_address).status_code == 200
    assert expanded == []
    assert live.get(large_address).status_code == 200
    assert len(expanded) == 1


def test_an_export_states_its_length_unless_it_is_the_long_form(
    live: Live, digest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"/v1/plans/{digest}/exports"
    export, head = (live.request(method, f"{address}/torchrec?module_path=m") for method in ("GET", "HEAD"))
    assert export.headers["content-length"] == head.headers["content-length"] == str(len(export.content))
    assert live.request("HEAD", f"{address}/torchrec").status_code == 422
    assert "content-length" not in live.get(f"{address}/json").headers
    monkeypatch.setattr(plans, "export_parts", lambda *_, **__: pytest.fail("HEAD exports the plan"))
    head = live.request("HEAD", f"{address}/json")
    assert (head.status_code, head.headers["x-plan-digest"]) == (200, digest)
    assert "content-length" not in head.headers


def test_an_export_as_json_is_the_long_form(live: Live, digest: str) -> None:
    export = live.get(f"/v1/plans/{digest}/exports/json")
    assert export.content == live.get(f"/v1/plans/{digest}").content


def test_a_plan_in_compact_form_is_evaluated_like_the_long_one(live: Live, digest: str) -> None:
    answers = []
    for form in ("long", "compact"):
        plan = live.get(f"/v1/plans/{digest}?form={form}").json()
        answers.append(
            [live.post(f"/v1/plans:{what}", {"spec": TINY, "plan": plan}) for what in ("evaluate", "certify")]
        )
    for long, compact in zip(*answers, strict=True):
        assert long.status_code == compact.status_code == 200
        assert compact.json() == long.json()
    assert answers[1][0].json()["valid"] is True


def test_a_compact_plan_may_be_the_one_to_move_away_from(live: Live, digest: str) -> None:
    solves = []
    for form in ("long", "compact"):
        plan = live.get(f"/v1/plans/{digest}?form={form}").json()
        solves.append(live.solve({**TINY, "previous_plan": {"plan": plan}}))
    assert solves[0]["id"] == solves[1]["id"]  # one normal form, and so one solve
    assert solves[0]["result"]["movement"]["previous_plan_digest"] == digest


@pytest.mark.parametrize(
    ("change", "pointer", "message"),
    [
        ({"ranks": "5-2"}, "/plan/tables/0/shards/0/ranks", "ends before it begins"),
        ({"ranks": "zero"}, "/plan/tables/0/shards/0/ranks", "characters that are not taken here"),
        ({"ranks": "0-4096"}, "/plan/tables/0/shards/0/ranks", "ranks are below 4,096"),
        ({"ranks": ",".join(["0-4095"] * 3)}, "/plan/tables/0/shards/0/ranks", "at most 8,192 shards"),
        ({"cut": "diagonal"}, "/plan/tables/0/shards/0/cut", "not one of the values"),
        ({"rank": 3}, "/plan/tables/0/shards/0/rank", "unknown field"),
    ],
)
def test_what_is_wrong_with_a_group_has_its_place(
    live: Live, digest: str, change: dict[str, object], pointer: str, message: str
) -> None:
    plan = live.get(f"/v1/plans/{digest}?form=compact").json()
    plan["tables"][0]["shards"][0].update(change)
    problem = assert_problem(live.post("/v1/plans:evaluate", {"spec": TINY, "plan": plan}), 422, "invalid-problem")
    (issue,) = problem["errors"]
    assert issue["pointer"] == pointer
    assert message in issue["message"]


def test_groups_do_not_hide_more_shards_than_a_table_or_a_plan_may_have(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}?form=compact").json()
    group = {**plan["tables"][0]["shards"][0], "ranks": "0-4095"}
    table = {**plan["tables"][0], "shards": [group] * 3}
    cases = (
        ([table], "/plan/tables/0", "at most 8,192 shards"),
        ([{**table, "shards": [group]}] * 4097, "/plan", "at most 16,777,216 shards"),
        ([{**table, "shards": [group]}] * 513, "", "at most 2,097,152 shards are judged over HTTP"),
    )
    for tables, pointer, message in cases:
        body = {"spec": TINY, "plan": {**plan, "tables": tables}}
        problem = assert_problem(live.post("/v1/plans:evaluate", body), 422, "invalid-problem")
        (issue,) = problem["errors"]
        assert issue["pointer"] == pointer
        assert message in issue["message"]


def test_a_previous_plan_does_not_hide_more_shards_either(live: Live, digest: str) -> None:
    plan = live.get(f"/v1/plans/{digest}?form=compact").json()
    table = {**plan["tables"][0], "shards": [{**plan["tables"][0]["shards"][0], "ranks": "0-4095"}]}
    spec = {**TINY, "previous_plan": {"plan": {**plan, "tables": [table] * 513}}}
    for address, body, base in (
        ("/v1/solves", spec, ""),
        ("/v1/plans:evaluate", {"spec": spec, "plan": plan}, "/spec"),
    ):
        problem = assert_problem(live.post(address, body), 422, "invalid-problem")
        (issue,) = problem["errors"]
        assert issue["pointer"] == f"{base}/previous_plan/plan"
        assert "2,101,248 shards; over HTTP a previous plan has at most 2,097,152" in issue["message"]
        assert "--previous" in issue["hint"]


def test_parts_are_gathered_to_megabytes() -> None:
    parts = [bytes(300_000)] * 9
    sizes = [len(part) for part in gathered(iter(parts))]
    assert sizes == [1_200_000, 1_200_000, 300_000]
    assert list(gathered(iter([]))) == [b""]
