"""The composition root: settings in, a service out. Every part is made here and handed on."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from operator import attrgetter

from anyio import CancelScope, CapacityLimiter, create_task_group
from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, FastAPI, params
from fastapi.routing import APIRoute

from api.execution.host import EngineHost
from api.execution.processes.fit import FitFunction
from api.execution.processes.solve import PlanFunction, plan_in_full
from api.http.auth.keys.service import ApiKeyService
from api.http.auth.keys.verification import ApiKeyVerifier
from api.http.auth.middleware import CallerMiddleware, require_scope
from api.http.auth.rate_limit import RateLimitMiddleware
from api.http.auth.tokens.verification import TokenVerifier
from api.http.middleware.body_budget import BodyBudget
from api.http.middleware.body_limits import BodyLimitMiddleware
from api.http.middleware.cached_plan import FetchPathMiddleware
from api.http.middleware.header_rules import HeaderRulesMiddleware
from api.http.middleware.request_observers import ObservedRequestsMiddleware, Observer
from api.http.middleware.reserved_paths import AddressCheckMiddleware
from api.http.openapi.console import add_console
from api.http.openapi.document import add_openapi
from api.http.pages.site import add_pages
from api.http.protocol.idempotency import KeysInFlight
from api.http.protocol.problem_details import add_error_handlers
from api.http.protocol.server_sent_events import Listeners, SolveStreams
from api.http.routes import (
    activations,
    audit,
    caller,
    catalogue,
    channels,
    cost_models,
    example_bodies,
    keys,
    measurements,
    operations,
    plan_lists,
    plan_timeline,
    plans,
    solve_events,
    solves,
    statistics,
    studies,
    webhooks,
)
from api.http.routes.known_query import refuse_unknown_parameters
from api.http.scraped_metrics import ScrapedMetrics
from api.http.services import MOST_COMPUTING, Services, library_of
from api.observability.metrics import RequestMetrics, WebhookMetrics, WorkMetrics, new_registry
from api.observability.request_id import RequestIdMiddleware
from api.observability.tracing import NO_TRACING, TracedRequestsMiddleware, Tracing
from api.services.cost_models.activations import ActivationService
from api.services.cost_models.service import ModelService
from api.services.plans.cache import PlanCache, PlanKey, TenantPlans
from api.services.plans.channels import ChannelMemory, ChannelService
from api.services.plans.forms import COMPACT, LONG, compact_bytes, long_bytes
from api.services.plans.rank_slices import RankSlices
from api.services.solves.database_watch import SolveWatch
from api.services.solves.notifications import SolveNotifications
from api.services.solves.service import SolveService
from api.services.studies.runner import Planning, StudyRunner
from api.services.studies.service import StudyService
from api.services.tenants import Tenants
from api.services.webhooks.client import WebhookClient
from api.services.webhooks.delivery_worker import DeliveryWorker
from api.services.webhooks.service import WebhookService
from api.services.webhooks.targets import HostAllowList
from api.settings import Settings
from api.specs.references.learned_model import fit as fit_model
from api.store.data_directory import exclusive_data_directory
from api.store.database import Database, TenantStore, open_store
from api.store.tenants import DEFAULT_TENANT
from cost_models.learned.shipped import shipped_models

#: Version of the HTTP interface: the path prefix /v1 and additions to it.
INTERFACE_VERSION = "1.0"

TAGS = [
    {"name": "solves", "description": "Ask for plans: specs in, solves out."},
    {"name": "studies", "description": "Questions that take many plans: sweeps and their Pareto fronts."},
    {"name": "plans", "description": "Immutable results, by digest."},
    {"name": "statistics", "description": "Access statistics of tables, which specs refer to; and their drift."},
    {"name": "channels", "description": "Named pointers to plans, which launchers read."},
    {"name": "cost models", "description": "Formulas, and models learned from measurements; which one is active."},
    {"name": "catalogue", "description": "Hardware profiles, and examples of requests."},
    {"name": "webhooks", "description": "Addresses that are notified when solves end and channels change."},
    {"name": "access", "description": "Keys of callers, and what was changed by whom."},
    {"name": "operations", "description": "Health, version and the meaning of problems."},
]


ROUTERS = (
    solves.router,
    solve_events.router,
    studies.router,
    plans.router,
    plan_lists.router,
    plan_timeline.router,
    statistics.router,
    channels.router,
    measurements.router,
    cost_models.router,
    activations.router,
    catalogue.router,
    example_bodies.router,
    caller.router,
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

    ``plan`` and ``fit`` are what processes of solves and fits call; they find them by module and name, so each must be
    a function at the top of a module. ``observers`` hear of every request. ``tracing`` makes spans.
    """

    registry = new_registry()
    work_metrics = WorkMetrics(registry)
    webhook_metrics = WebhookMetrics(registry)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        allowed = HostAllowList(settings.webhook_hosts)
        with exclusive_data_directory(settings.data_dir), contextlib.closing(open_store(settings)) as database:
            signals = SolveNotifications()
            signals.attach()
            host = EngineHost(
                database,
                settings,
                plan=plan,
                fit=fit,
                on_end=signals.ended,
                on_change=signals.changed,
                metrics=work_metrics,
                tracer=tracing.tracer,
                studies=StudyRunner(
                    database,
                    lambda tenant: planning_of(tenant),
                    on_end=signals.ended,
                    memory_bytes=settings.solver_memory_bytes,
                ),
            )
            plans = PlanCache[PlanKey](
                lambda key: _canonical(database, plans, key), max_bytes=settings.plan_cache_bytes
            )
            rank_slices = RankSlices(plans.find, max_bytes=settings.plan_cache_bytes)
            api_keys = ApiKeyVerifier(database)
            slices = PlanCache(rank_slices.find, max_bytes=settings.plan_cache_bytes)
            listeners = Listeners(settings.max_event_streams)
            channel_memory = ChannelMemory(is_shared=settings.database_url is not None)
            computing = CapacityLimiter(MOST_COMPUTING)
            keys_in_flight: set[tuple[str, str, str]] = set()

            def planning_of(tenant: str) -> Planning:
                store = database.for_tenant(tenant)
                find_plan = TenantPlans(plans, slices, tenant).find
                return Planning(solves_of(store), library_of(store, find_plan), find_plan)

            def solves_of(store: TenantStore) -> SolveService:
                return SolveService(store, host.engine, host.solves, signals, settings)

            def services_of(tenant: str) -> Services:
                store = database.for_tenant(tenant)
                models = ModelService(store, host.engine, host.fits, signals, settings, tenant=tenant)
                models.add_shipped(shipped_models())
                return Services(
                    tenants=tenants,
                    settings=settings,
                    store=store,
                    engine=host.engine,
                    solves=solves_of(store),
                    studies=StudyService(store, host.engine, signals, settings),
                    streams=SolveStreams(store, signals, listeners),
                    channels=ChannelService(store, channel_memory, tenant=tenant),
                    keys=KeysInFlight(tenant, keys_in_flight),
                    api_keys=ApiKeyService(store, forget=api_keys.forget),
                    models=models,
                    activations=ActivationService(store),
                    webhooks=WebhookService(store, allowed),
                    plans=TenantPlans(plans, slices, tenant),
                    metrics=registry,
                    computing=computing,
                )

            tenants = Tenants(services_of)
            app.state.services = await tenants.get(DEFAULT_TENANT)
            app.state.memory = tenants
            app.state.api_keys, app.state.tokens = api_keys, TokenVerifier.of(settings)
            scraped = ScrapedMetrics(
                database, caches={"plans": plans, "slices": slices}, num_streams=lambda: listeners.number
            )
            delivery_worker = DeliveryWorker(database, WebhookClient(allowed), webhook_metrics)
            running = host.running()
            # In a thread: the engine talks to its database as it starts and stops, and waits for what runs.
            await run_sync(running.__enter__)
            try:
                async with create_task_group() as background:
                    for run in (SolveWatch(database, signals).run, api_keys.run, delivery_worker.run):
                        background.start_soon(run)
                    registry.register(scraped)
                    try:
                        yield
                    finally:
                        registry.unregister(scraped)
                        background.cancel_scope.cancel()
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
        redirect_slashes=False,
        lifespan=lifespan,
        generate_unique_id_function=attrgetter("name"),
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
        budget=BodyBudget(max_bytes=settings.bodies_bytes, max_caller_bytes=settings.caller_bodies_bytes),
    )
    # Within those that know the caller: what is in memory is for callers who may read, and for no others.
    app.add_middleware(FetchPathMiddleware, asks_for_keys=asks_for_keys)
    if settings.rate_limit_per_minute is not None:
        app.add_middleware(RateLimitMiddleware, per_minute=settings.rate_limit_per_minute)
    if asks_for_keys:
        app.add_middleware(CallerMiddleware)
    app.add_middleware(AddressCheckMiddleware)
    app.add_middleware(HeaderRulesMiddleware)
    app.add_middleware(ObservedRequestsMiddleware, observers=[RequestMetrics(registry), *observers])
    if tracing is not NO_TRACING:
        app.add_middleware(TracedRequestsMiddleware, tracer=tracing.tracer)
    app.add_middleware(RequestIdMiddleware)
    return app


def _answer_head(app: FastAPI, router: APIRouter, dependencies: Sequence[params.Depends]) -> None:
    """Answer HEAD wherever GET is answered; the server sends no body then."""
    for route in router.routes:
        if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
            app.add_api_route(
                route.path, route.endpoint, methods=["HEAD"], dependencies=dependencies, include_in_schema=False
            )


def _canonical(database: Database, plans: PlanCache[PlanKey], key: PlanKey) -> bytes | None:
    """Return the canonical bytes of a plan in the form of the key; the long one is made from the compact one."""
    tenant, digest, form = key
    if form == LONG:
        compact = plans.find((tenant, digest, COMPACT))
        return None if compact is None else long_bytes(compact)
    record = database.for_tenant(tenant).plan(digest)
    return None if record is None else compact_bytes(record.canonical)
