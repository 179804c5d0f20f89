"""What a backup has is what the database had, whatever kind of database it goes into."""

import stat
import zipfile
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import MetaData, inspect, text

from api.services.backup.archive import kind_of, write_archive
from api.services.backup.restoring import InUse, NotEmpty, check, restore
from api.services.backup.taking import back_up
from api.settings import Settings
from api.store.data_directory import DataFolderInUse, exclusive_data_directory
from api.store.database import open_engines, open_store
from api.store.migrations.run import WrongSchema, head_revision, upgrade
from api.store.sql import tables
from api.store.sql.connections import Engines, sqlite_engines
from benchmarks.service.local_postgres import Postgres
from tests.support.service.database_rows import NUM_ROWS, Rows, all_rows, fill
from tests.support.service.live import settings_for
from tests.support.thorough import thorough

KINDS = ("sqlite", "postgres")


@pytest.fixture
def databases(tmp_path: Path, request: pytest.FixtureRequest) -> "Databases":
    return Databases(tmp_path, request)


class Databases:
    """Makes settings of new databases."""

    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self._folder, self._request, self._number = folder, request, 0

    def new(self, kind: str) -> Settings:
        self._number += 1
        folder = self._folder / f"data-{self._number}"
        if kind == "sqlite":
            return settings_for(folder)
        server: Postgres = self._request.getfixturevalue("postgres")
        return settings_for(folder, database_url=server.new_database())

    def filled(self, kind: str) -> Settings:
        settings = self.new(kind)
        settings.data_dir.mkdir()
        open_store(settings).close()
        with closing_engines(settings) as engines, engines.writer.begin() as connection:
            fill(connection)
        return settings


class closing_engines:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> Engines:
        self._engines = open_engines(self._settings)
        return self._engines

    def __exit__(self, *_: object) -> None:
        self._engines.dispose()


def rows_of(settings: Settings) -> Rows:
    with closing_engines(settings) as engines, engines.readers.begin() as connection:
        return all_rows(connection)


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_every_row_of_every_table_comes_back(source: str, target: str, databases: Databases, tmp_path: Path) -> None:
    first, second = databases.filled(source), databases.new(target)
    file = tmp_path / "backup.zip"
    manifest = back_up(first, file)
    before = rows_of(first)
    assert manifest.num_rows == {name: NUM_ROWS for name in tables.metadata.tables if name != "executors"}
    assert check(file) == manifest
    assert restore(file, second) == manifest

    after = rows_of(second)
    state = list(tables.solves.columns.keys()).index("state")
    assert [row[state] for row in before["solves"]] == ["queued", "running", "succeeded"]
    before["solves"] = [
        (*row[:state], row[state].replace("running", "queued"), *row[state + 1 :]) for row in before["solves"]
    ]
    assert after == before
    # As a server finds it: at this release's schema, and nobody is in it.
    store = open_store(second)
    assert store.executors() == []
    store.close()


def test_the_kinds_of_all_columns_are_known() -> None:
    for table in tables.metadata.tables.values():
        for column in table.columns:
            assert kind_of(column) in ("json", "bytes", "boolean", "integer", "number", "text")


