"""The SQLite store keeps the contract, and keeps it on the disk."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.store.sqlite import SqliteStore, WrongSchema
from tests.contracts.event_store import EventStoreContract
from tests.contracts.model_store import ModelStoreContract
from tests.contracts.race import race
from tests.contracts.store import DIGEST, StoreContract, new_solve, plan


class TestSqliteStore(StoreContract, ModelStoreContract, EventStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqliteStore]:
        store = SqliteStore(tmp_path / "db.sqlite")
        yield store
        store.close()

    def test_what_is_written_is_there_after_opening_again(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        first = SqliteStore(path)
        first.accept(new_solve(1), max_queued=1, reuse=True)
        first.finish(f"{1:012x}", state="succeeded", now=2.0, plan=plan(canonical=b"x" * 1000))
        first.put_channel("c", plan_digest=DIGEST, expected_version=0, now=3.0)
        first.close()
        second = SqliteStore(path)
        assert second.plan(DIGEST).canonical == b"x" * 1000
        assert second.channel("c").version == 1
        second.close()

    def test_the_file_is_written_ahead_and_synchronously(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "db.sqlite")
        for engine in (store._writer, store._readers):  # noqa: SLF001
            with engine.begin() as connection:
                pragmas = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                    for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
                ]
            assert pragmas == ["wal", 2, 1, 30_000]  # 2 is FULL
        store.close()

    def test_documents_are_compressed(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        store = SqliteStore(path)
        store.accept(new_solve(1), max_queued=1, reuse=True)
        store.finish(f"{1:012x}", state="succeeded", now=2.0, plan=plan(canonical=b"x" * 100_000))
        store.close()
        connection = sqlite3.connect(path)
        (size,) = connection.execute("SELECT length(document) FROM plans").fetchone()
        connection.close()
        assert size < 1000

    def test_a_file_of_the_version_before_models_is_made_one_of_this(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        SqliteStore(path).close()
        connection = sqlite3.connect(path)
        for name in ("solve_events", "activations", "cost_models", "cost_model_documents", "measurements"):
            connection.execute(f"DROP TABLE {name}")
        connection.execute("PRAGMA user_version=2")
        connection.close()
        store = SqliteStore(path)
        assert store.models(limit=1, after=None) == []
        assert store.events("nothing", after=0) == []
        store.close()

    def test_a_file_of_another_version_is_refused_untouched(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version=99")
        connection.close()
        with pytest.raises(WrongSchema, match="99"):
            SqliteStore(path)
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
        connection.close()

    def test_many_stores_may_open_a_new_file_at_once(self, tmp_path: Path) -> None:
        stores = race(4, lambda _: SqliteStore(tmp_path / "db.sqlite"))
        assert all(isinstance(store, SqliteStore) for store in stores), stores
        for store in stores:
            store.close()
