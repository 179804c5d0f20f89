"""The store in a file keeps the contract, and keeps it on the disk."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.store.sql import SqlStore
from tests.contracts.model_store import ModelStoreContract
from tests.contracts.race import race
from tests.contracts.store import DIGEST, StoreContract, new_solve, plan


class TestSqliteFile(StoreContract, ModelStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqlStore]:
        store = SqlStore.of_file(tmp_path / "db.sqlite")
        yield store
        store.close()

    def test_what_is_written_is_there_after_opening_again(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        first = SqlStore.of_file(path)
        first.accept(new_solve(1), max_queued=1, reuse=True)
        first.finish(f"{1:012x}", state="succeeded", now=2.0, plan=plan(canonical=b"x" * 1000))
        first.put_channel("c", plan_digest=DIGEST, expected_version=0, now=3.0)
        first.close()
        second = SqlStore.of_file(path)
        assert second.plan(DIGEST).canonical == b"x" * 1000
        assert second.channel("c").version == 1
        second.close()

    def test_the_file_is_written_ahead_and_synchronously(self, tmp_path: Path) -> None:
        store = SqlStore.of_file(tmp_path / "db.sqlite")
        for part in (store._writer, store._readers):  # noqa: SLF001
            with part.begin() as connection:
                pragmas = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                    for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
                ]
            assert pragmas == ["wal", 2, 1, 30_000]  # 2 is FULL
        store.close()

    def test_documents_are_compressed(self, tmp_path: Path) -> None:
        path = tmp_path / "db.sqlite"
        store = SqlStore.of_file(path)
        store.accept(new_solve(1), max_queued=1, reuse=True)
        store.finish(f"{1:012x}", state="succeeded", now=2.0, plan=plan(canonical=b"x" * 100_000))
        store.close()
        connection = sqlite3.connect(path)
        (size,) = connection.execute("SELECT length(document) FROM plans").fetchone()
        connection.close()
        assert size < 1000

    def test_many_stores_may_open_a_new_file_at_once(self, tmp_path: Path) -> None:
        stores = race(8, lambda _: SqlStore.of_file(tmp_path / "db.sqlite"))
        assert all(isinstance(store, SqlStore) for store in stores), stores
        for store in stores:
            store.close()
