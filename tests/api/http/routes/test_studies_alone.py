"""Studies whose solves are stopped, in a service of their own."""

from pathlib import Path

from tests.api.http.routes.test_studies import sweep
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.stand_ins import leave_in


def test_a_cancelled_study_stops_its_solves(tmp_path: Path) -> None:
    leave_in(tmp_path)
    with Live.of(tmp_path, plan=planners.hang, solver_processes=1) as live:
        study = live.post("/v1/studies", sweep(name="cancelled")).json()
        assert_problem(live.request("DELETE", f"/v1/studies/{study['id']}"), 409, "study-state")
        answer = live.post(f"/v1/studies/{study['id']}:cancel")
        assert answer.status_code in (200, 202)
        ended = live.get(f"/v1/studies/{study['id']}?wait=60").json()
        assert ended["state"] == "cancelled"
        assert {solve["state"] for solve in live.get("/v1/solves").json()["solves"]} <= {"cancelled"}
