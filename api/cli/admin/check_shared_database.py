"""Whether servers and workers can share a PostgreSQL database; part of ``doctor``. Nothing in it is changed."""

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from api.store.sql.connections import postgres_engines

_CONTENT = b"shardplan"
_WAIT_SECONDS = 5.0


class UnfitDatabase(Exception):
    """The database cannot be shared; the message is for people."""


def check_shared_database(url: str) -> str:
    """Return what was found of the database at an address, whose password is never repeated.

    Raises
    ------
    UnfitDatabase, UnusableDatabase
        It does not answer, or does not let us do what a server does; or the address is none of PostgreSQL.
    """
    engines = postgres_engines(url, busy_timeout_seconds=_WAIT_SECONDS)
    try:
        with engines.readers.begin() as connection:
            return _found(connection)
    except SQLAlchemyError as error:
        raise UnfitDatabase(str(getattr(error, "orig", None) or error).strip()) from error
    finally:
        engines.dispose()


def _found(connection: Connection) -> str:
    version = connection.exec_driver_sql("SHOW server_version").scalar_one()
    connection.exec_driver_sql("CREATE TEMPORARY TABLE shardplan_doctor (content bytea) ON COMMIT DROP")
    connection.exec_driver_sql("INSERT INTO shardplan_doctor VALUES (%s)", (_CONTENT,))
    if connection.exec_driver_sql("SELECT content FROM shardplan_doctor").scalar_one() != _CONTENT:
        raise UnfitDatabase("PostgreSQL returned other bytes than were written")
    writing = f"PostgreSQL {version} writes"
    if inspect(connection).has_table("alembic_version"):
        revision = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()
        return f"{writing}, and has tables of revision {revision}"
    # The first server makes the tables, and a schema for the queue.
    rights = (
        ("create tables", "SELECT has_schema_privilege(current_schema(), 'CREATE')"),
        ("create the schema dbos", "SELECT has_database_privilege(current_database(), 'CREATE')"),
    )
    for right, question in rights:
        if not connection.exec_driver_sql(question).scalar_one():
            raise UnfitDatabase(f"the database is empty, and its user may not {right}")
    return f"{writing}, and has no tables yet; the first server makes them"
