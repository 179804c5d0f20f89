"""Servers and workers that share a PostgreSQL database: work goes on whoever dies."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.service.local_postgres import Postgres
from tests.support.service.server import Server, start
from tests.support.service.specs import TINY, tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

Start = Callable[..., "subprocess.Popen[bytes]"]
#: What the design asks for: the solves of a machine that is gone run again within 30 seconds.
TAKE_OVER_SECONDS = 30


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.new_database()


@pytest.fixture
def start_worker(root: Path, tmp_path: Path, url: str) -> Iterator[Start]:
    """Start workers, which are gone after the test."""
    with contextlib.ExitStack() as stack:

        def begin(name: str, planner: str | None = None, **settings: object) -> "subprocess.Popen[bytes]":
            process = start("run_worker", "work", root, tmp_path / name, planner=planner, database_url=url, **settings)
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return process

        yield begin


@pytest.fixture
def server(root: Path, tmp_path: Path, url: str) -> Iterator[Server]:
    """A server that solves nothing itself."""
    server = Server(root, tmp_path / "server", database_url=url, solver_processes=0)
    try:
        yield server.wait_until_ready()
    finally:
        server.stop()


def wait_for(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def state_of(client: httpx.Client, solve_id: str) -> str:
    return str(client.get(f"/v1/solves/{solve_id}").json()["state"])


def submit(client: httpx.Client, spec: object) -> str:
    answer = client.post("/v1/solves", json=spec)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def test_a_worker_solves_for_a_server_that_does_not(server: Server, start_worker: Start) -> None:
    solve_id = submit(server.client, TINY)
    assert state_of(server.client, solve_id) == "queued"
    start_worker("worker")
    wait_for(lambda: state_of(server.client, solve_id) == "succeeded", 60)
    solve = server.client.get(f"/v1/solves/{solve_id}").json()
    plan = server.client.get(solve["result"]["plan_url"]).json()
    assert server.client.post("/v1/plans:evaluate", json={"spec": TINY, "plan": plan}).json()["valid"]


@thorough
def test_a_solve_on_another_machine_is_cancelled_and_keeps_its_plan(server: Server, start_worker: Start) -> None:
    start_worker("worker", planner="plan_then_hang")
    solve_id = submit(server.client, tiny(solver__time_limit_seconds=300))
    wait_for(lambda: server.client.get(f"/v1/solves/{solve_id}").json()["progress"] is not None, 60)
    assert server.client.post(f"/v1/solves/{solve_id}:cancel").status_code == 202
    wait_for(lambda: state_of(server.client, solve_id) == "cancelled", 10)
    assert server.client.get(f"/v1/solves/{solve_id}").json()["result"]["plan_digest"].startswith("sha256:")


@thorough
def test_the_work_of_a_machine_that_is_gone_is_taken_over(server: Server, start_worker: Start, tmp_path: Path) -> None:
    gone = start_worker("gone", planner="plan_then_hang", solver_processes=2)
    ids = [submit(server.client, tiny(name=name, solver__time_limit_seconds=300)) for name in ("one", "two")]
    for solve_id in ids:
        wait_for(lambda one=solve_id: server.client.get(f"/v1/solves/{one}").json()["progress"] is not None, 60)
    gone.kill()
    killed = time.monotonic()
    start_worker("other", solver_processes=2)
    for solve_id in ids:
        wait_for(lambda one=solve_id: state_of(server.client, one) == "succeeded", TAKE_OVER_SECONDS + 30)
        solve = server.client.get(f"/v1/solves/{solve_id}").json()
        assert solve["result"]["termination"]["reason"] in ("OPTIMAL", "FEASIBLE")
    assert time.monotonic() - killed >= 5  # it was waited for before it was given up


@thorough
def test_a_worker_that_is_reported_to_stop_hands_over_at_once(server: Server, start_worker: Start) -> None:
    first = start_worker("first", planner="plan_then_hang")
    solve_id = submit(server.client, tiny(solver__time_limit_seconds=300))
    wait_for(lambda: state_of(server.client, solve_id) == "running", 60)
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=PATIENCE_SECONDS) == 0
    assert state_of(server.client, solve_id) == "queued"
    start_worker("second")
    wait_for(lambda: state_of(server.client, solve_id) == "succeeded", 60)


@thorough
def test_a_data_folder_that_was_copied_is_distinguished(
    server: Server, root: Path, tmp_path: Path, url: str, start_worker: Start
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "executor-id").write_bytes((tmp_path / "server" / "executor-id").read_bytes())
    process = start_worker("copy")
    _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode != 0
    assert "executor-id" in errors.decode()


@thorough
def test_a_worker_that_runs_another_number_at_a_time_says_so(server: Server, start_worker: Start) -> None:
    """The last to start decides for all: whoever runs them must know."""
    reported = "servers and workers of this database ran 1 solves at a time each, and run 2 from now on"
    logs = []
    for number in (1, 2):  # one after the other, so that each has run a solve and thus has begun to work
        process = start_worker(f"worker-{number}", solver_processes=number)
        solve_id = submit(server.client, tiny(name=f"solve-{number}"))
        wait_for(lambda of=solve_id: state_of(server.client, of) == "succeeded", 90)
        process.terminate()
        logs.append(b"".join(part or b"" for part in process.communicate(timeout=PATIENCE_SECONDS)).decode())
    assert [reported in log for log in logs] == [False, True]
