"""Priorities, deadlines, tags and limits of requests; trying again; deleting."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny


def at(seconds_from_now: float) -> str:
    return quote((datetime.now(UTC) + timedelta(seconds=seconds_from_now)).isoformat(), safe="")


def test_tags_and_priority_stand_in_the_solve_and_lists_find_it(live: Live) -> None:
    solve = live.solve(tiny(name="tagged"), query="?tag=team%3Dads&tag=nightly&tag=nightly&priority=-7")
    assert (solve["priority"], solve["tags"], solve["deadline"]) == (-7, ["nightly", "team=ads"], None)
    live.solve(tiny(name="tagged too"), query="?tag=nightly")
    page = live.get("/v1/solves?tag=nightly&page_size=1&state=succeeded")
    assert [one["name"] for one in page.json()["solves"]] == ["tagged too"]
    rest = live.get(page.headers["link"].partition(">")[0].removeprefix("<")).json()
    assert [one["name"] for one in rest["solves"]] == ["tagged"]
    assert rest["solves"][0]["tags"] == ["nightly", "team=ads"]
    assert live.get("/v1/solves?tag=other").json()["solves"] == []


@pytest.mark.parametrize(
    "query",
    [
        "tag=A",
        "tag=",
        "tag=" + "a" * 65,
        "&".join(f"tag={number}" for number in range(17)),
        "priority=101",
        "priority=high",
        "deadline=tomorrow",
        "deadline=2026-13-01T00:00:00Z",
        "deadline=2026-01-01T00:00:00",
        "deadline=1764000000",
        "deadline=9999-12-31T23:59:59-23:59",
        "deadline=0001-01-01T00:00:00%2B23:59",
    ],
)
def test_constraints_that_are_not_accepted(live: Live, query: str) -> None:
    assert_problem(live.post(f"/v1/solves?{query}", TINY), 400, "invalid-parameter")


def test_a_deadline_shortens_the_search_and_says_so(live: Live) -> None:
    spec = tiny(name="urgent", solver__time_limit_seconds=3000)
    solve = live.solve(spec, query=f"?deadline={at(120)}")
    (warning,) = [one for one in solve["warnings"] if one["code"] == "time-limit-deadline"]
    assert warning["pointer"] == "/solver/time_limit_seconds"
    assert "119." in warning["message"]
    assert solve["deadline"] is not None
    again = live.solve(spec)
    assert again["id"] != solve["id"]  # what had less time does not answer those who have more
    assert again["warnings"] == []
    assert live.solve(spec, query=f"?deadline={at(120)}")["id"] == again["id"]  # but the other way round


def test_a_deadline_that_is_far_changes_nothing(live: Live) -> None:
    solve = live.solve(tiny(name="far"), query=f"?deadline={at(3600)}")
    assert solve["warnings"] == []


def test_a_deadline_in_the_past_is_refused(live: Live) -> None:
    before = live.num_solves()
    assert_problem(live.post(f"/v1/solves?deadline={at(-1)}", tiny(name="late")), 422, "deadline-passed")
    assert live.num_solves() == before


def test_ended_solves_are_deleted_and_their_plans_stay(live: Live) -> None:
    solve = live.solve(tiny(name="deleted", model__batch_size_per_rank=77))
    url, plan = f"/v1/solves/{solve['id']}", solve["result"]["plan_url"]
    answer = live.request("DELETE", url)
    assert (answer.status_code, answer.content) == (204, b"")
    assert_problem(live.get(url), 404, "not-found")
    assert_problem(live.get(f"{url}/events"), 404, "not-found")
    assert_problem(live.request("DELETE", url), 404, "not-found")
    assert live.get(plan).status_code == 200
    assert live.get(f"{plan}/explanation").status_code == 200
    assert live.get("/v1/plans").json()["plans"][0]["solve_id"] is None
    assert live.solve(tiny(name="deleted", model__batch_size_per_rank=77))["id"] != solve["id"]
