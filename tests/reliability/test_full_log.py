"""A log that cannot be written, for its disk is full or its reader is gone: the service answers all the same."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api.observability.log_queue import LogQueue
from api.observability.request_log import AccessLog
from tests.support.service.patient import patient_client
from tests.support.service.server import free_port, start
from tests.support.service.specs import TINY
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

SCOPE = {"method": "GET", "state": {"request_id": "r"}}


@contextlib.contextmanager
def full() -> Iterator[int]:
    file = os.open("/dev/full", os.O_WRONLY)
    try:
        yield file
    finally:
        os.close(file)


@contextlib.contextmanager
def unread() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        yield writer
    finally:
        os.close(writer)


@pytest.mark.parametrize("log", [full, unread])
@pytest.mark.parametrize("as_json", [True, False])
def test_no_request_fails_of_its_line(log: object, as_json: bool) -> None:
    with log() as file:
        stream = open(file, "w", buffering=1, closefd=False)  # noqa: SIM115 (it could not be closed)
        try:
            with contextlib.closing(LogQueue(stream, max_waiting_lines=100)) as lines:
                for _ in range(1000):
                    AccessLog(lines.write, as_json=as_json)(SCOPE, 200, 0.1, 5)
        finally:
            with contextlib.suppress(OSError):
                stream.close()


@thorough
@pytest.mark.parametrize(("log", "log_format"), [(full, "json"), (unread, "text")])
def test_a_server_whose_log_cannot_be_written_goes_on(root: Path, tmp_path: Path, log: object, log_format: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with log() as file, patient_client(url) as client:
        options = {"port": port, "log_format": log_format, "log_level": "debug"}
        process = start("run_server", "serve", root, tmp_path, log=file, **options)
        try:
            wait_until_ready(process, client)
            for _ in range(2):
                solve = client.post("/v1/solves?fresh=true", json=TINY, headers={"Prefer": "wait=30"}).json()
                assert solve["state"] == "succeeded"
                plan = client.get(solve["result"]["plan_url"])
                assert plan.json()["plan_digest"] == solve["result"]["plan_digest"]
            assert client.get("/nothing").status_code == 404
        finally:
            process.terminate()
            assert process.wait(timeout=PATIENCE_SECONDS) == 0


@thorough
def test_requests_are_answered_where_no_one_reads_the_log(root: Path, tmp_path: Path) -> None:
    port = free_port()
    reader, writer = os.pipe()
    options = {"port": port, "log_format": "json"}
    with patient_client(f"http://127.0.0.1:{port}") as client:
        process = start("run_server", "serve", root, tmp_path, log=writer, **options)
        os.close(writer)
        try:
            wait_until_ready(process, client)
            # Five times what a pipe takes.
            ids = [f"request-{number}" for number in range(1500)]
            for one in ids:
                assert client.get("/livez", headers={"X-Request-Id": one}).status_code == 200
            read = b""
            while ids[-1].encode() not in read:
                read += os.read(reader, 65_536)
        finally:
            process.terminate()
            with open(reader, "rb") as rest:
                rest.read()
            assert process.wait(timeout=PATIENCE_SECONDS) == 0
    message = [json.loads(line).get("request_id") for line in read.splitlines() if line.endswith(b"}")]
    assert [one for one in message if one in set(ids)] == ids


def wait_until_ready(process: "subprocess.Popen[bytes]", client: httpx.Client) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_ready(client):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.ConnectError:
        return False
