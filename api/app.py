"""The composition root: settings in, a service out. Every part is made here and handed on."""

import contextlib
from collections.abc import AsyncIterator, Sequence

from anyio import CancelScope, CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, params
from fastapi.routing import APIRoute

from api.access.callers import Callers
from api.access.guard import CallerMiddleware, require_scope
from api.access.key_ring import KeyRing
from api.access.keys import ApiKeyService
from api.access.rate_limit import RateLimitMiddleware
from api.access.token_ring import TokenRing
from api.activations import ActivationService
from api.address_check import AddressCheckMiddleware
from api.body_limit import BodyLimitMiddleware
from api.channels import ChannelMemory, ChannelService
from api.console import add_console
from api.data_folder import owned
from api.end_signals import EndSignals
from api.engine.host import EngineHost
from api.errors import add_error_handlers
from api.fetch_path import FetchPathMiddleware
from api.fit_process import FitFunction, fit_model
from api.idempotency import KeysInFlight
from api.metrics import RequestMetrics, WebhookMetrics, WorkMetrics, new_registry
from api.model_versions import ModelService
from api.observed_requests import ObservedRequestsMiddleware, Observer
from api.openapi import add_openapi
from api.pages.site import add_pages
from api.plan_cache import PlanCache, TenantPlans
from api.rank_slices import RankSlices, TenantSlices
from api.request_id import RequestIdMiddleware
from api.routes import (
    activations,
    audit,
    catalogue,
    channels,
    cost_models,
    example_bodies,
    keys,
    measurements,
    operations,
    plan_lists,
    plans,
    solve_events,
    solves,
    statistics,
    webhooks,
)
from api.routes.known_query import refuse_unknown_parameters
from api.scraped import ScrapedMetrics
from api.settings import Settings
from api.solve_streams import Listeners, SolveStreams
from api.solve_watch import SolveWatch
from api.solver_process import PlanFunction, plan_in_full
from api.solves import SolveService
from api.state import MOST_COMPUTING, Services
from api.store.database import Database
from api.store.tenants import DEFAULT_TENANT, tenant_and_key
from api.stores import open_store
from api.tenants import Tenants
from api.tracing import NO_TRACING, TracedRequestsMiddleware, Tracing
from api.webhooks.courier import Courier
from api.webhooks.sender import Sender
from api.webhooks.service import WebhookService
from api.webhooks.targets import AllowList
from cost_models.learned.shipped import shipped_models

#: Version of the HTTP interface: the path prefix /v1 and additions to it.
INTERFACE_VERSION = "1.0"

TAGS = [
    {"name": "solves", "description": "Ask for plans: specs in, solves out."},
    {"name": "plans", "description": "Immutable results, by digest."},
    {"name": "statistics", "description": "Access statistics of tables, which specs refer to; and their drift."},
    {"name": "channels", "description": "Named pointers to plans, which launchers read."},
    {"name": "cost models", "description": "Formulas, and models learned from measurements; which one is active."},
    {"name": "catalogue", "description": "Hardware profiles, and examples of requests."},
    {"name": "webhooks", "description": "Addresses that are told when solves end and channels change."},
    {"name": "access", "description": "Keys of callers, and what was changed by whom."},
    {"name": "operations", "description": "Health, version and the meaning of problems."},
]


ROUTERS = (
    solves.router,
    solve_events.router,
    plans.router,
    plan_lists.router,
    statistics.router,
    channels.router,
    measurements.router,
    cost_models.router,
    activations.router,
    catalogue.router,
    example_bodies.router,
    keys.router,
    audit.router,
    webhooks.router,
    operations.router,
)


