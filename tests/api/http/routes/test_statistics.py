"""Storing statistics, planning with them, and their drift."""

import pytest

from planner.domain.formats.canonical_json import canonical_bytes
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import tiny
from tests.support.service.statistics_files import ROWS, document, idle

NOTHING = "sha256:" + "0" * 64


def spec(reference: str, *, rows: int = ROWS) -> dict[str, object]:
    return tiny(model__tables__0__access={"statistics": reference}, model__tables__0__num_embeddings=rows)


@pytest.fixture(scope="module")
def digest(live: Live) -> str:
    answer = live.post("/v1/statistics", document("x", "y"))
    assert answer.status_code == 201
    found = answer.json()
    assert answer.headers["location"] == found["statistics_url"] == f"/v1/statistics/{found['statistics_digest']}"
    assert (found["num_tables"], found["num_lookups"]) == (2, 40_000)
    return str(found["statistics_digest"])


def test_equal_statistics_are_stored_once(live: Live, digest: str) -> None:
    again = live.post("/v1/statistics", document("x", "y"))
    assert (again.status_code, again.json()["statistics_digest"]) == (200, digest)


def test_statistics_are_fetched_by_digest(live: Live, digest: str) -> None:
    answer = live.get(f"/v1/statistics/{digest}")
    assert answer.status_code == 200
    assert answer.content == canonical_bytes(document("x", "y"))
    assert "immutable" in answer.headers["cache-control"]
    same = live.get(f"/v1/statistics/{digest}", headers={"If-None-Match": answer.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    assert_problem(live.get(f"/v1/statistics/{NOTHING}"), 404, "not-found")
    assert_problem(live.get("/v1/statistics/x"), 400, "invalid-parameter")


def test_statistics_are_listed_page_by_page(live: Live, digest: str) -> None:
    other = live.post("/v1/statistics", document("z")).json()["statistics_digest"]
    seen, url = [], "/v1/statistics?page_size=1"
    while url:
        page = live.get(url).json()
        seen += [item["statistics_digest"] for item in page["statistics"]]
        token = page["next_page_token"]
        url = f"/v1/statistics?page_size=1&page_token={token}" if token else ""
    assert seen == sorted(seen)
    assert {digest, other} <= set(seen)


def test_what_contradicts_itself_is_not_stored(live: Live) -> None:
    broken = dict(document("x"))
    broken["tables"] = [{**broken["tables"][0], "lookups": 1}]
    problem = assert_problem(live.post("/v1/statistics", broken), 422, "invalid-problem")
    assert problem["errors"][0]["pointer"] == "/tables/0"
    assert "sum to 20000" in problem["errors"][0]["message"]


def test_a_plan_says_which_statistics_it_was_made_with(live: Live, digest: str) -> None:
    plan_digest = live.solve(spec(f"{digest}#x"))["result"]["plan_digest"]
    plan = live.get(f"/v1/plans/{plan_digest}").json()
    name = plan["tables"][0]["name"]
    evidence = plan["provenance"]["evidence"][f"model.tables.{name}.access"]
    assert evidence["value"] == f"{digest}#x"
    assert evidence["evidence"] == "statistics"
    assert "20,000 lookups in 20 batches" in evidence["source"]
    assert live.get(f"/v1/plans/{plan_digest}/explanation").status_code == 200

    same = live.get(f"/v1/plans/{plan_digest}/drift?statistics={digest}").json()
    assert (same["num_tables"], same["num_drifted"]) == (1, 0)
    flat = live.post("/v1/statistics", document("x", alpha=0.2)).json()["statistics_digest"]
    drift = live.get(f"/v1/plans/{plan_digest}/drift?statistics={flat}").json()
    assert (drift["before"], drift["now"], drift["num_drifted"]) == ([digest], flat, 1)
    assert drift["tables"][0]["table"] == name
    assert drift["tables"][0]["reasons"]


def test_a_plan_without_statistics_has_no_drift(live: Live, digest: str) -> None:
    plan_digest = live.solve(tiny())["result"]["plan_digest"]
    assert_problem(live.get(f"/v1/plans/{plan_digest}/drift?statistics={digest}"), 404, "not-found")


def test_drift_of_statistics(live: Live, digest: str) -> None:
    later = live.post("/v1/statistics", document("y", "z", alpha=0.2)).json()["statistics_digest"]
    drift = live.get(f"/v1/statistics/{digest}/drift?against={later}").json()
    assert (drift["num_tables"], drift["num_drifted"]) == (1, 1)
    assert (drift["only_before"], drift["only_now"]) == (["x"], ["z"])
    assert_problem(live.get(f"/v1/statistics/{digest}/drift?against={NOTHING}"), 404, "not-found")
    assert_problem(live.get(f"/v1/statistics/{digest}/drift"), 400, "invalid-parameter")


@pytest.mark.parametrize(
    ("reference", "code"),
    [(NOTHING, "unknown-statistics"), ("{digest}#nobody", "unknown-statistics"), ("x", "invalid-value")],
)
def test_a_reference_that_leads_nowhere_is_refused(live: Live, digest: str, reference: str, code: str) -> None:
    for url in ("/v1/solves", "/v1/specs:validate"):
        problem = assert_problem(live.post(url, spec(reference.format(digest=digest))), 422, "invalid-problem")
        assert [(issue["pointer"], issue["code"]) for issue in problem["errors"]] == [
            ("/model/tables/0/access/statistics", code)
        ]


def test_statistics_of_another_table_are_refused(live: Live, digest: str) -> None:
    problem = assert_problem(live.post("/v1/solves", spec(f"{digest}#x", rows=500)), 422, "invalid-problem")
    assert problem["errors"][0]["code"] == "statistics-mismatch"
    assert "the table has 500 rows" in problem["errors"][0]["message"]


def test_statistics_without_lookups_are_refused(live: Live) -> None:
    digest = live.post("/v1/statistics", idle("x").document).json()["statistics_digest"]
    problem = assert_problem(live.post("/v1/solves", spec(f"{digest}#x")), 422, "invalid-problem")
    assert "never looked up" in problem["errors"][0]["message"]
