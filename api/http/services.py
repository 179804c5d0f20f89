"""What routes work with; made once by ``api.http.app.create_app`` and handed over here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Depends, Request
from prometheus_client import CollectorRegistry

from api.execution.queue.dbos import DbosEngine
from api.http.auth.keys.service import ApiKeyService
from api.http.auth.principal import tenant_of
from api.http.protocol.idempotency import KeysInFlight
from api.http.protocol.server_sent_events import SolveStreams
from api.services.cost_models.activations import ActivationService
from api.services.cost_models.service import ModelService
from api.services.plans.cache import TenantPlans
from api.services.plans.channels import ChannelService
from api.services.solves.service import SolveService
from api.services.studies.service import StudyService
from api.services.tenants import Tenants
from api.services.webhooks.service import WebhookService
from api.settings import Settings
from api.specs.references.resolve import Library
from api.specs.references.stored_models import StoredModels
from api.store.database import TenantStore

#: So much is computed at a time: threads take turns at the interpreter, so that more of them finish nothing sooner, and
#: a fetch of a plan waits for a turn of each. Two, so that a short one need not wait for a long one.
MOST_COMPUTING = 2

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of one running server, as those of one tenant use it: nothing here reaches what others have."""

    tenants: "Tenants[Services]"
    settings: Settings
    store: TenantStore
    engine: DbosEngine
    solves: SolveService
    studies: StudyService
    streams: SolveStreams
    channels: ChannelService
    keys: KeysInFlight
    api_keys: ApiKeyService
    models: ModelService
    activations: ActivationService
    webhooks: WebhookService
    plans: TenantPlans
    metrics: CollectorRegistry
    computing: CapacityLimiter

    @property
    def library(self) -> Library:
        """What specs name: the plans, the statistics and the learned models that this service keeps."""
        return library_of(self.store, self.plans.find)

    async def compute(self, work: Callable[[], Value]) -> Value:
        """Check, price or draw something, in a thread, in turn with all others who do."""
        return await run_sync(work, limiter=self.computing)


def library_of(store: TenantStore, find_plan: Callable[[str], bytes | None]) -> Library:
    """Return what specs of a tenant may name."""
    return Library(find_plan=find_plan, find_statistics=store.statistics, find_model=StoredModels(store))


async def _services(request: Request) -> Services:
    """Return the service as the caller's tenant has it: the one way in which routes come to it."""
    services = request.app.state.services
    assert isinstance(services, Services)
    return await services.tenants.get(tenant_of(request.scope))


ServicesDep = Annotated[Services, Depends(_services)]
