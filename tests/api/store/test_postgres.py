"""The store in PostgreSQL keeps the contract, also among many processes."""

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine

from api.store.database import Database
from api.store.migrations.run import WrongSchema
from api.store.sql.connections import UnusableDatabase, postgres_url
from api.store.tenants import DEFAULT_TENANT
from benchmarks.service.local_postgres import Postgres
from tests.support.contracts.race import race
from tests.support.contracts.store.all import StoreContract
from tests.support.contracts.store.values import new_solve
from tests.support.thorough import thorough


@pytest.fixture(scope="module")
def migrated(postgres: Postgres) -> str:
    """A database with its tables: to copy it is much faster than to make them."""
    url = postgres.new_database()
    Database.of_postgres(url).close()
    return url


class TestPostgres(StoreContract):
    @pytest.fixture
    def database(self, postgres: Postgres, migrated: str) -> Iterator[Database]:
        database = Database.of_postgres(postgres.new_database(like=migrated))
        yield database
        database.close()

    def test_many_stores_may_open_a_new_database_at_once(self, postgres: Postgres) -> None:
        url = postgres.new_database()
        databases = race(8, lambda _: Database.of_postgres(url))
        assert all(isinstance(database, Database) for database in databases), databases
        # Each has connections of its own, as processes have: writers take turns all the same.
        accepted = race(
            8,
            lambda index: (
                databases[index]
                .for_tenant(DEFAULT_TENANT)
                .accept(new_solve(index, request="r"), max_queued=9, reuse=True)
            ),
        )
        assert sum(created for _, created in accepted) == 1
        for database in databases:
            database.close()

    def test_a_database_of_a_later_release_is_refused(self, postgres: Postgres) -> None:
        url = postgres.new_database()
        database = Database.of_postgres(url)
        with database.engines.writer.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        database.close()
        with pytest.raises(WrongSchema, match="9999"):
            Database.of_postgres(url)

    # The driver complains of connections whose server is gone, and that nobody closed.
    @thorough
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_store_goes_on_after_a_restart_of_the_server(self, postgres: Postgres) -> None:
        database = Database.of_postgres(postgres.new_database())
        store = database.for_tenant(DEFAULT_TENANT)
        store.accept(new_solve(1), max_queued=1, reuse=True)
        postgres.stop()
        postgres.start()
        assert store.solve(new_solve(1).id) is not None
        database.close()


@pytest.mark.parametrize("url", ["postgresql://host", "mysql://host/name", "no address", "sqlite:///file", ""])
def test_addresses_that_are_none_of_postgresql_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(UnusableDatabase, match="postgresql://user:password@host:5432/database") as caught:
        Database.of_postgres(url)
    assert not url or url not in str(caught.value)


@pytest.mark.parametrize(("stated", "expected"), [("", "15000"), ("?tcp_user_timeout=7000", "7000")])
def test_connections_notice_that_the_host_is_gone(postgres: Postgres, stated: str, expected: str) -> None:
    engine = create_engine(postgres_url(postgres.new_database() + stated))
    with engine.connect() as connection:
        message = connection.connection.driver_connection.info.get_parameters()
    engine.dispose()
    assert (message["tcp_user_timeout"], message["keepalives_idle"]) == (expected, "5")
