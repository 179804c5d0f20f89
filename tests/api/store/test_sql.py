"""The store in a file keeps the contract, and keeps it on the disk."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.store.database import SqlStore
from api.store.plans.plans import page_query
from api.store.sql.blobs import packed
from tests.support.contracts.access_store import AccessStoreContract
from tests.support.contracts.count_store import CountStoreContract
from tests.support.contracts.event_store import EventStoreContract
from tests.support.contracts.key_store import KeyStoreContract
from tests.support.contracts.model_store import ModelStoreContract
from tests.support.contracts.plan_list_store import PlanListStoreContract, summary
from tests.support.contracts.race import race
from tests.support.contracts.retention_store import RetentionStoreContract
from tests.support.contracts.solve_request_store import SolveRequestStoreContract
from tests.support.contracts.store import DIGEST, StoreContract, new_solve, plan
from tests.support.contracts.tenant_store import TenantStoreContract
from tests.support.contracts.webhook_store import WebhookStoreContract
from tests.support.service.old_release import old_release


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database with its tables: to copy it is much faster than to make them."""
    path = tmp_path_factory.mktemp("migrated") / "db.sqlite"
    SqlStore.of_file(path).close()
    return path


class TestSqliteFile(
    StoreContract,
    ModelStoreContract,
    EventStoreContract,
    PlanListStoreContract,
    KeyStoreContract,
    SolveRequestStoreContract,
    AccessStoreContract,
    CountStoreContract,
    WebhookStoreContract,
    RetentionStoreContract,
    TenantStoreContract,
):
    @pytest.fixture
    def store(self, tmp_path: Path, migrated: Path) -> Iterator[SqlStore]:
        shutil.copy(migrated, tmp_path / "db.sqlite")
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
        store = SqlStore.of_file(path)
        expected = summary(1, created_at=1.0, name="old", plan_digest=DIGEST, solve_id=f"{1:012x}")
        assert store.plan_summaries(limit=9, before=None, name=None) == [expected]
        store.close()

    @pytest.mark.parametrize("name", [None, "n"])
    def test_pages_of_plans_are_read_through_an_index(self, tmp_path: Path, name: str | None) -> None:
        store = SqlStore.of_file(tmp_path / "db.sqlite")
        query = page_query("default", limit=50, older_than=(5.0, DIGEST), name=name)
        text = str(query.compile(store._readers, compile_kwargs={"literal_binds": True}))  # noqa: SLF001
        with store._readers.begin() as connection:  # noqa: SLF001
            steps = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")]
        store.close()
        index = "plan_summaries_by_time" if name is None else "plan_summaries_by_name"
        assert len(steps) == 1  # no sorting
        assert steps[0].startswith(f"SEARCH plan_summaries USING INDEX {index}")

    def test_many_stores_may_open_a_new_file_at_once(self, tmp_path: Path) -> None:
        stores = race(8, lambda _: SqlStore.of_file(tmp_path / "db.sqlite"))
        assert all(isinstance(store, SqlStore) for store in stores), stores
        for store in stores:
            store.close()
