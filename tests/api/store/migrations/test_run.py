"""Databases of earlier releases become those of this one, and others are left alone."""

import re
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from api.store.database import Database
from api.store.migrations import run
from api.store.migrations.run import WrongSchema, _config
from api.store.solves.idempotency import RequestKey
from api.store.sql import tables
from api.store.sql.connections import postgres_engines
from api.store.tenants import DEFAULT_TENANT
from benchmarks.service.local_postgres import Postgres
from tests.support.contracts.store.values import DIGEST, new_solve
from tests.support.service.old_release import old_release

#: What a server of schema 3 wrote, in its own words.
OLD = """
CREATE TABLE specs (request_digest VARCHAR NOT NULL, document BLOB NOT NULL, created_at FLOAT NOT NULL,
    PRIMARY KEY (request_digest));
CREATE TABLE solves (id VARCHAR NOT NULL, request_digest VARCHAR NOT NULL, spec_digest VARCHAR NOT NULL,
    name VARCHAR NOT NULL, state VARCHAR NOT NULL, created_at FLOAT NOT NULL, started_at FLOAT, ended_at FLOAT,
    cancel_requested BOOLEAN NOT NULL, assumptions JSON NOT NULL, warnings JSON NOT NULL, progress JSON, result JSON,
    error JSON, incumbent BLOB, PRIMARY KEY (id), FOREIGN KEY(request_digest) REFERENCES specs (request_digest));
CREATE INDEX solves_by_request ON solves (request_digest);
CREATE INDEX solves_by_state ON solves (state, id);
CREATE TABLE plans (digest VARCHAR NOT NULL, document BLOB NOT NULL, created_at FLOAT NOT NULL, PRIMARY KEY (digest));
CREATE TABLE statistics (digest VARCHAR NOT NULL, document BLOB NOT NULL, num_tables INTEGER NOT NULL,
    num_lookups INTEGER NOT NULL, created_at FLOAT NOT NULL, PRIMARY KEY (digest));
CREATE TABLE channels (name VARCHAR NOT NULL, version INTEGER NOT NULL, plan_digest VARCHAR NOT NULL,
    updated_at FLOAT NOT NULL, PRIMARY KEY (name), FOREIGN KEY(plan_digest) REFERENCES plans (digest));
CREATE TABLE channel_history (name VARCHAR NOT NULL, version INTEGER NOT NULL, plan_digest VARCHAR NOT NULL,
    updated_at FLOAT NOT NULL, PRIMARY KEY (name, version), FOREIGN KEY(plan_digest) REFERENCES plans (digest));
"""
OLD_MODELS = """
CREATE TABLE measurements (digest VARCHAR NOT NULL, document BLOB NOT NULL, device VARCHAR NOT NULL,
    num_rows INTEGER NOT NULL, source VARCHAR NOT NULL, plan_digest VARCHAR, comparison JSON,
    created_at FLOAT NOT NULL, PRIMARY KEY (digest));
CREATE INDEX measurements_by_device ON measurements (device, digest);
CREATE TABLE cost_model_documents (digest VARCHAR NOT NULL, document BLOB NOT NULL, created_at FLOAT NOT NULL,
    PRIMARY KEY (digest));
CREATE TABLE cost_models (name VARCHAR NOT NULL, version INTEGER NOT NULL, state VARCHAR NOT NULL, digest VARCHAR,
    device VARCHAR NOT NULL, figures JSON, request JSON, error JSON, created_at FLOAT NOT NULL, ended_at FLOAT,
    is_claimed BOOLEAN NOT NULL, attempts INTEGER NOT NULL, PRIMARY KEY (name, version),
    FOREIGN KEY(digest) REFERENCES cost_model_documents (digest));
CREATE INDEX cost_models_by_digest ON cost_models (digest);
CREATE INDEX cost_models_by_state ON cost_models (state, created_at);
CREATE TABLE activations (profile VARCHAR NOT NULL, version INTEGER NOT NULL, model_name VARCHAR NOT NULL,
    model_version INTEGER NOT NULL, digest VARCHAR NOT NULL, updated_at FLOAT NOT NULL,
    PRIMARY KEY (profile, version), FOREIGN KEY(digest) REFERENCES cost_model_documents (digest));
"""
ROWS = """
INSERT INTO specs VALUES ('r', x'28b52ffd200c6100007b226f6c64223a747275657d', 1.0);
INSERT INTO solves (id, request_digest, spec_digest, name, state, created_at, started_at, cancel_requested,
    assumptions, warnings) VALUES ('1', 'r', 's', 'old', 'running', 1.0, 2.0, 0, '[]', '[]');
"""


