"""Cost models: listed, fitted to measurements, uploaded and compared."""

import json
from typing import Annotated
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request, Response

from api.http.protocol.headers import page_headers, preferred_wait
from api.http.protocol.idempotency import IdempotencyKey, request_key
from api.http.protocol.responses import (
    IMMUTABLE,
    REVALIDATE,
    etag_of_digest,
    etagged_response,
    json_response,
    not_stored,
)
from api.http.routes.documentation import (
    BODY_ERRORS,
    HAS_IT,
    KEY_ERRORS,
    IfNoneMatch,
    error_responses,
    json_answer,
    json_body,
)
from api.http.routes.examples import COST_MODELS
from api.http.services import ServicesDep
from api.schemas.base import DIGEST_PATTERN, MODEL_ID
from api.schemas.cost_models import ComparedModel, CostModelDocument, CostModelList, ModelComparison
from api.schemas.number_text import NUMBER, WHOLE_NUMBER
from api.services.cost_models.report.html import PAGE_POLICY, report_page
from api.services.cost_models.service import fitted_to
from api.specs.references.cost_model import LEARNED
from api.store.models.models import FITTING, ModelRecord
from api.store.models.models import model_id as id_of
from cost_models.registry import cost_model_names, make_cost_model
from cost_models.vocabulary import STEP_PHASES

router = APIRouter(prefix="/v1", tags=["cost models"])

_RETRY_AFTER_SECONDS = "5"

ModelId = Annotated[str, Path(description="NAME@VERSION of a learned model.", examples=["h100-prod@3"])]


@router.get(
    "/cost-models",
    summary="List cost models",
    response_model=CostModelList,
    responses=error_responses("invalid-parameter"),
)
async def list_cost_models(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: versions of learned models."), WHOLE_NUMBER] = 50,
    page_token: Annotated[str | None, Query(pattern=f"^{MODEL_ID}$", description="From next_page_token.")] = None,
) -> Response:
    """List the analytic models, and the versions of learned ones."""
    records, token = await run_sync(lambda: services.models.page(limit=page_size, after=page_token))
    analytic = [] if page_token is not None else [_analytic(name) for name in cost_model_names()]
    learned = [_learned(record) for record in records]
    document = CostModelList(cost_models=[*analytic, *learned], next_page_token=token)
    return json_response(document, headers=page_headers("/v1/cost-models", page_size, token))


