"""The store in PostgreSQL keeps the contract, also among many processes."""

from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine

from api.store.database import SqlStore
from api.store.migrations.run import WrongSchema
from api.store.sql.connections import UnusableDatabase, postgres_url
from benchmarks.service.local_postgres import Postgres
from tests.support.contracts.access_store import AccessStoreContract
from tests.support.contracts.count_store import CountStoreContract
from tests.support.contracts.event_store import EventStoreContract
from tests.support.contracts.key_store import KeyStoreContract
from tests.support.contracts.model_store import ModelStoreContract
from tests.support.contracts.plan_list_store import PlanListStoreContract
from tests.support.contracts.race import race
from tests.support.contracts.retention_store import RetentionStoreContract
from tests.support.contracts.solve_request_store import SolveRequestStoreContract
from tests.support.contracts.store import StoreContract, new_solve
from tests.support.contracts.tenant_store import TenantStoreContract
from tests.support.contracts.webhook_store import WebhookStoreContract


@pytest.fixture(scope="module")
def migrated(postgres: Postgres) -> str:
    """A database with its tables: to copy it is much faster than to make them."""
    url = postgres.new_database()
    SqlStore.of_postgres(url).close()
    return url


class TestPostgres(
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
    def store(self, postgres: Postgres, migrated: str) -> Iterator[SqlStore]:
        store = SqlStore.of_postgres(postgres.new_database(like=migrated))
        yield store
        store.close()

    def test_many_stores_may_open_a_new_database_at_once(self, postgres: Postgres) -> None:
        url = postgres.new_database()
        stores = race(8, lambda _: SqlStore.of_postgres(url))
        assert all(isinstance(store, SqlStore) for store in stores), stores
        # Each has connections of its own, as processes have: writers take turns all the same.
        accepted = race(8, lambda index: stores[index].accept(new_solve(index, request="r"), max_queued=9, reuse=True))
        assert sum(created for _, created in accepted) == 1
        for store in stores:
            store.close()

    def test_a_database_of_a_later_release_is_refused(self, postgres: Postgres) -> None:
        url = postgres.new_database()
        store = SqlStore.of_postgres(url)
        with store._writer.begin() as connection:  # noqa: SLF001
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        store.close()
        with pytest.raises(WrongSchema, match="9999"):
            SqlStore.of_postgres(url)

    # The driver complains of connections whose server is gone, and that nobody closed.
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_a_store_goes_on_after_a_restart_of_the_server(self, postgres: Postgres) -> None:
        store = SqlStore.of_postgres(postgres.new_database())
        store.accept(new_solve(1), max_queued=1, reuse=True)
        postgres.stop()
        postgres.start()
        assert store.solve(new_solve(1).id) is not None
        store.close()


@pytest.mark.parametrize("url", ["postgresql://host", "mysql://host/name", "no address", "sqlite:///file", ""])
def test_addresses_that_are_none_of_postgresql_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(UnusableDatabase, match="postgresql://user:password@host:5432/database") as caught:
        SqlStore.of_postgres(url)
    assert not url or url not in str(caught.value)


@pytest.mark.parametrize(("stated", "expected"), [("", "15000"), ("?tcp_user_timeout=7000", "7000")])
def test_connections_notice_that_the_host_is_gone(postgres: Postgres, stated: str, expected: str) -> None:
    engine = create_engine(postgres_url(postgres.new_database() + stated))
    with engine.connect() as connection:
        said = connection.connection.driver_connection.info.get_parameters()
    engine.dispose()
    assert (said["tcp_user_timeout"], said["keepalives_idle"]) == (expected, "5")
