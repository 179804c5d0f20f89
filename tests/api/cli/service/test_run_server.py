"""A real server on a real port: a launcher's whole way, floods, kills and restarts."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from planner.domain.formats.canonical_json import plan_digest
from tests.api.execution.test_engine import wait_for_pid
from tests.support.service.problems import assert_problem
from tests.support.service.server import Server
from tests.support.service.sockets import heard
from tests.support.service.specs import TINY, raw, tiny
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until


def resident_bytes(pid: int) -> int:
    return int((Path("/proc") / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


#: Below the minute that a waiting request or a running solve would take.
STOP_SECONDS = 55


@pytest.fixture
def server(root: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(root, tmp_path).wait_until_ready()
    yield server
    server.stop()


def test_a_launcher_gets_its_plan_through_a_channel(server: Server) -> None:
    client = server.client
    solve = client.post("/v1/solves", json=TINY, headers={"Prefer": "wait=30"}).json()
    digest = solve["result"]["plan_digest"]
    assert client.put("/v1/channels/ads/prod", json={"plan_digest": digest}).status_code == 201
    fetched = client.get("/v1/channels/ads/prod/plan")
    assert fetched.headers["x-plan-digest"] == digest == plan_digest(fetched.json())
    assert fetched.content == client.get(f"/v1/plans/{digest}").content
    again = client.get("/v1/channels/ads/prod/plan", headers={"If-None-Match": fetched.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    head = client.head("/v1/channels/ads/prod/plan")
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", fetched.headers["etag"])


@thorough
def test_the_first_real_model_is_planned(server: Server, examples: Path) -> None:
    body = (examples / "dlrm_dcnv2_8.json").read_bytes()
    headers = {"Content-Type": "application/json", "Prefer": "wait=60"}
    answer = server.client.post("/v1/solves", content=body, headers=headers)
    solve = answer.json()
    assert answer.status_code == 200
    assert solve["state"] == "succeeded"
    plan = server.client.get(solve["result"]["plan_url"]).json()
    assert len(plan["tables"]) == 26
    assert plan["objective"]["lower_bound_seconds"] <= plan["objective"]["seconds"]


@thorough
def test_200_megabytes_are_refused_and_not_held(server: Server) -> None:
    before = resident_bytes(server.process.pid)

    def chunks() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 1_000_000

    answer = server.client.post("/v1/solves", content=chunks(), headers={"Content-Type": "application/json"})
    assert_problem(answer, 413, "body-too-large")
    assert resident_bytes(server.process.pid) - before < 100 * 1024**2  # the limit is 32 MiB
    assert server.client.get("/v1/solves").json()["solves"] == []
    assert server.client.get("/livez").status_code == 200


@thorough
def test_two_servers_never_share_a_folder(server: Server, root: Path, tmp_path: Path) -> None:
    second = Server(root, tmp_path)
    second.process.wait(timeout=PATIENCE_SECONDS)
    errors = second.stop()
    assert "another server works with" in errors
    assert second.process.returncode == 1  # ServerTrouble, which the command line tells in one line


@thorough
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_reported_to_stop_lets_those_go_who_wait(
    root: Path, tmp_path: Path, signal_number: signal.Signals
) -> None:
    server = Server(root, tmp_path, planner="hang").wait_until_ready()
    solve_id = server.client.post("/v1/solves", json=tiny(solver__time_limit_seconds=60)).json()["id"]
    answers: list[httpx.Response] = []
    url = f"http://127.0.0.1:{server.port}/v1/solves/{solve_id}?wait=60"
    waiter = threading.Thread(target=lambda: answers.append(httpx.get(url, timeout=PATIENCE_SECONDS)))
    waiter.start()
    while not (tmp_path / "pid").exists():
        time.sleep(0.02)
    time.sleep(0.5)  # the waiter waits by now
    assert answers == []
    began = time.monotonic()
    errors = server.stop(signal_number)
    assert time.monotonic() - began < STOP_SECONDS
    waiter.join()
    assert [(answer.status_code, answer.json()["state"]) for answer in answers] == [(200, "running")]
    assert server.process.returncode == 0
    assert "Traceback" not in errors


@thorough
def test_a_body_that_never_ends_does_not_keep_a_server_from_stopping(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(
            b"POST /v1/solves HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        time.sleep(0.5)
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < STOP_SECONDS


def test_nothing_accepted_is_lost_when_the_server_is_killed(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    finished = server.client.post("/v1/solves", json=TINY, headers={"Prefer": "wait=30"}).json()
    plan = server.client.get(finished["result"]["plan_url"]).content
    ids = [server.client.post("/v1/solves", json=tiny(name=f"n{number}")).json()["id"] for number in range(5)]
    server.stop(signal.SIGKILL)
    server = Server(root, tmp_path).wait_until_ready()
    try:
        for solve_id in ids:
            assert server.client.get(f"/v1/solves/{solve_id}?wait=30").json()["state"] == "succeeded"
        assert server.client.get(finished["result"]["plan_url"]).content == plan
    finally:
        server.stop()


@thorough
def test_solves_of_a_killed_server_run_again_also_where_the_file_with_its_id_is_lost(
    root: Path, tmp_path: Path
) -> None:
    server = Server(root, tmp_path, planner="hang", solver_processes=1).wait_until_ready()
    ids = [server.client.post("/v1/solves", json=tiny(name=name)).json()["id"] for name in ("runs", "waits")]
    wait_for_pid(tmp_path)
    server.stop(signal.SIGKILL)
    (tmp_path / "executor-id").unlink()
    server = Server(root, tmp_path).wait_until_ready()
    try:
        for solve_id in ids:
            assert server.client.get(f"/v1/solves/{solve_id}?wait=30").json()["state"] == "succeeded"
    finally:
        server.stop()


@thorough
def test_solver_processes_die_with_a_killed_server(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    server.client.post("/v1/solves", json=TINY, headers={"Prefer": "wait=30"})
    family = {pid for child in all_children(server.process.pid) for pid in (child, *all_children(child))}
    assert len(family) >= 2  # what solver processes are forked from, and one of them
    for pid in family:
        os.kill(pid, signal.SIGSTOP)  # they cannot notice by themselves
    server.stop(signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in family))


def all_children(pid: int) -> list[int]:
    """Children of every thread of a process that run the solver, or that it is forked from."""
    found = []
    for entry in (Path("/proc") / str(pid) / "task").iterdir():
        for child in (entry / "children").read_text().split():
            if b"multiprocessing.forkserver" in (Path("/proc") / child / "cmdline").read_bytes():
                found.append(int(child))
    return found


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@thorough
def test_a_slow_body_does_not_stop_others(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as slow:
        slow.sendall(
            b"POST /v1/solves HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert (
            server.client.post(
                "/v1/specs:validate", content=raw(TINY), headers={"Content-Type": "application/json"}
            ).status_code
            == 200
        )


@thorough
def test_callers_who_hang_up_are_no_errors(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path).wait_until_ready()
    head = b"POST /v1/solves HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    for rest in (b"Content-Length: 100\r\n\r\n{", b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\nzz\r\n"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as caller:
            caller.sendall(head + rest)
            time.sleep(0.3)
    assert server.client.get("/v1/solves").json()["solves"] == []
    message = server.stop()
    assert "Traceback" not in message
    assert '"level": "error"' not in message


@thorough
def test_a_body_that_trickles_is_answered_and_its_connection_closed(root: Path, tmp_path: Path) -> None:
    server = Server(root, tmp_path, body_patience_seconds=1).wait_until_ready()
    try:
        answer = heard(
            server.port,
            b"POST /v1/solves HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
            then=lambda: b" ",
        )
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 408 ")
        assert b"\r\nconnection: close" in head
        assert b"\r\nretry-after: " in head
        assert json.loads(body)["code"] == "request-timeout"
        assert server.client.get("/v1/solves").json()["solves"] == []
    finally:
        server.stop()
