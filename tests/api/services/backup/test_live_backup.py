"""Backups of services that work, and services that go on where a backup was taken."""

import hashlib
import json
import os
import stat
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from api.services.backup.restoring import restore
from api.services.backup.taking import back_up
from benchmarks.service.local_postgres import Postgres
from planner.domain.formats.canonical_json import plan_digest
from tests.api.cli.admin.test_keys import shardplan
from tests.support.cli.run import Run
from tests.support.service import planners
from tests.support.service.live import Live, settings_for
from tests.support.service.specs import tiny
from tests.support.service.stand_ins import leave_in
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS


@thorough
def test_a_backup_under_load_is_restored_to_the_same_plans_and_what_ran_goes_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    backups = [tmp_path / f"{number}.zip" for number in range(3)]
    with Live.of(first) as live:
        plan = live.solve(tiny())["result"]["plan_digest"]
        stopped = threading.Event()

        def submit() -> None:
            number = 0
            while not stopped.is_set():
                answer = live.post("/v1/solves", tiny(name=f"n{number}", solver__seed=number))
                assert answer.status_code in (202, 503), answer.text
                number += 1

        thread = threading.Thread(target=submit)
        thread.start()
        try:
            for file in backups:
                time.sleep(1.0)
                back_up(settings_for(first), file)
        finally:
            stopped.set()
            thread.join()
        promoted = live.put("/v1/channels/a/b", {"plan_digest": plan}, headers={"If-None-Match": "*"})
        assert promoted.status_code in (200, 201), promoted.text
        back_up(settings_for(first), tmp_path / "last.zip")
        before = {
            item["plan_digest"]: live.get(f"/v1/plans/{item['plan_digest']}").content
            for item in live.get("/v1/plans?page_size=500").json()["plans"]
        }
        assert before

    num_solves = []
    for file in [*backups, tmp_path / "last.zip"]:
        folder = second / file.stem
        manifest = restore(file, settings_for(folder))
        num_solves.append(manifest.num_rows["solves"])
    assert num_solves == sorted(num_solves)
    assert num_solves[0] < num_solves[-1]

    with Live.of(folder) as live:
        after = {digest: live.get(f"/v1/plans/{digest}").content for digest in before}
        assert after == before
        for digest, content in after.items():
            assert plan_digest(json.loads(content)) == digest
        assert live.get("/v1/channels/a/b/plan").content == before[plan]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (
            live.get("/v1/solves?state=queued").json()["solves"] + live.get("/v1/solves?state=running").json()["solves"]
        ):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert live.get("/v1/solves?state=failed").json()["solves"] == []


@thorough
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_solve_that_ran_is_finished_by_who_restores(
    tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    leave_in(tmp_path)
    shared = {}
    if kind == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        shared = {"database_url": server.new_database()}
    with Live.of(tmp_path / "first", plan=planners.plan_then_hang, **shared) as live:
        solve = live.post("/v1/solves", tiny(solver__time_limit_seconds=600)).json()["id"]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := live.get(f"/v1/solves/{solve}").json())["progress"] is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert found["state"] == "running"
        back_up(settings_for(tmp_path / "first", **shared), tmp_path / "backup.zip")
        live.post(f"/v1/solves/{solve}:cancel")
        assert live.get(f"/v1/solves/{solve}?wait=30").json()["state"] == "cancelled"
    # Into the very database where the queue knows the solve as one that ended.
    folder = tmp_path / "first" if kind == "postgres" else tmp_path / "second"
    restore(tmp_path / "backup.zip", settings_for(folder, **shared), replace=kind == "postgres")
    with Live.of(folder, **shared) as live:
        ended = live.get(f"/v1/solves/{solve}?wait=60").json()
        assert ended["state"] == "succeeded", ended
        assert live.get(f"/v1/plans/{ended['result']['plan_digest']}").status_code == 200


