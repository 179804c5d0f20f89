"""Databases of all past releases become those of this one: opened by many at once, and killed at any statement."""

import os
import re
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import Engine

from api.store.database import Database, TenantStore
from api.store.migrations.run import _config, head_revision, known_revisions
from api.store.sql.blobs import packed
from api.store.sql.connections import postgres_engines, postgres_url, sqlite_engines
from api.store.tenants import DEFAULT_TENANT
from benchmarks.service.local_postgres import Postgres
from planner.domain.formats.canonical_json import canonical_bytes
from tests.api.store.migrations.test_run import BEFORE_TENANTS
from tests.support.contracts.store.values import DIGEST, new_solve
from tests.support.service.old_release import old_release
from tests.support.thorough import THOROUGH, thorough

#: Statements between two kills; with `make thorough` none.
_STEP = 1 if THOROUGH else 9
_NUM_OPENERS = 8
#: The last revision whose tables the rows of ``BEFORE_TENANTS`` fit.
_ROWS_FIT = "0004"
#: What lists show of a plan, which early releases did not keep apart from it.
PLAN = {
    "plan_digest": DIGEST,
    "name": "old",
    "world_size": 8,
    "objective": {"name": "step_time", "seconds": 2.0, "lower_bound_seconds": 1.0, "relative_gap": 1.0},
    "provenance": {"hardware_profile": "h", "cost_model": "roofline@1"},
}


def filled(path: Path, revision: str) -> None:
    """Make a file as the release of a revision left it, with a row in each table that it had."""
    first, rows = min(revision, _ROWS_FIT), BEFORE_TENANTS
    old_release(path, first)
    if first == "0001":
        rows = rows.replace("created_at, attempts)", "created_at, is_claimed, attempts)")
        rows = rows.replace("'d', 1.0, 0)", "'d', 1.0, 0, 0)")
    with closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        for statement in rows.split(";"):
            if statement.strip() and statement.split("INTO ")[1].split()[0] in names:
                connection.execute(statement)
        connection.execute("UPDATE plans SET document = ?", (packed(canonical_bytes(PLAN)),))
        connection.commit()
    if revision != first:
        engines = sqlite_engines(path, busy_timeout_seconds=30.0)
        with engines.writer.begin() as connection:
            command.upgrade(_config(connection), revision)
        engines.dispose()


def use(store: TenantStore) -> None:
    """Find what was there, and work with it."""
    solve = store.solve("1")
    assert solve is not None
    assert (solve.name, solve.state) == ("old", "succeeded")
    assert store.plan(DIGEST) is not None
    channel = store.channel("c")
    assert channel is not None
    store.accept(new_solve(2), max_queued=9, reuse=True)
    moved = store.put_channel("c", plan_digest=DIGEST, expected_version=channel.version, now=2.0)
    assert moved.version == channel.version + 1


@thorough
@pytest.mark.parametrize("revision", sorted(known_revisions()))
def test_a_database_of_every_release_is_opened_and_worked_with(tmp_path: Path, revision: str) -> None:
    path = tmp_path / "db.sqlite"
    filled(path, revision)
    for _ in range(2):  # the second time there is nothing to do
        with closing(Database.of_file(path)) as database:
            use(database.for_tenant(DEFAULT_TENANT))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(head_revision(),)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def in_process(action: Callable[[], None]) -> int:
    """Begin something in a process forked from this one."""
    pid = os.fork()
    if pid:
        return pid
    try:
        action()
        os._exit(0)
    finally:
        os._exit(1)


