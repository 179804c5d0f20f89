"""What routes work with; made once by ``api.app.create_app`` and handed over here."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry

from api.access.key_ring import KeyRing
from api.access.keys import ApiKeyService
from api.activations import ActivationService
from api.channels import ChannelService
from api.engine.base import SolveEngine
from api.idempotency import KeysInFlight
from api.model_versions import ModelService
from api.plan_cache import PlanCache
from api.rank_slices import RankSlices
from api.settings import Settings
from api.solve_streams import SolveStreams
from api.solves import SolveService
from api.store.base import Store
from api.webhooks.service import WebhookService


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of one running server."""

    settings: Settings
    store: Store
    engine: SolveEngine
    solves: SolveService
    streams: SolveStreams
    channels: ChannelService
    keys: KeysInFlight
    api_keys: ApiKeyService
    key_ring: KeyRing
    models: ModelService
    activations: ActivationService
    webhooks: WebhookService
    plans: PlanCache
    rank_slices: RankSlices
    slices: PlanCache  # of single ranks, ready to be sent
    metrics: CollectorRegistry


def _services(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


Shell = Annotated[Services, Depends(_services)]
