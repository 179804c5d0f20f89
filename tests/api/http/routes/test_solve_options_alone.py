"""What requests say of solves next to their specs, on services of the tests' own."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.api.execution.test_engine import wait_for_pid
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough


def at(seconds_from_now: float) -> str:
    return quote((datetime.now(UTC) + timedelta(seconds=seconds_from_now)).isoformat(), safe="")


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Live]:
    """A service whose only solver is busy with a solve that finds nothing."""
    leave_in(tmp_path)
    with Live.of(tmp_path, plan=planners.hang) as live:
        live.post("/v1/solves", tiny(name="busy", solver__time_limit_seconds=600))
        wait_for_pid(tmp_path)
        yield live


def test_a_deadline_that_passes_in_the_queue_fails_the_solve_which_is_tried_again_with_all_its_time(
    stuck: Live,
) -> None:
    busy = stuck.get("/v1/solves").json()["solves"][0]["id"]
    spec = tiny(name="late", solver__time_limit_seconds=600)
    late = stuck.post(f"/v1/solves?deadline={at(0.5)}", spec).json()["id"]
    time.sleep(0.6)
    stuck.post(f"/v1/solves/{busy}:cancel")
    solve = stuck.get(f"/v1/solves/{late}?wait=30").json()
    assert (solve["state"], solve["error"]["code"]) == ("failed", "deadline-passed")
    again = stuck.post(f"/v1/solves/{late}:retry").json()
    assert (again["deadline"], again["warnings"]) == (None, [])
    store = stuck.app.state.services.store
    stored = json.loads(store.spec(store.solve(again["id"]).request_digest))
    assert stored["solver"]["time_limit_seconds"] == 600


def test_the_server_limits_the_time_of_solves(tmp_path: Path) -> None:
    with Live.of(tmp_path, max_solve_seconds=2.0) as live:
        solve = live.solve(tiny(solver__time_limit_seconds=600))
        assert [warning["code"] for warning in solve["warnings"]] == ["time-limit-clamped"]
        assert live.solve(tiny(solver__time_limit_seconds=2))["id"] == solve["id"]  # the same request by then


@thorough
def test_a_failed_solve_is_tried_again(tmp_path: Path) -> None:
    leave_in(tmp_path)
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


def test_solves_that_have_not_ended_are_not_deleted(stuck: Live) -> None:
    busy = stuck.get("/v1/solves").json()["solves"][0]["id"]
    reported = assert_problem(stuck.request("DELETE", f"/v1/solves/{busy}"), 409, "solve-state")
    assert "running" in reported["detail"]
    assert_problem(stuck.post(f"/v1/solves/{busy}:retry"), 409, "solve-state")
