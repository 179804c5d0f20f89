"""Whatever happens to a solver process: its solve ends, its best plan stays, others go on."""

import errno
import json
import os
import signal
import threading
import time
from concurrent.futures import Future
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from sqlalchemy import update

from api.execution.base import NotNow
from api.execution.processes.slot import ProcessSlot
from api.execution.solves import runner as solve_runner
from api.execution.solves.results import STOPPED, Stop
from api.execution.solves.runner import MAX_ATTEMPTS
from api.execution.solves.slot import SolverSlot
from api.store.database import Database
from api.store.solves.records import ACCIDENTS, RUNNING
from api.store.sql import tables
from tests.support.service import planners
from tests.support.service.live import Live
from tests.support.service.problems import assert_problem
from tests.support.service.specs import TINY, tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    leave_in(tmp_path)
    return tmp_path


def wait_for_pid(folder: Path) -> int:
    wait_until(lambda: (folder / "pid").exists())
    pid = int((folder / "pid").read_text())
    (folder / "pid").unlink()
    return pid


def wait_for_progress(live: Live, solve_id: str) -> dict[str, object]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (solve := live.get(f"/v1/solves/{solve_id}").json())["progress"] is None:
        assert time.monotonic() < deadline, "no plan was streamed"
        time.sleep(0.02)
    return solve


def plan_is_valid(live: Live, solve: dict[str, object], spec: object) -> bool:
    """Whether the published plan passes the independent verifier and has the digest it says."""
    plan = live.get(solve["result"]["plan_url"]).json()
    assert plan["plan_digest"] == solve["result"]["plan_digest"]
    return live.post("/v1/plans:evaluate", {"spec": spec, "plan": plan}).json()["valid"]


def test_a_solve_that_overruns_is_stopped_and_keeps_its_best_plan(folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=0.5)
    with Live.of(folder, plan=planners.plan_then_hang, solver_grace_seconds=1.0) as live:
        solve = live.solve(spec)
        assert solve["state"] == "succeeded"
        assert solve["result"]["termination"]["reason"] == "FEASIBLE"
        assert solve["result"]["termination"]["limit"] == "time"
        assert plan_is_valid(live, solve, spec)
    with pytest.raises(ProcessLookupError):
        os.kill(wait_for_pid(folder), 0)


def test_a_solve_that_overruns_without_a_plan_fails_with_a_reason(folder: Path) -> None:
    with Live.of(folder, plan=planners.hang, solver_grace_seconds=0.5) as live:
        solve = live.solve(tiny(solver__time_limit_seconds=0.2))
        assert solve["state"] == "failed"
        assert solve["result"] is None
        assert solve["error"]["code"] == "time-limit"
        assert solve["error"]["hint"]


@thorough
def test_a_better_bound_is_reported_while_the_plan_stays(folder: Path) -> None:
    with Live.of(folder, plan=planners.plan_with_bounds) as live:
        solve = live.solve(tiny())
        text = live.get(f"/v1/solves/{solve['id']}/events").text
        reported = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
        found = [(one["incumbent_seconds"], one["bound_seconds"]) for one in reported if "bound_seconds" in one]
        assert len({seconds for seconds, _ in found}) == 1
        assert [bound / found[-1][1] for _, bound in found] == pytest.approx([0.25, 0.5, 1.0])


def test_a_killed_process_keeps_its_best_plan_and_the_next_solve_runs(folder: Path) -> None:
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        first = live.post("/v1/solves", tiny(solver__time_limit_seconds=60)).json()["id"]
        os.kill(wait_for_pid(folder), signal.SIGKILL)
        solve = live.get(f"/v1/solves/{first}?wait=30").json()
        assert solve["state"] == "succeeded"
        assert solve["result"]["termination"]["limit"] == "killed"
        assert plan_is_valid(live, solve, TINY | {"solver": {**TINY["solver"], "time_limit_seconds": 60}})
        second = live.post("/v1/solves", tiny(name="second", solver__time_limit_seconds=60)).json()["id"]
        wait_for_pid(folder)
        assert live.get(f"/v1/solves/{second}").json()["state"] == RUNNING