@router.post(
    "/cost-models",
    summary="Fit a cost model, or store a fitted one",
    status_code=202,
    openapi_extra=json_body("CostModelRequest", examples=COST_MODELS),
    responses={
        202: json_answer("It is being fitted: look at Location, or again after Retry-After.", CostModelDocument),
        201: json_answer("The document was stored.", CostModelDocument),
        200: json_answer(
            "The fit has ended in the time of Prefer: wait=N; or an equal document was stored before.",
            CostModelDocument,
        ),
        **error_responses("invalid-parameter", *KEY_ERRORS, *BODY_ERRORS, "queue-full"),
    },
)
async def add_cost_model(
    request: Request,
    services: ServicesDep,
    prefer: Annotated[str, Header(description="wait=N: answer when it has ended, at most N <= 60 s.")] = "",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Fit a model in the background, as the next version of its name; or keep one that was fitted elsewhere."""
    raw = await request.body()
    key = request_key(request, raw, idempotency_key)
    with services.keys.holding(key):
        record, is_new = await run_sync(lambda: services.models.add(raw, key))
    name = id_of(record)
    headers = {"Location": f"/v1/cost-models/{name}"}
    if record.state != FITTING:
        return _answer(record, headers, status=201 if is_new else 200)
    seconds = preferred_wait(prefer, services.settings.max_wait_seconds)
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds:.0f}"
        record = await services.models.wait(name, seconds)
    return _answer(record, headers, status=202 if record.state == FITTING else 200)


@router.get(
    "/cost-models/{model_id}",
    summary="Look at a cost model",
    responses={
        200: json_answer("The cost model.", CostModelDocument),
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def get_cost_model(
    services: ServicesDep,
    model_id: Annotated[str, Path(description="A name of an analytic model, or NAME@VERSION of a learned one.")],
    wait: Annotated[
        float, Query(ge=0, le=600, description="Answer when its fit ended, at most after this."), NUMBER
    ] = 0.0,
) -> Response:
    """Answer at once, or as soon as the fit has ended."""
    if model_id in cost_model_names():
        return not_stored(_analytic(model_id))
    return _answer(await services.models.wait(model_id, wait))


@router.post(
    "/cost-models/{model_id}:cancel",
    summary="Stop a fit",
    responses={200: json_answer("It has ended.", CostModelDocument), **error_responses("not-found")},
)
async def cancel_fit(services: ServicesDep, model_id: ModelId) -> Response:
    """Stop a fit, which has failed then. Doing it twice is harmless."""
    return _answer(await run_sync(services.models.cancel, model_id))


@router.get(
    "/cost-models/{model_id}/document",
    summary="Fetch the document of a learned model",
    responses={
        200: {"description": "What --cost-model-file takes.", "content": {"application/json": {}}},
        304: HAS_IT,
        **error_responses("not-found"),
    },
)
async def get_cost_model_document(
    services: ServicesDep, model_id: ModelId, if_none_match: IfNoneMatch = ""
) -> Response:
    """Answer with the bytes of the model, which never change."""
    digest, document = await run_sync(services.models.document, model_id)
    return etagged_response(if_none_match, document, etag=etag_of_digest(digest), cache_control=IMMUTABLE)


@router.get(
    "/cost-models/{model_id}/report",
    summary="Read the report of a learned model",
    responses={
        200: {"description": "A page that needs no network.", "content": {"text/html": {}}},
        **error_responses("not-found"),
    },
)
async def get_cost_model_report(services: ServicesDep, model_id: ModelId, request: Request) -> Response:
    """Answer with errors, coverage and ranges of a model, as a page."""
    _, document = await run_sync(services.models.document, model_id)
    # A browser that shows the page asks for HTML; what is saved as a file leads nowhere.
    is_shown = "text/html" in request.headers.get("accept", "")
    home = f"/ui/cost-models/{quote(model_id, safe='@')}" if is_shown else None
    page = await services.compute(lambda: report_page(json.loads(document), home=home))
    headers = {
        "Content-Security-Policy": PAGE_POLICY,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": REVALIDATE,
        "Vary": "Accept",
    }
    return Response(page, media_type="text/html; charset=utf-8", headers=headers)


@router.get(
    "/cost-models/{model_id}/compare/{other_id}",
    summary="Compare two learned models",
    responses={
        200: json_answer("Both on the same rows.", ModelComparison),
        **error_responses("not-found", "invalid-parameter", "invalid-problem"),
    },
)
async def compare_cost_models(
    services: ServicesDep,
    model_id: ModelId,
    other_id: ModelId,
    measurements: Annotated[
        list[Annotated[str, Query(pattern=DIGEST_PATTERN)]] | None,
        Query(max_length=100, description="Batches to judge them on; else all that either was fitted to."),
    ] = None,
) -> Response:
    """Put the figures of two models side by side; best on measurements that neither has seen."""
    batches, num_rows, compared = await services.compute(
        lambda: services.models.compare(model_id, other_id, measurements)
    )
    digests = [batch.digest for batch in batches]
    document = ModelComparison(
        measurements=digests,
        num_rows=num_rows,
        models=[
            ComparedModel(
                id=id_of(record),
                figures=figures,
                was_fitted_to=[digest for digest in digests if digest in fitted_to(record)],
            )
            for record, figures in compared
        ],
    )
    return not_stored(document)


def _answer(record: ModelRecord, headers: dict[str, str] | None = None, *, status: int = 200) -> Response:
    waiting = {"Retry-After": _RETRY_AFTER_SECONDS} if record.state == FITTING else {}
    return not_stored(_learned(record), status, {**waiting, **(headers or {})})


def _analytic(name: str) -> CostModelDocument:
    model = make_cost_model(name)
    return CostModelDocument(
        id=name,
        kind="analytic",
        name=name,
        version=model.version,
        reference=name,
        counted_phases=[phase.label for phase in STEP_PHASES if model.counted_phases[phase]],
        state="ready",
    )


def _learned(record: ModelRecord) -> CostModelDocument:
    name, is_ready = id_of(record), record.digest is not None
    request = record.request or {}
    seed = request.get("seed")
    return CostModelDocument.of(
        record,
        id=name,
        kind="learned",
        version=str(record.version),
        reference=f"{LEARNED}:{name}",
        counted_phases=[phase.label for phase in STEP_PHASES],
        document_url=f"/v1/cost-models/{name}/document" if is_ready else None,
        report_url=f"/v1/cost-models/{name}/report" if is_ready else None,
        device=record.device or None,
        measurements=fitted_to(record) or None,
        seed=seed if isinstance(seed, int) else None,
    )
