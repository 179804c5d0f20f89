"""PostgreSQL goes away while solves run: plans in memory are served, processes stop, nothing is lost."""

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.service.local_postgres import Postgres
from tests.api.execution.test_engine import wait_for_pid
from tests.support.service.problems import assert_problem
from tests.support.service.server import Server, start
from tests.support.service.specs import tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS


@contextlib.contextmanager
def down(postgres: Postgres) -> Iterator[None]:
    """As by a crash: nobody listens any more."""
    postgres.stop()
    try:
        yield
    finally:
        postgres.start()


AWAY = {"down": down, "frozen": Postgres.frozen}


def begun(server: Server, folder: Path) -> list[str]:
    """Solves of which one runs for long, and one waits."""
    spec = tiny(solver__time_limit_seconds=600)
    ids = [server.client.post("/v1/solves", json={**spec, "name": name}).json()["id"] for name in ("runs", "waits")]
    wait_for_pid(folder)
    return ids


def test_an_outage_loses_nothing(root: Path, tmp_path: Path, postgres: Postgres) -> None:
    url, go = postgres.new_database(), tmp_path / "go"
    server = Server(root, tmp_path, planner="plan_on_request", database_url=url, busy_timeout_seconds=2)
    client = server.wait_until_ready().client
    try:
        go.touch()
        first = client.post("/v1/solves", json=tiny(name="first"), headers={"Prefer": "wait=60"}).json()
        plan = client.get(first["result"]["plan_url"])
        go.unlink()
        (tmp_path / "pid").unlink()
        ids = [client.post("/v1/solves", json=tiny(name=name)).json()["id"] for name in ("a", "b", "c")]
        wait_for_pid(tmp_path)
        with down(postgres):
            go.touch()  # a plan is found, and there is nowhere to keep it
            until = time.monotonic() + 3
            while time.monotonic() < until:
                assert client.get(first["result"]["plan_url"]).content == plan.content
                refused = client.post("/v1/solves", json=tiny(name="refused"))
                assert_problem(refused, 503, "storage-unavailable")
                assert int(refused.headers["retry-after"]) >= 1
                assert client.get("/livez").status_code == 200
                assert client.get("/readyz").status_code == 503
        until = time.monotonic() + PATIENCE_SECONDS
        for solve_id in ids:
            while (state := state_of(client, solve_id)) != "succeeded":
                assert state in ("queued", "running", None)
                assert time.monotonic() < until
                time.sleep(0.1)
        assert {solve["name"] for solve in client.get("/v1/solves").json()["solves"]} == {"first", "a", "b", "c"}
        assert client.post("/v1/solves", json=tiny(name="refused")).status_code in (200, 202)
    finally:
        server.stop()


def state_of(client: httpx.Client, solve_id: str) -> str | None:
    """The state of a solve; ``None`` while the database does not answer yet."""
    answer = client.get(f"/v1/solves/{solve_id}")
    return None if answer.status_code == 503 else str(answer.json()["state"])


@thorough
@pytest.mark.parametrize("away", ["down", "frozen"])
def test_a_server_stops_and_its_solves_run_again(root: Path, tmp_path: Path, postgres: Postgres, away: str) -> None:
    url = postgres.new_database()
    server = Server(root, tmp_path, planner="hang", database_url=url).wait_until_ready()
    ids = begun(server, tmp_path)
    with AWAY[away](postgres):
        time.sleep(1)  # whatever asks the database now and then has asked
        stop(server.process)
        server.stop()
    assert server.process.returncode == 0
    server = Server(root, tmp_path, database_url=url).wait_until_ready()
    try:
        for solve_id in ids:
            assert server.client.get(f"/v1/solves/{solve_id}?wait=60").json()["state"] == "succeeded"
    finally:
        server.stop()


@thorough
@pytest.mark.parametrize("away", AWAY)
def test_a_worker_stops(root: Path, tmp_path: Path, postgres: Postgres, away: str) -> None:
    url = postgres.new_database()
    server = Server(root, tmp_path / "server", database_url=url, solver_processes=0).wait_until_ready()
    folder = tmp_path / "worker"
    options = {"planner": "hang", "log": subprocess.DEVNULL, "database_url": url}
    worker = start("run_worker", "work", root, folder, **options)
    try:
        begun(server, folder)
        with AWAY[away](postgres):
            time.sleep(1)
            stop(worker)
            assert worker.returncode == 0
    finally:
        worker.kill()
        worker.wait()
        server.stop()


def stop(process: "subprocess.Popen[bytes]") -> None:
    """Stop a process while the database is away: one that waits for the database never ends."""
    process.send_signal(signal.SIGTERM)
    process.wait(timeout=PATIENCE_SECONDS)