@thorough
def test_the_commands(tmp_path: Path) -> None:
    """In processes of their own: what DBOS logs must not go to a stream that ends with the test."""
    folder, file, new = tmp_path / "data", tmp_path / "backup.zip", tmp_path / "new"
    with Live.of(folder) as live:
        digest = live.solve(tiny())["result"]["plan_digest"]
        answer = shardplan("backup", str(file), folder=folder)
    assert answer.returncode == 0, answer.stderr
    reported = json.loads(answer.stdout)
    assert reported["num_rows"]["plans"] == 1
    assert reported["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert reported["bytes"] == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    checked = shardplan("restore", str(file), "--check", folder=tmp_path / "nowhere")
    assert (checked.returncode, json.loads(checked.stdout)) == (0, reported)
    assert not (tmp_path / "nowhere").exists()
    restored = shardplan("restore", str(file), folder=new)
    assert (restored.returncode, json.loads(restored.stdout)) == (0, reported)
    with Live.of(new) as live:
        assert live.get(f"/v1/plans/{digest}").status_code == 200
        in_use = shardplan("restore", str(file), "--replace", folder=new)
        assert in_use.returncode == 4
        assert "another server works with" in in_use.stderr


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["backup", "new.zip", "--data-dir", "nothing"], "there is no database"),
        (["backup", "there.zip", "--data-dir", "data"], "say --overwrite"),
        (["backup", "nothing/new.zip", "--data-dir", "data"], "there is no folder"),
        (["restore", "nothing.zip", "--data-dir", "new"], "there is no file"),
        (["restore", "there.zip", "--data-dir", "new"], "is no backup"),
        (["restore", "--check", "there.zip"], "is no backup"),
        (["restore", "good.zip", "--data-dir", "data"], "say --replace"),
    ],
)
def test_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, arguments: list[str], reported: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("keys", "create", "--name", "n", "--scope", "read", "--data-dir", "data").code == 0
    assert run("backup", "good.zip", "--data-dir", "data").code == 0
    Path("there.zip").write_bytes(b"PK of another kind")
    answer = run(*arguments)
    assert (answer.code, answer.out) == (1, ""), answer.err
    assert reported in answer.err
    assert Path("there.zip").read_bytes() == b"PK of another kind"
    assert not Path("new.zip").exists()
    assert not (tmp_path / "new" / "shardplan.sqlite").exists()
    assert os.listdir("data") != []


def test_the_moment_of_a_backup_is_reported_as_in_other_documents(tmp_path: Path, run: Run) -> None:
    folder, file = tmp_path / "data", tmp_path / "backup.zip"
    run("keys", "create", "--name", "n", "--scope", "read", "--data-dir", folder)
    before = datetime.now(UTC)
    made = run("backup", file, "--data-dir", folder).document["created_at"]
    assert before <= datetime.fromisoformat(made) <= datetime.now(UTC)
    assert made.endswith("Z")
    assert run("restore", "--check", file).document["created_at"] == made


def test_a_backup_is_overwritten_where_that_is_stated(tmp_path: Path, run: Run) -> None:
    folder, file = tmp_path / "data", tmp_path / "backup.zip"
    run("keys", "create", "--name", "n", "--scope", "read", "--data-dir", folder)
    file.write_bytes(b"of yesterday")
    assert run("backup", file, "--overwrite", "--data-dir", folder).document["num_rows"]["api_keys"] == 1
    assert run("restore", file, "--check").code == 0


@thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ["backup", "new.zip"],
        ["restore", "good.zip", "--replace"],
        ["keys", "create", "--name", "n", "--scope", "read"],
        ["keys", "list"],
        ["webhooks", "list"],
        ["prune", "--dry-run", "--plans-days", "1"],
    ],
)
def test_of_two_databases_none_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, arguments: list[str]
) -> None:
    """A folder that is named is not passed over for what the environment names."""
    monkeypatch.chdir(tmp_path)
    assert (
        "data/shardplan.sqlite was not there"
        in run("keys", "create", "--name", "n", "--scope", "read", "--data-dir", "data").err
    )
    assert "was not there" not in run("keys", "create", "--name", "m", "--scope", "read", "--data-dir", "data").err
    assert run("backup", "good.zip", "--data-dir", "data").code == 0
    monkeypatch.setenv("SHARDPLAN_DATABASE_URL", "postgresql://me:secret@127.0.0.1:1/nowhere")
    answer = run(*arguments, "--data-dir", "data")
    assert (answer.code, answer.out) == (1, "")
    assert "--data-dir names a folder, and SHARDPLAN_DATABASE_URL a database" in answer.err
    assert "secret" not in answer.err
    assert not Path("new.zip").exists()