def test_a_crash_fails_only_its_own_solve(folder: Path) -> None:
    with Live.of(folder, plan=planners.die_on_boom) as live:
        bad = live.post("/v1/solves", tiny(model__tables__0__name="boom")).json()["id"]
        good = live.post("/v1/solves", TINY).json()["id"]
        crashed = live.get(f"/v1/solves/{bad}?wait=30").json()
        assert (crashed["state"], crashed["error"]["code"]) == ("failed", "solver-killed")
        assert live.get(f"/v1/solves/{good}?wait=30").json()["state"] == "succeeded"


@thorough
@pytest.mark.parametrize(("way", "code"), [("leave", "solver-killed"), ("quit", "solver-defect")])
def test_a_solver_that_leaves_as_if_all_were_well_ends_its_solve_at_once(folder: Path, way: str, code: str) -> None:
    with Live.of(folder, plan=planners.misbehave) as live:
        solve = live.solve(tiny(model__tables__0__name=way, solver__time_limit_seconds=600))
        assert (solve["state"], solve["error"]["code"]) == ("failed", code)


def test_what_is_no_answer_to_equal_requests_is_what_stops_a_solver_by_accident() -> None:
    assert set(ACCIDENTS) == {Stop.KILLED, Stop.ATTEMPTS, Stop.MEMORY, Stop.DEFECT}


@thorough
@pytest.mark.parametrize("victim", ["the idle process", "the one it is forked from"])
def test_an_idle_process_that_is_killed_is_replaced(folder: Path, victim: str) -> None:
    with Live.of(folder) as live:
        assert live.solve(TINY)["state"] == "succeeded"
        (parent,) = children_of(os.getpid())
        (idle,) = children_of(parent)
        os.kill(idle if victim == "the idle process" else parent, signal.SIGKILL)
        # it dies a little after its parent, and until then may take up what comes
        wait_until(lambda: not is_alive(idle))
        assert live.solve(tiny(name="after"))["state"] == "succeeded"


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead may not have been reaped yet."""
    try:
        _, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    except OSError:
        return False
    return rest.split()[0] != "Z"


def children_of(pid: int) -> list[int]:
    """Solver processes of a process: those in a session of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                _, _, rest = (entry / "stat").read_text().rpartition(")")
            except OSError:
                continue
            state, parent, _, session = rest.split()[:4]
            if int(parent) == pid and int(session) == int(entry.name) and state != "Z":
                found.append(int(entry.name))
    return found


@thorough
def test_solver_processes_yield_to_the_server(folder: Path) -> None:
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        live.post("/v1/solves", TINY)
        pid = wait_for_pid(folder)
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        assert os.getsid(pid) == pid


def test_a_defect_ends_the_solve_and_its_text_stays_in_the_log(folder: Path) -> None:
    with Live.of(folder, plan=planners.raise_defect) as live:
        solve = live.solve(TINY)
        assert (solve["state"], solve["error"]["code"]) == ("failed", "solver-defect")
        assert "this text" not in str(solve)


def test_a_refusal_of_the_planner_is_reported_with_its_way_out(folder: Path) -> None:
    with Live.of(folder, plan=planners.refuse) as live:
        error = live.solve(TINY)["error"]
        assert error["code"] == "missing-hardware-number"
        assert "hardware.overrides.hbm_bytes_per_second" in error["hint"]


def test_a_process_that_eats_memory_is_reported_from_the_rest(folder: Path) -> None:
    with Live.of(folder, plan=planners.eat_memory, solver_memory_bytes=1024**3) as live:
        assert live.solve(tiny(solver__time_limit_seconds=30))["error"]["code"] == "out-of-memory"


@thorough
@pytest.mark.parametrize(
    ("planner", "limit"), [(planners.plan_then_eat_memory, "memory"), (planners.plan_then_defect, "defect")]
)
def test_a_solve_that_fails_after_a_plan_keeps_it_and_says_why_it_stopped(
    folder: Path, planner: object, limit: str
) -> None:
    spec = tiny(solver__time_limit_seconds=30)
    with Live.of(folder, plan=planner, solver_memory_bytes=1024**3) as live:
        solve = live.solve(spec)
        assert (solve["state"], solve["error"]) == ("succeeded", None)
        termination = solve["result"]["termination"]
        assert (termination["reason"], termination["limit"]) == ("FEASIBLE", limit)
        assert "best plan until then" in termination["detail"]
        assert plan_is_valid(live, solve, spec)


