"""Measurements: stored by digest, listed, and compared with the predictions of plans."""

import time
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request, Response

from api.http.protocol.headers import page_headers
from api.http.protocol.idempotency import IdempotencyKey, request_key
from api.http.protocol.responses import IMMUTABLE, etag_of_digest, etagged_response, json_response
from api.http.routes.documentation import (
    BODY_ERRORS,
    HAS_IT,
    KEY_ERRORS,
    IfNoneMatch,
    error_responses,
    json_answer,
    json_body,
)
from api.http.routes.examples import MEASUREMENTS
from api.http.services import Services, ServicesDep
from api.schemas.base import DIGEST_PATTERN
from api.schemas.measurements import JobTimes, MeasurementsDocument, MeasurementsPage, MeasurementsSummary
from api.schemas.number_text import WHOLE_NUMBER
from api.services.errors import found
from api.services.measurements.intake import batch_of_job, is_of_job, parse_rows
from api.services.pages import page_of
from api.specs.input.json import RejectedDocument, parse_document
from api.specs.parse import parse_plan, parse_stored_spec
from api.specs.plans.document import GivenPlan
from api.specs.request import SolveInputs
from api.store.models.measurements import MeasurementsRecord
from api.store.solves.idempotency import RequestKey
from planner.errors import Issue

router = APIRouter(prefix="/v1", tags=["cost models"])


MeasurementsDigest = Annotated[str, Path(pattern=DIGEST_PATTERN, description="Digest of the measurements.")]


@router.post(
    "/measurements",
    summary="Store measurements",
    status_code=201,
    openapi_extra=json_body("MeasuredRows", "JobTimes", choice="oneOf", examples=MEASUREMENTS),
    responses={
        201: json_answer("Stored; of a job, with its times next to the prediction of its plan.", MeasurementsSummary),
        200: json_answer("Equal measurements were stored before.", MeasurementsSummary),
        **error_responses("invalid-parameter", *KEY_ERRORS, *BODY_ERRORS, "unsupported"),
    },
)
async def store_measurements(
    request: Request, services: ServicesDep, idempotency_key: IdempotencyKey = None
) -> Response:
    """Check rows of a benchmark, or what a job saw, and keep them; their digest is what a fit names."""
    raw = await request.body()
    key = request_key(request, raw, idempotency_key)
    with services.keys.holding(key):
        record, is_new = await run_sync(lambda: _store(services, raw, key))
    summary = _summary(record)
    return json_response(summary, 201 if is_new else 200, {"Location": summary.measurements_url})


@router.get(
    "/measurements",
    summary="List measurements by digest",
    response_model=MeasurementsPage,
    responses=error_responses("invalid-parameter"),
)
async def list_measurements(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: batches."), WHOLE_NUMBER] = 50,
    page_token: Annotated[str | None, Query(pattern=DIGEST_PATTERN, description="From next_page_token.")] = None,
) -> Response:
    """List what models can be fitted to."""
    records = await run_sync(
        lambda: services.store.measurements_records(limit=page_size + 1, after=page_token, device=None)
    )
    page, token = page_of(records, page_size, lambda record: record.digest)
    document = MeasurementsPage(measurements=[_summary(record) for record in page], next_page_token=token)
    return json_response(document, headers=page_headers("/v1/measurements", page_size, token))


@router.get(
    "/measurements/{digest}",
    summary="Fetch measurements",
    responses={
        200: json_answer("The rows, and of a job its times.", MeasurementsDocument),
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def get_measurements(
    services: ServicesDep, digest: MeasurementsDigest, if_none_match: IfNoneMatch = ""
) -> Response:
    """Answer with the rows, which never change."""
    canonical = found(await run_sync(services.store.measurements, digest), "measurements")
    return etagged_response(if_none_match, canonical, etag=etag_of_digest(digest), cache_control=IMMUTABLE)


def _store(services: Services, raw: bytes, key: RequestKey | None) -> tuple[MeasurementsRecord, bool]:
    plan_digest = comparison = None
    if is_of_job(raw):
        job = parse_document(raw, JobTimes)
        plan_digest = job.plan_digest
        batch, compared = batch_of_job(job, *_inputs_and_plan(services, plan_digest))
        comparison = compared.model_dump(mode="json")
    else:
        batch = parse_rows(raw)
    record = MeasurementsRecord(
        digest=batch.digest,
        device=batch.device,
        num_rows=batch.rows.num_rows,
        source=batch.source,
        plan_digest=plan_digest,
        comparison=comparison,
        created_at=time.time(),
    )
    return services.store.add_measurements(record, canonical=batch.canonical, key=key)


def _inputs_and_plan(services: Services, plan_digest: str) -> tuple[SolveInputs, GivenPlan]:
    served = services.plans.get(plan_digest)
    plan = None if served is None else parse_plan(served.canonical)
    spec = None if plan is None else services.store.spec_of_problem(plan.stated_spec_digest or "")
    if plan is None or spec is None:
        issue = Issue(
            code="unknown-plan",
            pointer="/plan_digest",
            message="no plan of this digest is kept here",
            hint="send the times to the service that made the plan",
        )
        raise RejectedDocument([issue])
    return parse_stored_spec(spec, services.library), plan


def _summary(record: MeasurementsRecord) -> MeasurementsSummary:
    url = f"/v1/measurements/{record.digest}"
    return MeasurementsSummary.of(record, measurements_digest=record.digest, measurements_url=url)
