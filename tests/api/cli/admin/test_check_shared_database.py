"""``doctor`` on the database that servers share: what it can do, and what stands in the way, without the password."""

import psycopg
import pytest
from sqlalchemy.engine import make_url

from api.cli.admin.check_shared_database import UnfitDatabase, check_shared_database
from api.store.database import Database
from api.store.sql.connections import UnusableDatabase
from benchmarks.service.local_postgres import Postgres
from tests.support.service.server import free_port


def test_an_empty_database_and_one_in_use(postgres: Postgres) -> None:
    url = postgres.new_database()
    assert "has no tables yet" in check_shared_database(url)
    Database.of_postgres(url).close()
    with psycopg.connect(url) as connection:
        (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert f"revision {revision}" in check_shared_database(url)


def test_a_user_without_rights(postgres: Postgres) -> None:
    url = postgres.new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest LOGIN PASSWORD 'secret-word'")
    guest = make_url(url).set(username="guest", password="secret-word").render_as_string(hide_password=False)
    with pytest.raises(UnfitDatabase, match="may not create tables"):
        check_shared_database(guest)


def test_a_database_that_does_not_answer_is_reported_without_the_password() -> None:
    with pytest.raises(UnfitDatabase, match="refused") as raised:
        check_shared_database(f"postgresql://me:secret-word@127.0.0.1:{free_port()}/name")
    assert "secret-word" not in str(raised.value)


def test_an_address_of_something_else() -> None:
    with pytest.raises(UnusableDatabase, match="PostgreSQL"):
        check_shared_database("mysql://me@host/name")
