"""The file of a backup: a zip of rows as JSON lines, one member for each table, and a manifest that seals them.

It is independent of the kind of database that it was taken from. Bytes are base64; the kind of a column is in the
manifest. Reading a table to its end checks that it is as it was written.
"""

import base64
import binascii
import contextlib
import errno
import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from sqlalchemy import JSON, Boolean, Column, Connection, Float, Integer, LargeBinary, MetaData, String, Table, select
from sqlalchemy.types import TypeEngine

#: Of the file, not of the tables in it.
FORMAT = 1
_MANIFEST = "manifest.json"
_FORMAT_NAME = "shardplan-backup"
_BATCH_ROWS = 100  # some have a plan each
#: Documents are compressed already: this takes back what base64 adds, and no more.
_LEVEL = 1

Row = Mapping[str, Any]


class DamagedArchive(Exception):
    """The file is no backup, or not as it was written; the message is for people."""


class NewerArchive(Exception):
    """A later release wrote the file; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTable:
    """What the manifest says of the rows of one table."""

    name: str
    columns: Mapping[str, str]  # kind by name, in the order of the values
    num_rows: int
    sha256: str  # of the member

    @property
    def member(self) -> str:
        return f"tables/{self.name}.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup says of itself."""

    schema_revision: str
    release: str
    created_at: float  # seconds since the epoch
    tables: Sequence[ArchivedTable]

    @property
    def num_rows(self) -> dict[str, int]:
        return {table.name: table.num_rows for table in self.tables}


def kind_of(column: Column[Any]) -> str:
    """Return what the values of a column are. Raises ``TypeError`` for a type that backups do not know."""
    for kind, types in _TYPES.items():
        if isinstance(column.type, types):
            return kind
    raise TypeError(f"backups do not know the type {column.type!r} of {column}")


def type_of(kind: str) -> TypeEngine[Any]:
    """Return the type with which values of a kind are written into any database."""
    return JSON(none_as_null=True) if kind == "json" else _TYPES[kind]()


_TYPES: Mapping[str, type[TypeEngine[Any]]] = {
    "json": JSON,
    "bytes": LargeBinary,
    "boolean": Boolean,
    "integer": Integer,
    "number": Float,
    "text": String,
}


def write_archive(
    file: IO[bytes], connection: Connection, metadata: MetaData, *, revision: str, release: str, now: float
) -> Manifest:
    """Write all rows of the tables of ``metadata``, but of those that say of themselves that they are of processes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        written = [_write_table(archive, connection, table) for table in archived_tables(metadata)]
        manifest = Manifest(schema_revision=revision, release=release, created_at=now, tables=written)
        document = {"format": _FORMAT_NAME, "format_version": FORMAT, **asdict(manifest)}
        archive.writestr(_MANIFEST, json.dumps(document, indent=1))
    return manifest


def archived_tables(metadata: MetaData) -> list[Table]:
    """Return the tables that a backup has, those that others refer to first."""
    return [table for table in metadata.sorted_tables if not table.info.get("of_processes", False)]


def _write_table(archive: zipfile.ZipFile, connection: Connection, table: Table) -> ArchivedTable:
    kinds = {column.name: kind_of(column) for column in table.columns}
    checksum, num_rows = hashlib.sha256(), 0
    query = select(table).order_by(*table.primary_key.columns)
    with archive.open(f"tables/{table.name}.jsonl", "w", force_zip64=True) as member:
        for row in connection.execution_options(yield_per=_BATCH_ROWS).execute(query):
            values = [_encoded(value) for value in row]
            line = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            member.write(line)
            checksum.update(line)
            num_rows += 1
    return ArchivedTable(name=table.name, columns=kinds, num_rows=num_rows, sha256=checksum.hexdigest())


class Archive:
    """A backup that is read."""

    def __init__(self, path: Path) -> None:
        """Read the manifest. Raises ``DamagedArchive``, ``NewerArchive`` or ``OSError``."""
        self._path = path
        with self._damage_reported():
            self._zip = zipfile.ZipFile(path)
            try:
                self.manifest = _manifest_of(json.loads(self._zip.read(_MANIFEST)))
            except BaseException:
                self._zip.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def rows(self, table: ArchivedTable) -> Iterator[list[Row]]:
        """Yield rows in batches. Raises ``DamagedArchive``, at the latest after the last one."""
        checksum, num_rows = hashlib.sha256(), 0
        batch: list[Row] = []
        with self._damage_reported(), self._zip.open(table.member) as member:
            for line in member:
                checksum.update(line)
                num_rows += 1
                columns = zip(table.columns.items(), json.loads(line), strict=True)
                batch.append({name: _decoded(kind, value) for (name, kind), value in columns})
                if len(batch) == _BATCH_ROWS:
                    yield batch
                    batch = []
            if (num_rows, checksum.hexdigest()) != (table.num_rows, table.sha256):
                raise DamagedArchive(f"{self._path} is damaged: {table.member} is not what was written")
        if batch:
            yield batch

    @contextlib.contextmanager
    def _damage_reported(self) -> Iterator[None]:
        """Turn whatever a damaged zip or line leads to into ``DamagedArchive``."""
        try:
            yield
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
            raise DamagedArchive(f"{self._path} is no backup, or was cut off: {error}") from error
        except (KeyError, ValueError, TypeError, AttributeError, binascii.Error) as error:
            raise DamagedArchive(f"{self._path} is damaged: {error}") from error
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # A place in the file that damage made negative; zipfile looks there all the same.
            raise DamagedArchive(f"{self._path} is damaged: {error}") from error


def _manifest_of(document: Any) -> Manifest:
    if document["format"] != _FORMAT_NAME:
        raise ValueError("it is another kind of file")
    if document["format_version"] > FORMAT:
        raise NewerArchive(
            f"the backup has format {document['format_version']}, written by shardplan {document['release']};"
            f" this version reads up to {FORMAT}"
        )
    tables = [ArchivedTable(**table) for table in document["tables"]]
    for table in tables:
        unknown = sorted(set(table.columns.values()) - set(_TYPES))
        if unknown:
            raise ValueError(f"columns of {table.name} are of an unknown kind, {unknown[0]}")
    return Manifest(**{key: document[key] for key in ("schema_revision", "release", "created_at")}, tables=tables)


def _encoded(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _decoded(kind: str, value: Any) -> Any:
    return base64.b64decode(value, validate=True) if kind == "bytes" and value is not None else value