def test_only_the_owner_may_read_the_file_and_it_is_there_as_a_whole(databases: Databases, tmp_path: Path) -> None:
    settings, file = databases.filled("sqlite"), tmp_path / "here" / "backup.zip"
    file.parent.mkdir()
    back_up(settings, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    with zipfile.ZipFile(file) as archive:
        names = set(archive.namelist())
    assert names == {
        "manifest.json",
        *(f"tables/{name}.jsonl" for name in tables.metadata.tables if name != "executors"),
    }


def test_a_backup_that_fails_leaves_the_one_before(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, file = databases.filled("sqlite"), tmp_path / "here" / "backup.zip"
    file.parent.mkdir()
    file.write_bytes(b"of yesterday")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("api.client.plan_file.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        back_up(settings, file)
    assert file.read_bytes() == b"of yesterday"
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_meanwhile_is_not_in_it(
    kind: str, databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = databases.filled(kind)
    expected = rows_of(settings)
    real = write_archive

    def with_a_second_writer(*arguments: object, **options: object) -> object:
        with closing_engines(settings) as engines, engines.writer.begin() as connection:
            for name in ("solve_tags", "channels", "audit"):
                connection.execute(text(f"DELETE FROM {name}"))
        return real(*arguments, **options)

    monkeypatch.setattr("api.services.backup.taking.write_archive", with_a_second_writer)
    back_up(settings, tmp_path / "backup.zip")
    assert rows_of(settings)["channels"] == []
    restored = databases.new("sqlite")
    restore(tmp_path / "backup.zip", restored)
    found = rows_of(restored)
    for name in ("solve_tags", "channels", "audit"):
        assert found[name] == expected[name]


@thorough
@pytest.mark.parametrize("kind", KINDS)
def test_a_database_with_tables_is_left_alone_unless_it_is_to_be_replaced(
    kind: str, databases: Databases, tmp_path: Path
) -> None:
    source, target = databases.filled("sqlite"), databases.filled(kind)
    with closing_engines(source) as engines, engines.writer.begin() as connection:
        connection.execute(text("DELETE FROM channels"))
    with closing_engines(target) as engines, engines.writer.begin() as connection:
        connection.execute(text("UPDATE executors SET seen_at = 0"))
    back_up(source, tmp_path / "backup.zip")
    before = rows_of(target)
    with pytest.raises(NotEmpty, match="--replace"):
        restore(tmp_path / "backup.zip", target)
    assert rows_of(target) == before
    restore(tmp_path / "backup.zip", target, replace=True)
    assert rows_of(target)["channels"] == []
    assert len(rows_of(target)["plans"]) == NUM_ROWS


def test_no_one_may_work_with_a_folder_that_is_replaced(databases: Databases, tmp_path: Path) -> None:
    settings = databases.filled("sqlite")
    back_up(settings, tmp_path / "backup.zip")
    with exclusive_data_directory(settings.data_dir), pytest.raises(DataFolderInUse):
        restore(tmp_path / "backup.zip", settings, replace=True)


def test_no_one_may_work_with_a_shared_database_that_is_replaced(databases: Databases, tmp_path: Path) -> None:
    settings = databases.filled("postgres")
    back_up(settings, tmp_path / "backup.zip")
    store = open_store(settings)
    store.enter_executor("busy", life="1", host="h")
    store.close()
    before = rows_of(settings)
    with pytest.raises(InUse, match="works with the database; stop all servers"):
        restore(tmp_path / "backup.zip", settings, replace=True)
    assert rows_of(settings) == before


def test_a_backup_of_an_earlier_schema_is_brought_up_to_date(databases: Databases, tmp_path: Path) -> None:
    old = sqlite_engines(tmp_path / "old.sqlite", busy_timeout_seconds=5)
    with old.writer.begin() as connection:
        upgrade(connection, "0003")
        connection.execute(text("INSERT INTO specs VALUES ('r', x'00', 1.5)"))
        there = MetaData()
        there.reflect(connection, only=[name for name in inspect(connection).get_table_names() if name in OLD_TABLES])
        with (tmp_path / "backup.zip").open("wb") as file:
            write_archive(file, connection, there, revision="0003", release="0.0.9", now=1.0)
    old.dispose()
    settings = databases.new("sqlite")
    manifest = restore(tmp_path / "backup.zip", settings)
    assert manifest.schema_revision == "0003" != head_revision()
    rows = rows_of(settings)
    assert rows["specs"] == [("r", b"\0", 1.5)]
    assert rows["audit"] == []


OLD_TABLES = {
    *("specs", "solves", "solve_requests", "solve_tags", "request_keys", "solve_events", "plans", "plan_summaries"),
    *(
        "statistics",
        "channels",
        "channel_history",
        "measurements",
        "cost_model_documents",
        "cost_models",
        "activations",
    ),
}


def test_a_database_of_another_schema_is_not_backed_up(databases: Databases, tmp_path: Path) -> None:
    settings = databases.filled("sqlite")
    with closing_engines(settings) as engines, engines.writer.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0003'"))
    with pytest.raises(WrongSchema, match="0003"):
        back_up(settings, tmp_path / "backup.zip")
    assert not (tmp_path / "backup.zip").exists()


def test_numbers_that_postgres_gives_go_on_after_those_that_came(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No table of ours has such numbers yet."""
    source = databases.filled("sqlite")
    back_up(source, tmp_path / "backup.zip")
    target = databases.new("postgres")
    real = command.upgrade

    def with_numbers(config: object, revision: str) -> None:
        real(config, revision)
        connection = config.attributes["connection"]
        connection.execute(text("CREATE SEQUENCE IF NOT EXISTS numbers OWNED BY audit.seq"))
        connection.execute(text("ALTER TABLE audit ALTER COLUMN seq SET DEFAULT nextval('numbers')"))

    monkeypatch.setattr("api.store.migrations.run.command.upgrade", with_numbers)
    restore(tmp_path / "backup.zip", target)
    last = max(row[1] for row in rows_of(target)["audit"])
    with closing_engines(target) as engines, engines.writer.begin() as connection:
        assert connection.execute(text("SELECT nextval('numbers')")).scalar_one() == last + 1