@pytest.mark.parametrize("reproducible", [True, False])
def test_what_is_streamed_never_stands_in_for_the_answer_of_a_reproducible_search(
    folder: Path, *, reproducible: bool
) -> None:
    """Which plans are streamed is up to the clock; else the better plan counts, whenever it was found."""
    spec = tiny(solver__reproducible=reproducible)
    with Live.of(folder, plan=planners.plan_after_a_faster_one) as live:
        found = live.solve(spec)["result"]["objective"]["seconds"]
    with Live.of(folder.with_name("usual")) as live:
        usual = live.solve(spec)["result"]["objective"]["seconds"]
    assert found == pytest.approx(usual if reproducible else 0.5 * usual)


@thorough
def test_a_plan_outlives_a_restart_and_a_cancel(folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=60)
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        solve_id = live.post("/v1/solves", spec).json()["id"]
        found = wait_for_progress(live, solve_id)["progress"]
        wait_for_pid(folder)
    with Live.of(folder, plan=planners.hang) as live:
        wait_for_pid(folder)
        assert live.get(f"/v1/solves/{solve_id}").json()["progress"] == found
        live.post(f"/v1/solves/{solve_id}:cancel")
        solve = live.get(f"/v1/solves/{solve_id}?wait=30").json()
        assert solve["state"] == "cancelled"
        assert plan_is_valid(live, solve, spec)


