"""``shardplan keys``, next to a server that runs, and ``serve`` where others could reach it."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from api.store.database import Database
from tests.support.service.patient import patient_client
from tests.support.service.server import free_port
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS, wait_until

SHARDPLAN = [sys.executable, "-c", "from api.cli import main; main()"]


def shardplan(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    place = [] if folder is None else ["--data-dir", str(folder)]
    settings = {name: value for name, value in os.environ.items() if not name.startswith("SHARDPLAN_")}
    return subprocess.run(
        [*SHARDPLAN, *arguments, *place],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**settings, **environment},
    )


def made(folder: Path, *scopes: str) -> dict[str, object]:
    answer = shardplan("keys", "create", "--name", "test", "--scope", ",".join(scopes), folder=folder)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout)


@contextlib.contextmanager
def serving(folder: Path, log: Path) -> Iterator[httpx.Client]:
    """A server that asks for keys, and writes all that it says to a file."""
    port = free_port()
    command = [*SHARDPLAN, "serve", "--port", str(port), "--data-dir", str(folder)]
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env={**os.environ, "SHARDPLAN_AUTH": "keys", "PYTHONUNBUFFERED": "1"}
        )
    try:
        with patient_client(f"http://127.0.0.1:{port}") as client:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline:
                with contextlib.suppress(httpx.TransportError):
                    if client.get("/readyz").status_code == 200:
                        break
                time.sleep(0.1)
            yield client
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_SECONDS)


@thorough
def test_keys_are_made_and_revoked_next_to_a_server(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "log"
    first = made(folder, "admin")  # before the first start
    with serving(folder, log) as client:
        second = made(folder, "read", "solve")

        def status(key: dict[str, object]) -> int:
            return client.get("/v1/solves", headers={"Authorization": f"Bearer {key['key']}"}).status_code

        assert client.get("/v1/solves").status_code == 401
        assert (status(first), status(second)) == (200, 200)
        token = tmp_path / "token"
        token.write_text(f"{second['key']}\n")
        fetch = ["fetch", "no/such/channel", "-o", str(tmp_path / "plan.json"), "--server", str(client.base_url)]
        for answer, status_reported in (
            (shardplan(*fetch), "401"),
            (shardplan(*fetch, "--token-file", str(token)), "404"),
            (shardplan(*fetch, SHARDPLAN_TOKEN=str(second["key"])), "404"),
        ):
            assert answer.returncode == 1
            assert f"the server refused: {status_reported}" in answer.stderr
            assert ("set SHARDPLAN_TOKEN" in answer.stderr) is (status_reported == "401")
            assert ("--token-file" in answer.stderr) is (status_reported == "401")
        revoked = shardplan("keys", "revoke", str(second["id"]), folder=folder)
        assert revoked.returncode == 0, revoked.stderr
        wait_until(lambda: status(second) != 200)
        assert (status(second), status(first)) == (401, 200)
    listed = shardplan("keys", "list", folder=folder)
    keys = {key["id"]: key for key in json.loads(listed.stdout)["keys"]}
    assert keys[first["id"]]["scopes"] == ["admin"]
    assert keys[first["id"]]["revoked_at"] is None
    assert keys[second["id"]]["revoked_at"] is not None
    message = listed.stdout + listed.stderr + revoked.stdout + revoked.stderr + log.read_text()
    assert '"status":401' in message.replace(" ", "")
    for key in (first, second):
        secret = str(key["key"]).rpartition("_")[2]
        assert keys[key["id"]]["last_used_at"] is not None
        assert secret not in message
        assert all(secret.encode() not in file.read_bytes() for file in folder.rglob("*") if file.is_file())


@thorough
def test_keys_of_several_tenants(tmp_path: Path) -> None:
    keys = {}
    for tenant in ("ads", "search"):
        arguments = ("keys", "create", "--name", f"of-{tenant}", "--scope", "read", "--tenant", tenant)
        keys[tenant] = json.loads(shardplan(*arguments, folder=tmp_path).stdout)
        assert keys[tenant]["tenant"] == tenant
    keys["default"] = made(tmp_path, "read")
    assert keys["default"]["tenant"] == "default"
    assert shardplan("keys", "revoke", str(keys["ads"]["id"]), folder=tmp_path).returncode == 0
    listed = json.loads(shardplan("keys", "list", folder=tmp_path).stdout)["keys"]
    assert {(key["tenant"], key["revoked_at"] is None) for key in listed} == {
        ("ads", False),
        ("search", True),
        ("default", True),
    }


@thorough
def test_expiry(tmp_path: Path) -> None:
    for text, seconds in (("90d", 7_776_000), ("12h", 43_200), ("30m", 1800)):
        answer = shardplan("keys", "create", "--name", "n", "--scope", "read", "--expires", text, folder=tmp_path)
        key = json.loads(answer.stdout)
        database = Database.of_file(tmp_path / "shardplan.sqlite")
        record = database.api_key(key["id"])
        database.close()
        assert record is not None
        assert record.expires_at == pytest.approx(record.created_at + seconds)


@thorough
@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["create", "--name", "n", "--scope", "root"], "scopes are read, solve, promote, admin"),
        (["create", "--name", "n", "--scope", "read", "--expires", "soon"], "--expires takes a number"),
        (["create", "--name", "n", "--scope", "read", "--expires", "0d"], "--expires takes a number"),
        (["create", "--name", "", "--scope", "read"], "--name takes"),
        (["create", "--name", "n", "--scope", "read", "--tenant", "Ads/US"], "--tenant takes"),
        (["list"], "there is no database"),
        (["revoke", "x"], "there is no database"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], reported: str) -> None:
    answer = shardplan("keys", *arguments, folder=tmp_path / "nothing")
    assert (answer.returncode, answer.stdout) == (1, ""), answer.stderr
    assert reported in answer.stderr
    assert not (tmp_path / "nothing").exists()


@thorough
def test_a_key_that_is_not_there(tmp_path: Path) -> None:
    made(tmp_path, "read")
    answer = shardplan("keys", "revoke", "x", folder=tmp_path)
    assert answer.returncode == 1
    assert "no key of this id" in answer.stderr


@thorough
def test_others_are_not_let_in_without_a_key(tmp_path: Path) -> None:
    answer = shardplan("serve", "--host", "0.0.0.0", "--port", "0", folder=tmp_path)
    assert answer.returncode == 1
    (line,) = answer.stderr.splitlines()
    for way_out in ("shardplan keys create", "SHARDPLAN_AUTH=keys", "--insecure"):
        assert way_out in line
    assert list(tmp_path.iterdir()) == []


@thorough
@pytest.mark.parametrize(
    ("arguments", "environment", "warned"),
    [
        (["--insecure"], {}, True),
        ([], {"SHARDPLAN_INSECURE": "true"}, True),
        ([], {"SHARDPLAN_AUTH": "keys"}, False),
    ],
)
def test_others_are_let_in_where_that_is_stated(
    tmp_path: Path, arguments: list[str], environment: dict[str, str], warned: bool
) -> None:
    (tmp_path / "file").write_text("")  # stops the server before it listens
    answer = shardplan("serve", "--host", "0.0.0.0", *arguments, folder=tmp_path / "file", **environment)
    assert answer.returncode == 4
    assert ("without authentication" in answer.stderr) == warned


def test_the_image_asks_for_keys(root: Path) -> None:
    text = (root / "Dockerfile").read_text()
    assert "SHARDPLAN_HOST=0.0.0.0" in text
    assert "SHARDPLAN_AUTH=keys" in text
    assert "INSECURE" not in text
