"""Priorities, deadlines, tags and limits of requests; trying again; deleting."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.api import planners
from tests.api.live import Live
from tests.api.problems import assert_problem
from tests.api.specs import TINY, tiny
from tests.api.test_engine import wait_for_pid


def at(seconds_from_now: float) -> str:
    return quote((datetime.now(UTC) + timedelta(seconds=seconds_from_now)).isoformat(), safe="")


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A service whose only solver is busy with a solve that finds nothing."""
    monkeypatch.setenv("SHARDPLAN_TEST_FOLDER", str(tmp_path))
    with Live.of(tmp_path, plan=planners.hang) as live:
        live.post("/v1/solves", tiny(name="busy", solver__time_limit_seconds=600))
        wait_for_pid(tmp_path)
        yield live


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
    ],
)
def test_wishes_that_are_not_accepted(live: Live, query: str) -> None:
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


def test_a_deadline_that_passes_in_the_queue_fails_the_solve(stuck: Live) -> None:
    busy = stuck.get("/v1/solves").json()["solves"][0]["id"]
    late = stuck.post(f"/v1/solves?deadline={at(0.5)}", tiny(name="late")).json()["id"]
    time.sleep(0.6)
    stuck.post(f"/v1/solves/{busy}:cancel")
    solve = stuck.get(f"/v1/solves/{late}?wait=30").json()
    assert (solve["state"], solve["error"]["code"]) == ("failed", "deadline-passed")


def test_higher_priorities_start_first(stuck: Live) -> None:
    busy = stuck.get("/v1/solves").json()["solves"][0]["id"]
    low, high = (
        stuck.post(f"/v1/solves?priority={priority}", tiny(name=f"priority {priority}")).json()["id"]
        for priority in (-1, 1)
    )
    stuck.post(f"/v1/solves/{busy}:cancel")
    deadline = time.monotonic() + 30
    while stuck.get(f"/v1/solves/{high}").json()["state"] == "queued":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert stuck.get(f"/v1/solves/{low}").json()["state"] == "queued"


def test_the_server_limits_the_time_of_solves(tmp_path: Path) -> None:
    with Live.of(tmp_path, max_solve_seconds=2.0) as live:
        solve = live.solve(tiny(solver__time_limit_seconds=600))
        assert [warning["code"] for warning in solve["warnings"]] == ["time-limit-clamped"]
        assert live.solve(tiny(solver__time_limit_seconds=2))["id"] == solve["id"]  # the same request by then


def test_a_failed_solve_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDPLAN_TEST_FOLDER", str(tmp_path))
    with Live.of(tmp_path, plan=planners.raise_defect) as live:
        failed = live.post("/v1/solves?tag=x&priority=3", TINY, headers={"Prefer": "wait=30"}).json()
        assert failed["state"] == "failed"
    with Live.of(tmp_path) as live:
        answer = live.post(f"/v1/solves/{failed['id']}:retry", headers={"Idempotency-Key": "again"})
        assert answer.status_code == 202
        assert int(answer.headers["retry-after"]) >= 1
        solve = live.get(f"{answer.headers['location']}?wait=30").json()
        assert solve["id"] != failed["id"]
        assert (solve["state"], solve["name"], solve["tags"], solve["priority"]) == ("succeeded", "tiny", ["x"], 3)
        assert solve["assumptions"] == failed["assumptions"]
        again = live.post(f"/v1/solves/{failed['id']}:retry", headers={"Idempotency-Key": "again"})
        assert (again.status_code, again.json()["id"]) == (200, solve["id"])
        assert_problem(live.post(f"/v1/solves/{solve['id']}:retry"), 409, "solve-state")
        assert live.get(f"/v1/solves/{failed['id']}").json()["state"] == "failed"
        assert_problem(live.post("/v1/solves/0123:retry"), 404, "not-found")


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


def test_solves_that_have_not_ended_are_not_deleted(stuck: Live) -> None:
    busy = stuck.get("/v1/solves").json()["solves"][0]["id"]
    told = assert_problem(stuck.request("DELETE", f"/v1/solves/{busy}"), 409, "solve-state")
    assert "running" in told["detail"]
    assert_problem(stuck.post(f"/v1/solves/{busy}:retry"), 409, "solve-state")
