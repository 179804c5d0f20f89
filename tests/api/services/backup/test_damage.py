"""A backup that is not as it was written is refused, and leaves nothing behind."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api.services.backup.archive import DamagedArchive, NewerArchive
from api.services.backup.restoring import check, restore
from api.services.backup.taking import back_up
from api.store.database import open_engines, open_store
from api.store.sql.blobs import packed
from planner.domain.formats.canonical_json import canonical_bytes
from tests.support.service.database_rows import a_plan, fill, tenant
from tests.support.service.live import settings_for
from tests.support.thorough import thorough
from tests.support.waiting import PATIENCE_SECONDS

Members = dict[str, bytes]


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    settings = settings_for(tmp_path / "data")
    settings.data_dir.mkdir()
    open_store(settings).close()
    engines = open_engines(settings)
    with engines.writer.begin() as connection:
        fill(connection)
    engines.dispose()
    back_up(settings, tmp_path / "backup.zip")
    return tmp_path / "backup.zip"


def rewritten(backup: Path, change: Callable[[Members], None]) -> Path:
    """The same zip, well formed, with other members."""
    with zipfile.ZipFile(backup) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    other = backup.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return other


def manifest_with(members: Members, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(members["manifest.json"])
    change(document)
    members["manifest.json"] = json.dumps(document).encode()


def resealed(members: Members, name: str, content: bytes) -> None:
    """Another content, with a checksum that fits."""
    members[f"tables/{name}.jsonl"] = content

    def seal(document: dict[str, Any]) -> None:
        (table,) = (table for table in document["tables"] if table["name"] == name)
        table["sha256"], table["num_rows"] = hashlib.sha256(content).hexdigest(), content.count(b"\n")

    manifest_with(members, seal)


def change_a_row(members: Members) -> None:
    members["tables/solves.jsonl"] = members["tables/solves.jsonl"].replace(b"queued", b"failed")


def leave_a_row_out(members: Members) -> None:
    members["tables/audit.jsonl"] = members["tables/audit.jsonl"].partition(b"\n")[2]


def leave_a_table_out(members: Members) -> None:
    del members["tables/audit.jsonl"]


def forget_a_table(members: Members) -> None:
    manifest_with(members, lambda document: document["tables"].pop())


def forget_a_column(members: Members) -> None:
    manifest_with(members, lambda document: document["tables"][0]["columns"].popitem())


def invent_a_kind(members: Members) -> None:
    manifest_with(members, lambda document: document["tables"][0]["columns"].update(created_at="pickle"))


def break_the_manifest(members: Members) -> None:
    members["manifest.json"] = b'{"format": "shardplan-backup"'


def be_something_else(members: Members) -> None:
    manifest_with(members, lambda document: document.update(format="photos"))


def exchange_a_plan(members: Members) -> None:
    """A plan under the name of another one, sealed again: only its digest gives it away."""
    rows = [json.loads(line) for line in members["tables/plans.jsonl"].splitlines()]
    rows[0][2], rows[1][2] = rows[1][2], rows[0][2]
    resealed(members, "plans", b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def break_a_plan(members: Members) -> None:
    rows = [json.loads(line) for line in members["tables/plans.jsonl"].splitlines()]
    rows[0][2] = "AAAA"
    resealed(members, "plans", b"".join(json.dumps(row).encode() + b"\n" for row in rows))


def refer_to_nothing(members: Members) -> None:
    resealed(members, "solves", b"")


DAMAGES = [
    (change_a_row, "tables/solves.jsonl is not what was written"),
    (leave_a_row_out, "tables/audit.jsonl is not what was written"),
    (leave_a_table_out, "tables/audit.jsonl"),
    (forget_a_table, "not those of its schema"),
    (forget_a_column, "not those of its schema"),
    (invent_a_kind, "unknown kind, pickle"),
    (break_the_manifest, "is damaged"),
    (be_something_else, "another kind of file"),
    (exchange_a_plan, "it was changed"),
    (break_a_plan, "cannot be read"),
    (refer_to_nothing, "do not fit"),
]


@thorough
@pytest.mark.parametrize(("damage", "reported"), DAMAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_changed_backup_is_refused(
    backup: Path, tmp_path: Path, damage: Callable[[Members], None], reported: str
) -> None:
    settings = settings_for(tmp_path / "target")
    with pytest.raises(DamagedArchive, match=reported):
        restore(rewritten(backup, damage), settings)
    assert not settings.database.exists()
    restore(rewritten(backup, lambda members: None), settings)


@pytest.mark.parametrize("damage", [change_a_row, leave_a_table_out, exchange_a_plan, break_a_plan])
def test_a_check_finds_damage_without_a_database(backup: Path, damage: Callable[[Members], None]) -> None:
    with pytest.raises(DamagedArchive):
        check(rewritten(backup, damage))


def test_a_backup_with_any_byte_changed_or_cut_off_is_refused_or_the_same(backup: Path) -> None:
    content = backup.read_bytes()
    whole = check(backup)
    other = backup.with_name("other.zip")
    num_refused = 0
    for at in range(0, len(content), 97):
        for bad in (content[:at], content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :]):
            other.write_bytes(bad)
            try:
                # Times in a zip say nothing of what is in it.
                assert check(other) == whole
            except DamagedArchive:
                num_refused += 1
    assert num_refused > len(content) / 97


KILLED = """
import os, signal, sys
from pathlib import Path
from api.services.backup import restoring
from api.settings import Settings

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

restoring._continue_numbers = die  # all rows are there, and nothing is committed
restoring.restore(Path(sys.argv[1]), Settings(data_dir=sys.argv[2]))
"""


def test_a_restore_that_is_killed_is_done_again(backup: Path, tmp_path: Path, root: Path) -> None:
    settings = settings_for(tmp_path / "target")
    command = [sys.executable, "-c", KILLED, str(backup), str(settings.data_dir)]
    killed = subprocess.run(
        command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}, check=False, timeout=PATIENCE_SECONDS
    )
    assert killed.returncode == -signal.SIGKILL
    with sqlite3.connect(settings.database) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()
    restore(backup, settings)
    store = open_store(settings)
    assert store.for_tenant(tenant(0)).plan(a_plan(0)["plan_digest"]) is not None
    store.close()


def test_what_a_later_release_wrote_is_refused(backup: Path, tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "target")
    for field, value, reported in (("format_version", 2, "format 2"), ("schema_revision", "9999", "schema 9999")):

        def change(members: Members, field: str = field, value: object = value) -> None:
            manifest_with(members, lambda document: document.update({field: value, "release": "7.0.0"}))

        with pytest.raises(NewerArchive, match=rf"{reported}, written by shardplan 7\.0\.0"):
            restore(rewritten(backup, change), settings)
        with pytest.raises(NewerArchive, match=reported):
            check(rewritten(backup, change))
    assert not settings.database.exists()


def test_a_database_that_is_to_be_replaced_keeps_all_where_the_backup_is_damaged(backup: Path, tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data")  # the one that was backed up
    settings.queue_file.write_bytes(b"")
    with pytest.raises(DamagedArchive):
        restore(rewritten(backup, exchange_a_plan), settings, replace=True)
    store = open_store(settings)
    plan = store.for_tenant(tenant(0)).plan(a_plan(0)["plan_digest"])
    store.close()
    assert plan is not None
    assert packed(plan.canonical) == packed(canonical_bytes(a_plan(0)))
