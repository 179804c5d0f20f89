"""Opens the database: one SQLite file, or PostgreSQL."""

from pathlib import Path

from api.settings import Settings
from api.store.access.audit import AuditTrail
from api.store.access.keys import ApiKeys, ApiKeyVerification
from api.store.maintenance.executors import Executors
from api.store.maintenance.retention import Retention
from api.store.migrations.run import migrate
from api.store.models.activations import Activations
from api.store.models.measurements import Measurements
from api.store.models.models import Fits, Models
from api.store.models.statistics import Statistics
from api.store.plans.channels import Channels
from api.store.plans.plans import Plans
from api.store.solves.idempotency import RequestKeys
from api.store.solves.runs import SolveRuns
from api.store.solves.solves import Solves
from api.store.sql.connections import Engines, postgres_engines, sqlite_engines
from api.store.studies.studies import Studies, StudyRuns
from api.store.webhooks.deliveries import Deliveries
from api.store.webhooks.webhooks import Webhooks


class TenantStore(
    Solves,
    Studies,
    RequestKeys,
    Plans,
    Channels,
    Statistics,
    Measurements,
    Models,
    Activations,
    ApiKeys,
    AuditTrail,
    Webhooks,
):
    """What one tenant has."""


class Database(SolveRuns, StudyRuns, Executors, Fits, ApiKeyVerification, Deliveries, Retention):
    """What all tenants have together, and the way to what one tenant has."""

    def __init__(self, engines: Engines) -> None:
        """Bring the database up to date. Raises ``WrongSchema``."""
        super().__init__(engines)
        migrate(engines.writer, engines.name)

    @classmethod
    def of_file(cls, path: Path, *, busy_timeout_seconds: float = 30.0) -> "Database":
        """Open a file on a local disk, or create it."""
        return cls(sqlite_engines(path, busy_timeout_seconds=busy_timeout_seconds))

    @classmethod
    def of_postgres(cls, url: str, *, busy_timeout_seconds: float = 30.0) -> "Database":
        """Open a PostgreSQL database. Raises ``UnusableDatabase``."""
        return cls(postgres_engines(url, busy_timeout_seconds=busy_timeout_seconds))

    def for_tenant(self, tenant: str) -> TenantStore:
        return TenantStore(self.engines, tenant)

    def close(self) -> None:
        self.engines.dispose()


def open_store(settings: Settings) -> Database:
    """Open the database that the settings name. Raises ``WrongSchema`` or ``UnusableDatabase``."""
    return Database(open_engines(settings))


def open_engines(settings: Settings) -> Engines:
    """Return connections to the same database, which is left as it is. Raises ``UnusableDatabase``."""
    if settings.database_url is not None:
        url = settings.database_url.get_secret_value()
        return postgres_engines(url, busy_timeout_seconds=settings.busy_timeout_seconds)
    return sqlite_engines(settings.database, busy_timeout_seconds=settings.busy_timeout_seconds)
