"""What the store promises on every database. ``tests/api/store`` runs this on SQLite and on PostgreSQL."""

import pytest

from api.store.database import Database, TenantStore
from api.store.tenants import DEFAULT_TENANT
from tests.support.contracts.store.access import AccessContract
from tests.support.contracts.store.idempotency import RequestKeyContract
from tests.support.contracts.store.maintenance import MaintenanceContract
from tests.support.contracts.store.models import ModelContract
from tests.support.contracts.store.plans import PlanContract
from tests.support.contracts.store.solve_events import SolveEventContract
from tests.support.contracts.store.solve_options import SolveOptionsContract
from tests.support.contracts.store.solves import SolveContract
from tests.support.contracts.store.studies import StudyContract
from tests.support.contracts.store.tenants import TenantContract
from tests.support.contracts.store.webhooks import WebhookContract


class StoreContract(
    SolveContract,
    SolveOptionsContract,
    SolveEventContract,
    RequestKeyContract,
    PlanContract,
    ModelContract,
    AccessContract,
    WebhookContract,
    MaintenanceContract,
    StudyContract,
    TenantContract,
):
    """Subclasses give a fixture ``database``."""

    @pytest.fixture
    def store(self, database: Database) -> TenantStore:
        return database.for_tenant(DEFAULT_TENANT)
