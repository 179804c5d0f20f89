"""The store in a SQL database: one SQLite file, or PostgreSQL. Writers take turns on either."""

import copy
from pathlib import Path

from api.settings import Settings
from api.store.access.audit import AuditTrail
from api.store.access.keys import ApiKeys, ApiKeyVerification
from api.store.maintenance.counts import Counts
from api.store.maintenance.retention import Retention
from api.store.migrations.run import migrate
from api.store.models.activations import Activations
from api.store.models.measurements import Measurements
from api.store.models.models import Models, UnendedFits
from api.store.models.statistics import StatisticsDocuments
from api.store.plans.channels import Channels
from api.store.plans.plans import Plans
from api.store.solves.events import SolveEvents, SolveMarks
from api.store.solves.executors import Executors
from api.store.solves.idempotency import RequestKeys
from api.store.solves.removal import SolveRemoval
from api.store.solves.runs import SolveRuns
from api.store.solves.solves import Solves
from api.store.sql.connections import Engines, postgres_engines, sqlite_engines
from api.store.sql.repository import Repository
from api.store.tenants import DEFAULT_TENANT
from api.store.webhooks.deliveries import Deliveries
from api.store.webhooks.webhooks import Webhooks


class _Connected(Repository):
    def ping(self) -> None:
        """Raise if the database cannot be read."""
        with self._readers.begin() as connection:
            connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one()


class TenantStore(
    Solves,
    SolveEvents,
    SolveRemoval,
    RequestKeys,
    Plans,
    Channels,
    StatisticsDocuments,
    Measurements,
    Models,
    Activations,
    ApiKeys,
    AuditTrail,
    Webhooks,
    _Connected,
):
    """What one tenant has."""


class Database(
    SolveRuns,
    SolveMarks,
    Executors,
    UnendedFits,
    ApiKeyVerification,
    Deliveries,
    Retention,
    Counts,
    _Connected,
):
    """What all tenants have together."""

    _engines: Engines

    def for_tenant(self, tenant: str) -> TenantStore:
        """Return what one tenant has, over the same connections."""
        of_tenant = copy.copy(self)
        of_tenant._tenant = tenant  # noqa: SLF001 (one of ours)
        assert isinstance(of_tenant, TenantStore)
        return of_tenant

    def close(self) -> None:
        """Close all connections."""
        self._engines.dispose()


class SqlStore(TenantStore, Database):
    """An open database, and in it the tenant ``default``. Callers take it for a ``Database`` or a ``TenantStore``."""

    def __init__(self, engines: Engines, name: str) -> None:
        """Bring the database up to date; ``name`` is what messages call it. Raises ``WrongSchema``."""
        self._engines, self._readers, self._writer = engines, engines.readers, engines.writer
        self._tenant = DEFAULT_TENANT
        migrate(engines.writer, name)

    @classmethod
    def of_file(cls, path: Path, *, busy_timeout_seconds: float = 30.0) -> "SqlStore":
        """Open a file on a local disk, or create it."""
        return cls(sqlite_engines(path, busy_timeout_seconds=busy_timeout_seconds), str(path))

    @classmethod
    def of_postgres(cls, url: str, *, busy_timeout_seconds: float = 30.0) -> "SqlStore":
        """Open a PostgreSQL database. Raises ``UnusableDatabase``."""
        return cls(postgres_engines(url, busy_timeout_seconds=busy_timeout_seconds), "the database")


def open_store(settings: Settings) -> Database:
    """Open a PostgreSQL database, or else a file. Raises ``WrongSchema`` or ``UnusableDatabase``."""
    name = "the database" if settings.database_url is not None else str(settings.database)
    return SqlStore(open_engines(settings), name)


def open_engines(settings: Settings) -> Engines:
    """Return connections to the same database, which is left as it is. Raises ``UnusableDatabase``."""
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        return postgres_engines(url, busy_timeout_seconds=settings.busy_timeout_seconds)
    return sqlite_engines(settings.database, busy_timeout_seconds=settings.busy_timeout_seconds)
