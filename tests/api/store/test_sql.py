"""The store in a file keeps the contract, and keeps it on the disk."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.store.database import Database
from api.store.plans.plans import page_query
from api.store.sql.blobs import packed
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.race import race
from tests.support.contracts.store.all import StoreContract
from tests.support.contracts.store.values import DIGEST, plan, publish, summary
from tests.support.service.old_release import old_release


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database with its tables: to copy it is much faster than to make them."""
    path = tmp_path_factory.mktemp("migrated") / "db.sqlite"
    Database.of_file(path).close()
    return path


class TestSqliteFile(StoreContract):
    @pytest.fixture
    def database(self, tmp_path: Path, migrated: Path) -> Iterator[Database]:
        shutil.copy(migrated, tmp_path / "db.sqlite")
        database = Database.of_file(tmp_path / "db.sqlite")
        yield database
        database.close()

    def test_what_is_written_is_there_after_opening_again(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        first = Database.of_file(path)
        publish(first, 1, plan(canonical=b"x" * 1000))
        first.for_tenant(DEFAULT_TENANT).put_channel("c", plan_digest=DIGEST, expected_version=0, now=3.0)
        first.close()
        second = Database.of_file(path)
        store = second.for_tenant(DEFAULT_TENANT)
        assert store.plan(DIGEST).canonical == b"x" * 1000
        assert store.channel("c").version == 1
        second.close()

    def test_the_file_is_written_ahead_and_synchronously(self, tmp_path: Path) -> None:
        database = Database.of_file(tmp_path / "db.sqlite")
        for part in (database.engines.writer, database.engines.readers):
            with part.begin() as connection:
                pragmas = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                    for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
                ]
            assert pragmas == ["wal", 2, 1, 30_000]  # 2 is FULL
        database.close()

    def test_documents_are_compressed(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        database = Database.of_file(path)
        publish(database, 1, plan(canonical=b"x" * 100_000))
        database.close()
        connection = sqlite3.connect(path)
        (size,) = connection.execute("SELECT length(document) FROM plans").fetchone()
        connection.close()
        assert size < 1000

    def test_plans_of_a_version_without_summaries_are_summarised(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        document = {
            "plan_digest": DIGEST,
            "name": "old",
            "world_size": 8,
            "objective": {"name": "step_time", "seconds": 2.0, "lower_bound_seconds": 1.0, "relative_gap": 1.0},
            "provenance": {"hardware_profile": "h", "cost_model": "roofline@1"},
            "tables": [],
        }
        old_release(path, "0002")
        connection = sqlite3.connect(path)
        connection.execute("INSERT INTO specs VALUES ('r', x'', 1.0)")
        connection.execute("INSERT INTO plans VALUES (?, ?, 1.0)", (DIGEST, packed(json.dumps(document).encode())))
        connection.execute(
            "INSERT INTO solves (id, request_digest, spec_digest, name, state, created_at, ended_at, cancel_requested,"
            " assumptions, warnings, result) VALUES (?, 'r', 's', 'old', 'succeeded', 1.0, 2.0, 0, '[]', '[]', ?)",
            (f"{1:012x}", json.dumps({"plan_digest": DIGEST})),
        )
        connection.commit()
        connection.close()
        database = Database.of_file(path)
        expected = summary(1, created_at=1.0, name="old", plan_digest=DIGEST, solve_id=f"{1:012x}")
        assert database.for_tenant(DEFAULT_TENANT).plan_summaries(limit=9, before=None, name=None) == [expected]
        database.close()

    @pytest.mark.parametrize("name", [None, "n"])
    def test_pages_of_plans_are_read_through_an_index(self, tmp_path: Path, name: str | None) -> None:
        database = Database.of_file(tmp_path / "db.sqlite")
        query = page_query("default", limit=50, older_than=(5.0, DIGEST), name=name)
        text = str(query.compile(database.engines.readers, compile_kwargs={"literal_binds": True}))
        with database.engines.readers.begin() as connection:
            steps = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
        database.close()
        index = "plan_summaries_by_time" if name is None else "plan_summaries_by_name"
        assert len(steps) == 1  # no sorting
        assert steps[0].startswith(f"SEARCH plan_summaries USING INDEX {index}")

    def test_many_stores_may_open_a_new_file_at_once(self, tmp_path: Path) -> None:
        stores = race(8, lambda _: Database.of_file(tmp_path / "db.sqlite"))
        assert all(isinstance(database, Database) for database in stores), stores
        for database in stores:
            database.close()