def create_app(
    settings: Settings,
    *,
    plan: PlanFunction = plan_in_full,
    fit: FitFunction = fit_model,
    observers: Sequence[Observer] = (),
    tracing: Tracing = NO_TRACING,
) -> FastAPI:
    """Return the service.

    ``plan`` and ``fit`` are what processes of solves and fits call; they find them by module and
    name, so each must be a function at the top of a module. ``observers`` hear of every request.
    ``tracing`` makes spans.
    """

    registry = new_registry()
    work_metrics = WorkMetrics(registry)
    webhook_metrics = WebhookMetrics(registry)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        allowed = AllowList(settings.webhook_hosts)
        with owned(settings.data_dir), contextlib.closing(open_store(settings)) as database:
            signals = EndSignals()
            signals.attach()
            host = EngineHost(
                database,
                settings,
                plan=plan,
                fit=fit,
                on_end=signals.tell,
                on_change=signals.tell_change,
                metrics=work_metrics,
                tracer=tracing.tracer,
            )
            plans = PlanCache(lambda key: _canonical(database, key), max_bytes=settings.plan_cache_bytes)
            rank_slices = RankSlices(plans.find, max_bytes=settings.plan_cache_bytes)
            key_ring = KeyRing(database)
            token_ring = TokenRing.of(settings)
            slices = PlanCache(rank_slices.find, max_bytes=settings.plan_cache_bytes)
            listeners = Listeners(settings.max_event_streams)
            channel_memory = ChannelMemory(is_shared=settings.database_url is not None)
            computing = CapacityLimiter(MOST_COMPUTING)
            keys_in_flight: set[tuple[str, str, str]] = set()

            def services_of(tenant: str) -> Services:
                store = database.for_tenant(tenant)
                models = ModelService(store, host.engine, host.fits, signals, settings, tenant=tenant)
                models.add_shipped(shipped_models())
                return Services(
                    tenants=tenants,
                    settings=settings,
                    store=store,
                    engine=host.engine,
                    solves=SolveService(store, host.engine, host.solves, signals, settings),
                    streams=SolveStreams(store, signals, listeners),
                    channels=ChannelService(store, channel_memory, tenant=tenant),
                    keys=KeysInFlight(tenant, keys_in_flight),
                    api_keys=ApiKeyService(store, forget=key_ring.forget),
                    models=models,
                    activations=ActivationService(store),
                    webhooks=WebhookService(store, allowed),
                    plans=TenantPlans(plans, tenant),
                    rank_slices=TenantSlices(rank_slices, tenant),
                    slices=TenantPlans(slices, tenant),
                    metrics=registry,
                    computing=computing,
                )

            tenants = Tenants(services_of)
            app.state.services = await tenants.get(DEFAULT_TENANT)
            app.state.memory = tenants
            app.state.callers = Callers(key_ring, token_ring)
            scraped = ScrapedMetrics(
                database, caches={"plans": plans, "slices": slices}, num_streams=lambda: listeners.number
            )
            courier = Courier(database, Sender(allowed), webhook_metrics)
            running = host.running()
            # In a thread: the engine talks to its database as it starts and stops, and waits for what runs.
            await run_sync(running.__enter__)
            try:
                async with SolveWatch(database, signals).running(), key_ring.running(), courier.running():
                    registry.register(scraped)
                    try:
                        yield
                    finally:
                        registry.unregister(scraped)
            finally:
                app.state.services.solves.release()
                with CancelScope(shield=True):
                    await run_sync(running.__exit__, None, None, None)

    app = FastAPI(
        title="shardplan",
        version=INTERFACE_VERSION,
        openapi_tags=TAGS,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    asks_for_keys = settings.auth == "keys"
    guards = [Depends(require_scope)] if asks_for_keys else []
    for router in ROUTERS:
        strict = [*guards, Depends(refuse_unknown_parameters)] if router.prefix else []
        app.include_router(router, dependencies=strict)
        _answer_head(app, router, strict)
    add_pages(app)
    app.state.routes = [*app.routes, *(route for router in ROUTERS for route in router.routes)]
    add_openapi(app, asks_for_keys=asks_for_keys)
    add_console(app)
    add_error_handlers(app)
    app.add_middleware(
        BodyLimitMiddleware,
        max_body_bytes=settings.max_body_bytes,
        patience_seconds=settings.body_patience_seconds,
    )
    # Within those that know the caller: what is in memory is for callers who may read, and for nobody else.
    app.add_middleware(FetchPathMiddleware, asks_for_keys=asks_for_keys)
    if settings.rate_limit_per_minute is not None:
        app.add_middleware(RateLimitMiddleware, per_minute=settings.rate_limit_per_minute)
    if asks_for_keys:
        app.add_middleware(CallerMiddleware)
    app.add_middleware(AddressCheckMiddleware)
    app.add_middleware(ObservedRequestsMiddleware, observers=[RequestMetrics(registry), *observers])
    if tracing is not NO_TRACING:
        app.add_middleware(TracedRequestsMiddleware, tracer=tracing.tracer)
    app.add_middleware(RequestIdMiddleware)
    return app


def _answer_head(app: FastAPI, router: APIRouter, dependencies: Sequence[params.Depends]) -> None:
    """Answer HEAD wherever GET is answered; the server sends no body then."""
    routes = [route for route in router.routes if isinstance(route, APIRoute)]
    have = {route.path for route in routes if "HEAD" in (route.methods or ())}
    for route in routes:
        if "GET" in (route.methods or ()) and route.path not in have:
            app.add_api_route(
                route.path, route.endpoint, methods=["HEAD"], dependencies=dependencies, include_in_schema=False
            )


def _canonical(database: Database, key: str) -> bytes | None:
    tenant, digest = tenant_and_key(key)
    record = database.for_tenant(tenant).plan(digest)
    return None if record is None else record.canonical