def ended(pid: int) -> int:
    """How a process ended: 0, 1, or what killed it, below 0."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@thorough
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_many_processes_open_an_old_database_at_once(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    if kind == "sqlite":
        path = tmp_path / "db.sqlite"
        filled(path, _ROWS_FIT)
        opened = lambda: Database.of_file(path)  # noqa: E731
    else:
        url = old_postgres(request.getfixturevalue("postgres"))
        opened = lambda: Database.of_postgres(url)  # noqa: E731
    begin_at = time.monotonic() + 0.5

    def work(number: int) -> None:
        time.sleep(max(0.0, begin_at - time.monotonic()))
        with closing(opened()) as database:
            store = database.for_tenant(DEFAULT_TENANT)
            assert store.solve("1") is not None
            store.accept(new_solve(10 + number), max_queued=99, reuse=True)

    pids = [in_process(lambda number=number: work(number)) for number in range(_NUM_OPENERS)]
    assert [ended(pid) for pid in pids] == [0] * _NUM_OPENERS
    with closing(opened()) as database:
        store = database.for_tenant(DEFAULT_TENANT)
        use(store)
        assert len(store.solves(limit=99, before=None, state=None)) == _NUM_OPENERS + 2


def old_postgres(postgres: Postgres) -> str:
    """Return the address of a database of an earlier release, with a row in each of its tables."""
    url = postgres.new_database()
    engines = postgres_engines(url, busy_timeout_seconds=30.0)
    with engines.writer.begin() as connection:
        command.upgrade(_config(connection), _ROWS_FIT)
        content = re.sub(r"x'([0-9a-f]+)'", r"decode('\1', 'hex')", BEFORE_TENANTS)
        connection.exec_driver_sql(content.replace("1.0, 0, '[]'", "1.0, false, '[]'"))
    engines.dispose()
    return url


def die_at(number: int) -> None:
    """Have this process die of kill -9 at a statement that it sends, counted from 1."""
    left = number

    @event.listens_for(Engine, "before_cursor_execute")
    def on_statement(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def tables_of(engine: Engine) -> tuple[list[str], list[tuple[object, ...]]]:
    """The tables of a database, and its revision."""
    try:
        with engine.connect() as connection:
            revision = [tuple(row) for row in connection.execute(text("SELECT version_num FROM alembic_version"))]
            return sorted(inspect(connection).get_table_names()), revision
    finally:
        engine.dispose()


@thorough
def test_an_upgrade_that_is_killed_at_any_statement_has_changed_nothing(tmp_path: Path) -> None:
    old = tmp_path / "old.sqlite"
    filled(old, _ROWS_FIT)
    before = tables_of(create_engine(f"sqlite:///{old}"))
    for number in range(1, 10_000, _STEP):
        path = tmp_path / f"{number}.sqlite"
        shutil.copyfile(old, path)

        def upgrade(number: int = number, path: Path = path) -> None:
            die_at(number)
            Database.of_file(path).close()

        how = ended(in_process(upgrade))
        if how == 0:
            break
        assert how == -signal.SIGKILL
        assert tables_of(create_engine(f"sqlite:///{path}")) == before, number
        with closing(Database.of_file(path)) as database:
            use(database.for_tenant(DEFAULT_TENANT))
    assert number > 4 * _STEP


@thorough
def test_an_upgrade_that_is_killed_at_any_statement_has_changed_nothing_in_postgresql(postgres: Postgres) -> None:
    old = old_postgres(postgres)
    before = tables_of(create_engine(postgres_url(old)))
    for number in range(1, 10_000, 3 * _STEP):
        url = postgres.new_database(like=old)

        def upgrade(number: int = number, url: str = url) -> None:
            die_at(number)
            Database.of_postgres(url).close()

        how = ended(in_process(upgrade))
        if how == 0:
            break
        assert how == -signal.SIGKILL
        assert tables_of(create_engine(postgres_url(url))) == before, number
        with closing(Database.of_postgres(url)) as database:
            use(database.for_tenant(DEFAULT_TENANT))
    assert number > 4 * _STEP


def test_the_history_of_channels_is_filled_from_the_audit_trail(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite"
    old_release(path, "0006")
    promote, rollback = "channel.promote", "channel.rollback"
    changes = [("a", None), ("a", promote), ("b", promote), ("a", rollback), ("b", rollback), ("a", rollback)]
    with closing(sqlite3.connect(path)) as connection:
        for digest in "ab":
            document = packed(canonical_bytes({**PLAN, "plan_digest": digest}))
            connection.execute("INSERT INTO plans VALUES ('t', ?, ?, 1.0)", (digest, document))
        for version, (digest, action) in enumerate(changes, start=1):
            connection.execute("INSERT INTO channel_history VALUES ('t', 'x/y', ?, ?, 1.0)", (version, digest))
            if action is not None:
                after = f'{{"version": {version}, "plan_digest": "{digest}"}}'
                entry = (version, f"who{version}", action, "channels/x/y", after)
                connection.execute("INSERT INTO audit VALUES ('t', ?, 1.0, ?, ?, ?, NULL, ?, NULL)", entry)
        connection.execute("INSERT INTO channel_history VALUES ('other', 'x/y', 1, 'a', 1.0)")
        connection.execute("INSERT INTO audit VALUES ('t', 9, 1.0, 'ann', 'key.create', 'keys/1', NULL, NULL, NULL)")
        connection.commit()
    with closing(Database.of_file(path)) as database:
        history = database.for_tenant("t").channel_versions("x/y", limit=9, before=None)
        assert [(one.who, one.action, one.restored_version) for one in reversed(history)] == [
            (None, None, None),
            ("who2", promote, None),
            ("who3", promote, None),
            ("who4", rollback, 2),
            ("who5", rollback, 3),
            ("who6", rollback, 2),
        ]
        (other,) = database.for_tenant("other").channel_versions("x/y", limit=9, before=None)
        assert other.who is None