def old_file(path: Path, version: int) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(OLD + (OLD_MODELS if version == 3 else "") + ROWS + f"PRAGMA user_version={version};")
    connection.close()


@pytest.mark.parametrize("version", [2, 3])
def test_a_file_from_before_revisions_keeps_all_that_it_has(tmp_path: Path, version: int) -> None:
    path = tmp_path / "db.sqlite"
    old_file(path, version)
    for _ in range(2):  # the second time there is nothing to do
        database = Database.of_file(path)
        store = database.for_tenant(DEFAULT_TENANT)
        solve = store.solve("1")
        assert solve is not None
        assert (solve.name, solve.state, solve.attempts, solve.executor_id) == ("old", "queued", 0, None)
        assert store.spec("r") == b'{"old":true}'
        assert store.models(limit=1, after=None) == []
        database.close()


#: What a server of revision 0004 wrote: one row of each table that gets a tenant, and of what refers to it.
BEFORE_TENANTS = f"""
INSERT INTO specs VALUES ('r', x'28b52ffd200c6100007b226f6c64223a747275657d', 1.0);
INSERT INTO solves (id, request_digest, spec_digest, name, state, created_at, cancel_requested, assumptions, warnings)
    VALUES ('1', 'r', 's', 'old', 'succeeded', 1.0, 0, '[]', '[]');
INSERT INTO solve_events VALUES ('1', 1, 1.0, 0.0, '{{}}');
INSERT INTO plans VALUES ('{DIGEST}', x'28b52ffd200c6100007b226f6c64223a747275657d', 1.0);
INSERT INTO plan_summaries VALUES
    ('{DIGEST}', 'old', 1.0, 8, 'h', 'roofline@1', 'step_time', 2.0, 1.0, 1.0, '1', 's', 'r');
INSERT INTO channels VALUES ('c', 1, '{DIGEST}', 1.0);
INSERT INTO channel_history VALUES ('c', 1, '{DIGEST}', 1.0);
INSERT INTO statistics VALUES ('{DIGEST}', x'28b52ffd200c6100007b226f6c64223a747275657d', 1, 2, 1.0);
INSERT INTO measurements VALUES
    ('{DIGEST}', x'28b52ffd200c6100007b226f6c64223a747275657d', 'd', 1, 'benchmark', NULL, NULL, 1.0);
INSERT INTO cost_model_documents VALUES ('{DIGEST}', x'28b52ffd200c6100007b226f6c64223a747275657d', 1.0);
INSERT INTO cost_models (name, version, state, digest, device, created_at, attempts)
    VALUES ('m', 1, 'ready', '{DIGEST}', 'd', 1.0, 0);
INSERT INTO activations VALUES ('p', 1, 'm', 1, '{DIGEST}', 1.0);
INSERT INTO request_keys VALUES ('/v1/solves', 'k', 'f', '1', 1.0);
INSERT INTO api_keys (id, name, secret_digest, scopes, created_at) VALUES ('k', 'n', 's', '["read"]', 1.0);
INSERT INTO audit (seq, at, who, action, subject) VALUES (1, 1.0, 'local', 'key.create', 'keys/k');
"""


def test_what_was_there_before_tenants_is_of_default(tmp_path: Path) -> None:
    path = tmp_path / "db.sqlite"
    old_release(path, "0004")
    connection = sqlite3.connect(path)
    connection.executescript(BEFORE_TENANTS)
    connection.close()
    database = Database.of_file(path)
    _assert_upgraded(database)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    database.close()


