"""Puts a backup into a new database: all of it in one transaction, checked on the way, or nothing.

Tables are made as they were when the backup was taken, filled, and then brought up to this release like those of any
database of an earlier one.
"""

import contextlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import zstandard
from sqlalchemy import Connection, MetaData, column, func, insert, inspect, select, table, update
from sqlalchemy.exc import DataError, IntegrityError

from api.execution.maintenance.takeover import SILENT_SECONDS
from api.execution.queue.clear import remove_works
from api.services.backup.archive import Archive, ArchivedTable, DamagedArchive, Manifest, NewerArchive, Row, type_of
from api.settings import Settings
from api.store.data_directory import exclusive_data_directory
from api.store.database import open_engines
from api.store.migrations.run import REVISION_TABLE, head_revision, known_revisions, upgrade
from api.store.solves.records import QUEUED, RUNNING
from api.store.sql import tables
from api.store.sql.blobs import unpacked
from api.store.sql.clock import database_now
from api.store.sql.connections import Engines
from planner.domain.formats.canonical_json import plan_digest


class NotEmpty(Exception):
    """The database has tables of a service already; the message is for people."""


class InUse(Exception):
    """Servers or workers use the database; the message is for people."""


def restore(source: Path, settings: Settings, *, replace: bool = False) -> Manifest:
    """Fill a new database with a backup; with ``replace``, one that has tables, which are dropped.

    Solves that were running wait again, with the best plans that they had; a runner of works takes up all that has
    not ended.

    Raises
    ------
    DamagedArchive, NewerArchive
        The file is not what a release up to this one wrote. The database is as it was.
    NotEmpty, InUse, DataFolderInUse
        The database has tables, or somebody works with it.
    UnusableDatabase, OSError, sqlalchemy.exc.SQLAlchemyError
        The database or the file cannot be used.
    """
    with Archive(source) as archive:
        _reject_newer(source, archive.manifest)
        with contextlib.ExitStack() as stack:
            if settings.database_url is None:
                stack.enter_context(exclusive_data_directory(settings.data_dir))
                stack.enter_context(_removed_on_failure(settings.database))
            engines = open_engines(settings)
            stack.callback(engines.dispose)
            _restore(archive, engines, settings, replace=replace)
        return archive.manifest


def check(source: Path) -> Manifest:
    """Read a backup to its end without a database: its release, its sums, and the digests of its plans.

    Raises as ``restore`` does of these.
    """
    with Archive(source) as archive:
        _reject_newer(source, archive.manifest)
        for archived in archive.manifest.tables:
            for rows in archive.rows(archived):
                _check_plans(archived, rows)
        return archive.manifest


def _reject_newer(source: Path, manifest: Manifest) -> None:
    if manifest.schema_revision not in known_revisions():
        raise NewerArchive(
            f"{source} has schema {manifest.schema_revision}, written by shardplan {manifest.release};"
            f" this version reads up to {head_revision()}"
        )


def _restore(archive: Archive, engines: Engines, settings: Settings, *, replace: bool) -> None:
    manifest = archive.manifest
    with engines.writer.begin() as connection:
        _make_room(connection, replace=replace)
        remove_works(connection, settings.queue_file)
        of_others = set(inspect(connection).get_table_names())
        upgrade(connection, manifest.schema_revision)
        made = _made(connection, of_others)
        for archived in _in_order(made, manifest.tables):
            target = table(archived.name, *(column(name, type_of(kind)) for name, kind in archived.columns.items()))
            try:
                for rows in archive.rows(archived):
                    _check_plans(archived, rows)
                    connection.execute(insert(target), [dict(row) for row in rows])
            except (IntegrityError, DataError) as error:
                raise DamagedArchive(f"rows of {archived.name} do not fit: {error.orig}") from error
        _continue_numbers(connection, made)
        upgrade(connection, head_revision())
        solves = tables.solves
        connection.execute(update(solves).where(solves.c.state == RUNNING).values(state=QUEUED))


def _make_room(connection: Connection, *, replace: bool) -> None:
    """See to it that no table of ours is there."""
    ours = {*tables.metadata.tables, REVISION_TABLE} & set(inspect(connection).get_table_names())
    if not ours:
        return
    if not replace:
        raise NotEmpty(
            "the database has tables already; name a new one (--data-dir, SHARDPLAN_DATABASE_URL), or say --replace to"
            " drop all that it has"
        )
    executors = tables.executors
    # No other process works with a file: its folder is owned.
    if connection.dialect.name == "postgresql" and executors.name in ours:
        alive = select(executors.c.id).where(database_now(connection) - executors.c.seen_at < SILENT_SECONDS)
        living = connection.execute(alive.limit(1)).scalar()
        if living is not None:
            raise InUse(f"{living} works with the database; stop all servers and workers first")
    there = MetaData()
    there.reflect(connection, only=sorted(ours))
    there.drop_all(connection)


def _made(connection: Connection, before: Collection[str]) -> MetaData:
    """Return the tables that an upgrade has made and a backup fills."""
    there = MetaData()
    new = set(inspect(connection).get_table_names()) - set(before)
    there.reflect(connection, only=[name for name in new if _is_archived(name)])
    return there


def _in_order(made: MetaData, archived: Sequence[ArchivedTable]) -> Iterator[ArchivedTable]:
    """Yield the tables of a backup, those that others refer to first; they must be those that were made."""
    found = {item.name: item for item in archived}
    expected = {name: set(known.columns.keys()) for name, known in made.tables.items()}
    columns_found = {name: set(item.columns) for name, item in found.items()}
    wrong = sorted(name for name in {*expected, *columns_found} if expected.get(name) != columns_found.get(name))
    if wrong:
        raise DamagedArchive(f"tables of the backup are not those of its schema: {', '.join(wrong)}")
    for known in made.sorted_tables:
        yield found[known.name]


def _is_archived(name: str) -> bool:
    known = tables.metadata.tables.get(name)
    return name != REVISION_TABLE and (known is None or not known.info.get("of_processes", False))


def _check_plans(archived: ArchivedTable, rows: Sequence[Row]) -> None:
    if archived.name != tables.plans.name:
        return
    for row in rows:
        try:
            found = plan_digest(json.loads(unpacked(row["document"])))
        except (zstandard.ZstdError, ValueError, KeyError, TypeError) as error:
            raise DamagedArchive(f"the plan {row['digest']} cannot be read: {error}") from error
        if found != row["digest"]:
            raise DamagedArchive(f"the plan {row['digest']} has the digest {found}: it was changed")


def _continue_numbers(connection: Connection, made: MetaData) -> None:
    """Let PostgreSQL give numbers beyond those of the rows that have come with theirs; SQLite does so by itself."""
    if connection.dialect.name != "postgresql":
        return
    for known in made.tables.values():
        for key in known.primary_key.columns:
            counter = connection.execute(select(func.pg_get_serial_sequence(f'"{known.name}"', key.name))).scalar()
            if counter is not None:
                following = select(func.coalesce(func.max(key), 0) + 1).scalar_subquery()
                connection.execute(select(func.setval(counter, following, False)))


@contextlib.contextmanager
def _removed_on_failure(database: Path) -> Iterator[None]:
    """Leave no file behind that was not there before, where the block fails."""
    was_there = database.exists()
    try:
        yield
    except BaseException:
        if not was_there:
            for end in ("", "-wal", "-shm"):
                database.with_name(database.name + end).unlink(missing_ok=True)
        raise
