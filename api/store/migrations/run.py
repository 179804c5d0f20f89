"""Brings a database to the tables that this release works with, however many servers start at once.

Each step is an Alembic revision in ``migrations/versions``. All that are missing run in one transaction of the
writer, which holds the database's write lock: a second server waits and finds nothing to do; a server that dies
on the way has changed nothing.
"""

import functools
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from api.store.plans.plans import add_missing_summaries
from api.store.sql import tables
from api.store.sql.connections import Writer

#: What ``PRAGMA user_version`` says of files from before revisions, and the tables that such files may lack.
_OLD_VERSIONS = (2, 3)
_FIRST = "0001"
#: Where Alembic writes down the revision of a database.
REVISION_TABLE = "alembic_version"


class WrongSchema(Exception):
    """The database was written by another version of the service; it was not touched."""


def migrate(writer: Writer, name: str) -> None:
    """Run the revisions that a database lacks; ``name`` is what messages call it.

    Raises
    ------
    WrongSchema
        A later release, or something else, wrote it.
    """
    with writer.begin() as connection:
        current = revision_of(connection)
        known = known_revisions()
        if current is not None and current not in known:
            raise WrongSchema(f"{name} has schema {current}; this version reads up to {max(known)}")
        if current == head_revision():
            return  # Alembic would read all revisions again to find nothing to do
        if current is None:
            _adopt(connection, _config(connection), name)
        upgrade(connection, head_revision())


@functools.cache
def known_revisions() -> frozenset[str]:
    return frozenset(script.revision for script in _scripts().walk_revisions())


@functools.cache
def head_revision() -> str:
    head = _scripts().get_current_head()
    assert head is not None
    return head


def revision_of(connection: Connection) -> str | None:
    """Return the revision of a database; ``None`` of one that is empty, or from before there were revisions."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade(connection: Connection, revision: str) -> None:
    """Bring the tables of a database to a revision that is not below theirs, in the transaction of a connection."""
    current = revision_of(connection)
    command.upgrade(_config(connection), revision)
    if revision == head_revision() and current != revision:
        add_missing_summaries(connection)


def _adopt(connection: Connection, config: Config, name: str) -> None:
    """Say of a file from before revisions which one it is at; refuse what is none of ours."""
    version = 0
    if connection.dialect.name == "sqlite":
        version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    if version == 0 and not set(inspect(connection).get_table_names()) & set(tables.metadata.tables):
        return
    if version not in _OLD_VERSIONS:
        raise WrongSchema(f"{name} has schema {version}; this version reads {_OLD_VERSIONS} and its own")
    if version != _OLD_VERSIONS[-1]:
        # The one before differs in tables that it lacks; the first revision creates those.
        return
    command.stamp(config, _FIRST)


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())
