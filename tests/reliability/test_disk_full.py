"""A full disk: nothing is half done, what is published is still served, and the service goes on when there is room."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests.api.execution.test_engine import wait_for_pid
from tests.support.service.problems import assert_problem
from tests.support.service.server import Server
from tests.support.service.specs import TINY, tiny
from tests.support.thorough import thorough

_DISK_BYTES = 24 * 1024**2


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk, and not in every container")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def write_for_ever(file: IO[bytes], size: int) -> None:
    while True:
        file.write(bytes(size))


def fill(folder: Path) -> Path:
    """Leave no byte of a disk; return the file that takes them."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (64 * 1024, 1):
            with pytest.raises(OSError, match="No space left"):
                write_for_ever(file, size)
    assert os.statvfs(folder).f_bavail == 0
    return filler


def ended(client: httpx.Client, solve_id: str) -> dict[str, object]:
    return client.get(f"/v1/solves/{solve_id}", params={"wait": 60}).json()


@thorough
def test_nothing_is_half_done_while_a_disk_is_full(root: Path, disk: Path) -> None:
    server = Server(root, disk, planner="plan_on_request").wait_until_ready()
    try:
        go = disk / "go"
        go.touch()
        first = server.client.post("/v1/solves", json=TINY, headers={"Prefer": "wait=30"}).json()
        plan = server.client.get(first["result"]["plan_url"])
        go.unlink()
        (disk / "pid").unlink()
        running = server.client.post("/v1/solves", json=tiny(name="begun with room")).json()
        wait_for_pid(disk)

        go.touch()  # first: a full disk has no room for a name
        filler = fill(disk)
        refused = [server.client.post("/v1/solves", json=tiny(name=f"no room {number}")) for number in range(20)]
        assert_problem(refused[-1], 503, "storage-unavailable")
        assert refused[-1].headers["retry-after"]
        accepted = [answer.json()["id"] for answer in refused if answer.status_code != 503]
        assert server.client.get(first["result"]["plan_url"]).content == plan.content
        assert server.client.get("/v1/solves").status_code == 200
        channel = server.client.put(
            "/v1/channels/m/prod", json={"plan_digest": first["result"]["plan_digest"]}, headers={"If-None-Match": "*"}
        )
        assert_problem(channel, 503, "storage-unavailable")

        filler.unlink()
        for solve_id in [running["id"], *accepted]:
            assert ended(server.client, solve_id)["state"] == "succeeded"
        again = server.client.post("/v1/solves", json=tiny(name="no room 19"), headers={"Prefer": "wait=30"}).json()
        assert again["state"] == "succeeded"
        names = [solve["name"] for solve in server.client.get("/v1/solves").json()["solves"]]
        assert len(names) == len(set(names)) == 3 + len(accepted)
        assert server.client.get("/v1/channels/m/prod").status_code == 404
    finally:
        server.stop()
    for path in (disk / "shardplan.sqlite", *disk.glob("*queue*.sqlite")):
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