@thorough
def test_a_plan_outlives_a_restart_and_a_cancel_while_its_solve_waits(folder: Path) -> None:
    specs = [tiny(name=name, solver__time_limit_seconds=60) for name in ("first", "second")]
    with Live.of(folder, plan=planners.plan_then_hang, solver_processes=2) as live:
        ids = [live.post("/v1/solves", spec).json()["id"] for spec in specs]
        for solve_id in ids:
            wait_for_progress(live, solve_id)
    (folder / "pid").unlink(missing_ok=True)
    with Live.of(folder, plan=planners.hang, solver_processes=1) as live:
        wait_for_pid(folder)
        assert live.get(f"/v1/solves/{ids[1]}").json()["state"] == "queued"
        answer = live.post(f"/v1/solves/{ids[1]}:cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
        assert plan_is_valid(live, answer.json(), specs[1])
        assert live.get(f"/v1/solves/{ids[0]}").json()["state"] == RUNNING


@thorough
def test_a_second_run_without_a_plan_ends_with_the_plan_of_the_first(folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=60)
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        solve_id = live.post("/v1/solves", spec).json()["id"]
        wait_for_progress(live, solve_id)
    with Live.of(folder, plan=planners.find_nothing) as live:
        solve = live.get(f"/v1/solves/{solve_id}?wait=30").json()
        assert (solve["state"], solve["result"]["termination"]["reason"]) == ("succeeded", "FEASIBLE")
        assert plan_is_valid(live, solve, spec)


def test_a_failure_next_to_the_solver_ends_one_solve_and_no_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule, failures = ProcessSlot.schedule, [OSError(errno.EMFILE, "too many open files")]

    def fail_once(self: ProcessSlot, *arguments: object) -> object:
        if failures:
            raise failures.pop()
        return schedule(self, *arguments)

    monkeypatch.setattr(ProcessSlot, "schedule", fail_once)
    with Live.of(folder) as live:
        bad = live.solve(TINY)
        assert (bad["state"], bad["error"]["code"]) == ("failed", "solver-defect")
        assert live.solve(tiny(name="next"))["state"] == "succeeded"
        assert live.get("/readyz").status_code == 200


def test_a_process_that_does_not_start_at_once_starts_later(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: ProcessSlot) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(ProcessSlot, "warm_up", fail)
    with Live.of(folder) as live:
        assert live.solve(TINY)["state"] == "succeeded"


def test_plans_on_their_way_lie_next_to_the_database_and_are_cleared(folder: Path) -> None:
    (folder / "running").mkdir()
    (folder / "running" / "stale.plan").write_bytes(b"left by a server that was killed")
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        solve_id = live.post("/v1/solves", tiny(solver__time_limit_seconds=60)).json()["id"]
        wait_for_progress(live, solve_id)
        assert [path.name for path in (folder / "running").iterdir()] == [f"{solve_id}-1.plan"]
        live.post(f"/v1/solves/{solve_id}:cancel")
        live.get(f"/v1/solves/{solve_id}?wait=30")
        assert list((folder / "running").iterdir()) == []


def test_a_plan_that_cannot_be_written_on_its_way_comes_with_the_answer(folder: Path) -> None:
    with Live.of(folder) as live:
        (folder / "running").rmdir()
        solve = live.solve(TINY)
        assert solve["state"] == "succeeded"
        assert plan_is_valid(live, solve, TINY)


def test_cancelling_keeps_the_best_plan_and_may_be_repeated(folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=60)
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        solve_id = live.post("/v1/solves", spec).json()["id"]
        progress = wait_for_progress(live, solve_id)["progress"]
        assert progress["incumbent_seconds"] >= progress["bound_seconds"] > 0
        wait_for_pid(folder)
        assert live.post(f"/v1/solves/{solve_id}:cancel").status_code == 202
        solve = live.get(f"/v1/solves/{solve_id}?wait=30").json()
        assert solve["state"] == "cancelled"
        assert solve["result"]["termination"]["limit"] == "cancelled"
        assert plan_is_valid(live, solve, spec)
        again = live.post(f"/v1/solves/{solve_id}:cancel")
        assert (again.status_code, again.json()["state"]) == (200, "cancelled")


def test_a_queued_solve_is_cancelled_at_once(folder: Path) -> None:
    with Live.of(folder, plan=planners.hang) as live:
        live.post("/v1/solves", tiny(name="first", solver__time_limit_seconds=60))
        wait_for_pid(folder)
        waiting = live.post("/v1/solves", tiny(name="second")).json()
        assert waiting["state"] == "queued"
        answer = live.post(f"/v1/solves/{waiting['id']}:cancel")
        assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")


def test_solves_of_a_higher_priority_begin_before_older_ones(folder: Path) -> None:
    spec = tiny(name="runs", solver__time_limit_seconds=60)
    with Live.of(folder, plan=planners.hang) as live:
        running = live.post("/v1/solves", spec).json()["id"]
        wait_for_pid(folder)
        constraints = {"low": "?priority=-7", "plain": "", "high": "?priority=9", "higher": "?priority=100"}
        ids = {
            name: live.post(f"/v1/solves{query}", tiny(name=name)).json()["id"] for name, query in constraints.items()
        }
        begun = []
        while len(begun) < len(ids):
            live.post(f"/v1/solves/{running}:cancel")
            wait_for_pid(folder)
            (running,) = (one["id"] for one in live.get("/v1/solves?state=running").json()["solves"])
            begun.append(running)
        assert begun == [ids[name] for name in ("higher", "high", "plain", "low")]


@thorough
def test_the_queue_is_made_again_from_the_store_where_its_file_is_lost(folder: Path) -> None:
    with Live.of(folder, plan=planners.hang) as live:
        running = live.post("/v1/solves", tiny(name="runs", solver__time_limit_seconds=60)).json()["id"]
        wait_for_pid(folder)
        waiting = live.post("/v1/solves", tiny(name="waits")).json()["id"]
    for path in folder.glob("queue.sqlite*"):
        path.unlink()
    with Live.of(folder) as live:
        for solve_id in (running, waiting):
            assert live.get(f"/v1/solves/{solve_id}?wait=60").json()["state"] == "succeeded"


@thorough
def test_a_solve_that_takes_down_whatever_runs_it_is_given_up_with_its_best_plan(folder: Path) -> None:
    spec = tiny(solver__time_limit_seconds=60)
    with Live.of(folder, plan=planners.plan_then_hang) as live:
        solve_id = live.post("/v1/solves", spec).json()["id"]
        wait_for_progress(live, solve_id)
        with live.app.state.services.store.engines.writer.begin() as connection:
            connection.execute(update(tables.solves).values(attempts=MAX_ATTEMPTS))
    with Live.of(folder, plan=planners.hang) as live:
        solve = live.get(f"/v1/solves/{solve_id}?wait=60").json()
        assert (solve["state"], solve["result"]["termination"]["limit"]) == ("succeeded", "attempts")
        assert plan_is_valid(live, solve, spec)


@thorough
def test_a_solve_is_tried_only_where_its_process_is_ready(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are killed while they start must not use its attempts up."""
    waits = threading.Event()

    def wait_for_the_end(_: SolverSlot, stopping: threading.Event) -> None:
        waits.set()
        stopping.wait(60)

    with monkeypatch.context() as patched, Live.of(folder) as live:
        patched.setattr(SolverSlot, "wait_until_ready", wait_for_the_end)
        solve_id = live.post("/v1/solves", TINY).json()["id"]
        assert waits.wait(30)
        assert live.get(f"/v1/solves/{solve_id}?wait=1").json()["state"] == "queued"
        store = live.app.state.services.store
    assert store.solve(solve_id).attempts == 0
    with Live.of(folder) as live:
        assert live.get(f"/v1/solves/{solve_id}?wait=30").json()["state"] == "succeeded"
        assert live.app.state.services.store.solve(solve_id).attempts == 1


def test_a_full_queue_answers_503_and_stores_nothing(folder: Path) -> None:
    with Live.of(folder, plan=planners.hang, max_queued_solves=1) as live:
        live.post("/v1/solves", tiny(name="runs", solver__time_limit_seconds=60))
        wait_for_pid(folder)
        assert live.post("/v1/solves", tiny(name="waits")).status_code == 202
        refused = live.post("/v1/solves", tiny(name="too much"))
        assert assert_problem(refused, 503, "queue-full")["retryable"] is True
        assert int(refused.headers["retry-after"]) >= 1
        assert live.num_solves() == 2


def test_solves_of_a_stopped_server_run_again_at_the_next_start(folder: Path) -> None:
    with Live.of(folder, plan=planners.hang) as live:
        running = live.post("/v1/solves", tiny(name="runs", solver__time_limit_seconds=60)).json()["id"]
        wait_for_pid(folder)
        queued = live.post("/v1/solves", tiny(name="waits")).json()["id"]
    with Live.of(folder) as live:
        for solve_id in (running, queued):
            assert live.get(f"/v1/solves/{solve_id}?wait=30").json()["state"] == "succeeded"


@thorough
def test_a_solve_that_was_cancelled_and_is_late_is_cancelled(folder: Path) -> None:
    with Live.of(folder, plan=planners.hang) as live:
        deadline = quote((datetime.now(UTC) + timedelta(seconds=3)).isoformat(), safe="")
        spec = tiny(solver__time_limit_seconds=60)
        solve_id = live.post(f"/v1/solves?deadline={deadline}", spec).json()["id"]
        wait_for_pid(folder)
    with closing(Database.of_file(folder / "shardplan.sqlite")) as database:
        solve = database.for_tenant("default").request_cancel(solve_id, now=time.time())
        assert solve is not None
        assert solve.cancel_requested
    time.sleep(3)
    with Live.of(folder, plan=planners.hang) as live:
        assert live.get(f"/v1/solves/{solve_id}?wait=30").json()["state"] == "cancelled"


@thorough
def test_a_solve_that_waits_for_its_turn_elsewhere_ends_at_its_deadline(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(*_: object) -> Future[object]:
        future: Future[object] = Future()
        future.set_exception(NotNow("the cluster is gone"))
        return future

    monkeypatch.setattr(SolverSlot, "solve", later)
    monkeypatch.setattr(solve_runner, "_PAUSE_SECONDS", 3600.0)
    with Live.of(folder) as live:
        deadline = quote((datetime.now(UTC) + timedelta(seconds=4)).isoformat(), safe="")
        solve = live.solve(tiny(solver__time_limit_seconds=60), query=f"?deadline={deadline}")
        assert (solve["state"], solve["error"]["code"]) == ("failed", STOPPED[Stop.DEADLINE]["code"])