def test_what_was_there_before_tenants_is_of_default_in_postgresql(postgres: Postgres) -> None:
    url = postgres.new_database()
    engines = postgres_engines(url, busy_timeout_seconds=30.0)
    with engines.writer.begin() as connection:
        command.upgrade(_config(connection), "0004")
        content = re.sub(r"x'([0-9a-f]+)'", r"decode('\1', 'hex')", BEFORE_TENANTS)
        connection.exec_driver_sql(content.replace("1.0, 0, '[]'", "1.0, false, '[]'"))
    engines.dispose()
    database = Database.of_postgres(url)
    _assert_upgraded(database)
    database.close()


def _assert_upgraded(database: Database) -> None:
    old = b'{"old":true}'
    for tenant, has in (("default", True), ("other", False)):
        store = database.for_tenant(tenant)
        assert (store.solve("1") is not None, store.plan(DIGEST) is not None) == (has, has)
        assert len(store.plan_summaries(limit=9, before=None, name="old")) == has
        assert store.spec_of_problem("s") == (old if has else None)
        assert store.statistics(DIGEST) == (old if has else None)
        assert store.measurements(DIGEST) == (old if has else None)
        assert store.model_document(DIGEST) == (old if has else None)
        assert [record.name for record in store.models(limit=9, after=None)] == ["m"] * has
        assert [record.version for record in store.activation_history("p")] == [1] * has
        assert [record.name for record in store.channels(limit=9, after=None)] == ["c"] * has
        assert [record.version for record in store.channel_versions("c", limit=9, before=None)] == [1] * has
        assert [record.id for record in store.api_keys()] == ["k"] * has
        assert [entry.seq for entry in store.audit(limit=9, before=None, subject=None)] == [1] * has
        key = RequestKey(scope="/v1/solves", key="k", fingerprint="f", at=2.0)
        assert store.made_by(key) == ("1" if has else None)
        assert len(store.events("1", after=0)) == has
    store = database.for_tenant("default")
    assert store.put_channel("c", plan_digest=DIGEST, expected_version=1, now=2.0).version == 2


@pytest.mark.parametrize("version", [1, 4, 99])
def test_a_file_of_another_schema_is_refused_untouched(tmp_path: Path, version: int) -> None:
    path = tmp_path / "db.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(f"CREATE TABLE solves (a); PRAGMA user_version={version};")
    connection.close()
    with pytest.raises(WrongSchema, match=str(version)):
        Database.of_file(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("solves",)]
    connection.close()


def test_a_migration_that_dies_on_the_way_has_changed_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "db.sqlite"
    old_file(path, 3)
    with monkeypatch.context() as patch:

        def die(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("alembic.op.drop_column", die)
        with pytest.raises(KeyboardInterrupt):
            Database.of_file(path)
    connection = sqlite3.connect(path)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert "alembic_version" not in names
    assert "executors" not in names
    database = Database.of_file(path)
    assert database.for_tenant(DEFAULT_TENANT).solve("1") is not None
    database.close()


def test_the_revisions_lead_to_the_tables_that_the_store_uses(tmp_path: Path) -> None:
    _assert_no_difference(Database.of_file(tmp_path / "db.sqlite"))


def test_the_revisions_lead_to_the_same_tables_in_postgresql(postgres: Postgres) -> None:
    database = Database.of_postgres(postgres.new_database())
    database.for_tenant(DEFAULT_TENANT).accept(new_solve(1), max_queued=1, reuse=True)
    _assert_no_difference(database)


def _assert_no_difference(database: Database) -> None:
    with database.engines.readers.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), tables.metadata) == []
    database.close()


def test_a_database_that_is_up_to_date_is_opened_without_alembic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every server, worker and command opens a database, and reading all revisions takes most of that time."""
    Database.of_file(tmp_path / "db.sqlite").close()
    monkeypatch.setattr(run, "upgrade", lambda *_: pytest.fail("nothing is to be done"))
    Database.of_file(tmp_path / "db.sqlite").close()
