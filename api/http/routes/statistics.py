"""Access statistics: kept by digest, compared with each other and with those that a plan was made with."""

import json
import time
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request, Response

from api.http.protocol.headers import page_headers
from api.http.protocol.idempotency import IdempotencyKey, request_key
from api.http.protocol.responses import IMMUTABLE, etagged_response, json_response, not_stored
from api.http.routes.documentation import (
    BODY_ERRORS,
    HAS_IT,
    KEY_ERRORS,
    IfNoneMatch,
    error_responses,
    json_answer,
    json_body,
)
from api.http.routes.plans import PlanDigest, find_plan
from api.http.services import Services, ServicesDep
from api.schemas.base import DIGEST_PATTERN
from api.schemas.number_text import WHOLE_NUMBER
from api.schemas.statistics import DriftDocument, StatisticsDocument, StatisticsPage, StatisticsSummary
from api.services.errors import ApiError, found
from api.services.measurements.statistics_drift import drift_document, drift_of_tables
from api.services.pages import page_of
from api.specs.references.statistics import EVIDENCE, table_of
from api.specs.references.statistics_document import Statistics, parse_statistics
from api.store.models.statistics import StatisticsRecord
from api.store.solves.idempotency import RequestKey

router = APIRouter(prefix="/v1", tags=["statistics"])

StatisticsDigest = Annotated[str, Path(pattern=DIGEST_PATTERN, description="Digest of the statistics.")]


@router.post(
    "/statistics",
    summary="Store access statistics",
    status_code=201,
    openapi_extra=json_body("StatisticsDocument"),
    responses={
        201: json_answer("Stored.", StatisticsSummary),
        200: json_answer("Equal statistics were stored before.", StatisticsSummary),
        **error_responses("invalid-parameter", *KEY_ERRORS, *BODY_ERRORS),
    },
)
async def store_statistics(request: Request, services: ServicesDep, idempotency_key: IdempotencyKey = None) -> Response:
    """Check the sketches and keep them; their digest is what ``access.statistics`` of a spec names."""
    raw = await request.body()
    key = request_key(request, raw, idempotency_key)
    with services.keys.holding(key):
        parsed = await services.compute(lambda: parse_statistics(raw))
        record, is_new = await run_sync(lambda: _keep(services, parsed, key))
    summary = _summary(record)
    return json_response(summary, 201 if is_new else 200, {"Location": summary.statistics_url})


@router.get(
    "/statistics",
    summary="List statistics by digest",
    response_model=StatisticsPage,
    responses=error_responses("invalid-parameter"),
)
async def list_statistics(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: sets of statistics."), WHOLE_NUMBER] = 50,
    page_token: Annotated[str | None, Query(pattern=DIGEST_PATTERN, description="From next_page_token.")] = None,
) -> Response:
    """List what specs may refer to."""
    records = await run_sync(lambda: services.store.statistics_records(limit=page_size + 1, after=page_token))
    page, token = page_of(records, page_size, lambda record: record.digest)
    document = StatisticsPage(statistics=[_summary(record) for record in page], next_page_token=token)
    return json_response(document, headers=page_headers("/v1/statistics", page_size, token))


@router.get(
    "/statistics/{digest}",
    summary="Fetch statistics",
    responses={
        200: json_answer("The statistics.", StatisticsDocument),
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def get_statistics(services: ServicesDep, digest: StatisticsDigest, if_none_match: IfNoneMatch = "") -> Response:
    """Answer with the bytes of the statistics, which never change."""
    canonical = await run_sync(_canonical, services, digest)
    return etagged_response(if_none_match, canonical, cache_control=IMMUTABLE)


@router.get(
    "/statistics/{digest}/drift",
    summary="Compare statistics with later ones",
    responses={
        200: json_answer("What changed, the tables that changed most first.", DriftDocument),
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def compare_statistics(
    services: ServicesDep,
    digest: StatisticsDigest,
    against: Annotated[str, Query(pattern=DIGEST_PATTERN, description="Digest of the later statistics.")],
) -> Response:
    """Say what changed from the statistics of the address to those of ``against``."""
    drift = await services.compute(
        lambda: drift_document([_statistics(services, digest)], _statistics(services, against))
    )
    return not_stored(drift)


@router.get(
    "/plans/{digest}/drift",
    summary="Compare the statistics of a plan with later ones",
    responses={
        200: json_answer("What changed since the plan, the tables that changed most first.", DriftDocument),
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def compare_plan_statistics(
    services: ServicesDep,
    digest: PlanDigest,
    statistics: Annotated[str, Query(pattern=DIGEST_PATTERN, description="Digest of the later statistics.")],
) -> Response:
    """Say what changed in the tables of a plan since the statistics that its provenance names."""
    return not_stored(await services.compute(lambda: _plan_drift(services, digest, _statistics(services, statistics))))


def _keep(services: Services, statistics: Statistics, key: RequestKey | None) -> tuple[StatisticsRecord, bool]:
    record = StatisticsRecord(
        digest=statistics.digest,
        num_tables=len(statistics.sketches),
        num_lookups=sum(sketch.lookups for sketch in statistics.sketches.values()),
        created_at=time.time(),
    )
    return services.store.add_statistics(record, canonical=statistics.canonical, key=key)


def _canonical(services: Services, digest: str) -> bytes:
    return found(services.store.statistics(digest), "statistics")


def _statistics(services: Services, digest: str) -> Statistics:
    return parse_statistics(_canonical(services, digest))


def _plan_drift(services: Services, digest: str, now: Statistics) -> DriftDocument:
    evidence = json.loads(find_plan(services, digest).canonical)["provenance"]["evidence"]
    references = {
        table: entry["value"]
        for subject, entry in evidence.items()
        if entry["evidence"] == EVIDENCE and (table := table_of(subject)) is not None
    }
    if not references:
        raise ApiError("not-found", "the plan was made without statistics")
    before = {name: _statistics(services, name) for name in {text.partition("#")[0] for text in references.values()}}
    sketches = {}
    for table, reference in references.items():
        statistics, _, name = reference.partition("#")
        sketches[table] = (name, before[statistics].sketches[name])
    return drift_of_tables(sketches, list(before.values()), now)


def _summary(record: StatisticsRecord) -> StatisticsSummary:
    url = f"/v1/statistics/{record.digest}"
    return StatisticsSummary.of(record, statistics_digest=record.digest, statistics_url=url)
