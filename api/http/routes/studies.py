"""Ask for studies: submit, look, points, front, cancel, delete."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request, Response

from api.http.protocol.headers import page_headers, preferred_wait
from api.http.protocol.idempotency import IdempotencyKey, request_key
from api.http.protocol.responses import json_response, not_stored
from api.http.routes.documentation import BODY_ERRORS, KEY_ERRORS, error_responses, json_answer, json_body
from api.http.routes.examples import SPECS
from api.http.services import ServicesDep
from api.schemas.number_text import NUMBER, WHOLE_NUMBER
from api.schemas.studies.answers import (
    FrontDocument,
    PointDocument,
    PointList,
    StudyDocument,
    StudyPage,
    point_document,
    study_document,
)
from api.store.solves.records import ENDED
from api.store.studies.studies import StudyRecord

router = APIRouter(prefix="/v1", tags=["studies"])

_RETRY_AFTER_SECONDS = "1"
_EXAMPLE = {
    "kind": "sweep",
    "name": "how many hosts",
    "spec": next(iter(SPECS.values())),
    "axes": [
        {"field": "hardware.num_hosts", "values": [1, 2]},
        {"field": "model.batch_size_per_rank", "values": [4096, 8192]},
    ],
    "front": ["samples_per_second", "num_hosts"],
}

StudyId = Annotated[str, Path(description="Id of the study.", examples=["019aa1b2c3d4e5f60718293a4b5c"])]


def _answer(record: StudyRecord, headers: dict[str, str] | None = None, *, status: int = 200) -> Response:
    waiting = {} if record.state in ENDED else {"Retry-After": _RETRY_AFTER_SECONDS}
    return not_stored(study_document(record), status, {**waiting, **(headers or {})})


@router.post(
    "/studies",
    summary="Ask for a study",
    status_code=202,
    openapi_extra=json_body(
        "SweepSpec",
        "SmallestFleetSpec",
        "JobsSpec",
        "PortfolioSpec",
        "ScenariosSpec",
        choice="oneOf",
        examples={"a sweep": _EXAMPLE},
    ),
    responses={
        202: json_answer("Accepted: look at Location, or again after Retry-After.", StudyDocument),
        200: json_answer("It has ended in the time of Prefer: wait=N.", StudyDocument),
        **error_responses("invalid-parameter", *KEY_ERRORS, *BODY_ERRORS, "queue-full"),
    },
)
async def submit_study(
    request: Request,
    services: ServicesDep,
    prefer: Annotated[str, Header(description="wait=N: answer when it has ended, at most N <= 60 s.")] = "",
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Queue a study. Each of its points becomes a solve with a plan of its own; equal solves are not run twice."""
    raw = await request.body()
    key = request_key(request, raw, idempotency_key)

    with services.keys.holding(key):
        record = await run_sync(services.studies.made_by, key)
        if record is None:
            record = await services.compute(lambda: services.studies.submit(raw, services.library, key=key))
    headers = {"Location": f"/v1/studies/{record.id}"}
    seconds = preferred_wait(prefer, services.settings.max_wait_seconds)
    if seconds is not None:
        headers["Preference-Applied"] = f"wait={seconds:.0f}"
        record = await services.studies.wait(record.id, seconds)
    return _answer(record, headers, status=200 if record.state in ENDED else 202)


@router.get(
    "/studies",
    summary="List studies, newest first",
    response_model=StudyPage,
    responses=error_responses("invalid-parameter"),
)
async def list_studies(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: studies."), WHOLE_NUMBER] = 50,
    page_token: Annotated[str | None, Query(pattern="^[0-9a-f]{1,64}$", description="From next_page_token.")] = None,
) -> Response:
    """List studies without their answers."""
    records, token = await run_sync(lambda: services.studies.page(limit=page_size, before=page_token))
    page = StudyPage(studies=[study_document(record) for record in records], next_page_token=token)
    return json_response(page, headers=page_headers("/v1/studies", page_size, token))


@router.get(
    "/studies/{study_id}",
    summary="Look at a study",
    responses={
        200: json_answer("The study.", StudyDocument),
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def get_study(
    services: ServicesDep,
    study_id: StudyId,
    wait: Annotated[
        float, Query(ge=0, le=600, description="Answer when it has ended, at most after this."), NUMBER
    ] = 0.0,
) -> Response:
    """Answer at once, or as soon as the study has ended."""
    return _answer(await services.studies.wait(study_id, wait))


@router.get(
    "/studies/{study_id}/points",
    summary="List the points of a study",
    responses={200: json_answer("The points.", PointList), **error_responses("not-found")},
)
async def list_points(services: ServicesDep, study_id: StudyId) -> Response:
    """List every point with its plan and what it is worth, also while the study runs."""
    points: list[PointDocument] = [point_document(point) for point in await run_sync(services.studies.points, study_id)]
    return not_stored(PointList(points=points))


@router.get(
    "/studies/{study_id}/front",
    summary="Look at the Pareto front of a study",
    responses={
        200: json_answer("The front of the points that have ended.", FrontDocument),
        **error_responses("not-found"),
    },
)
async def get_front(services: ServicesDep, study_id: StudyId) -> Response:
    """Answer with the front of the points so far, and which of them are proven."""
    front = await services.compute(lambda: services.studies.front(study_id, services.library))
    return not_stored(FrontDocument.model_validate(front))


@router.post(
    "/studies/{study_id}:cancel",
    summary="Stop a study",
    status_code=202,
    responses={
        202: json_answer("It will stop soon.", StudyDocument),
        200: json_answer("It has ended.", StudyDocument),
        **error_responses("not-found"),
    },
)
async def cancel_study(services: ServicesDep, study_id: StudyId) -> Response:
    """Stop a study and the solves that it submitted. Points that have plans keep them. Doing it twice is harmless."""
    record = await run_sync(services.studies.cancel, study_id)
    return _answer(record, status=200 if record.state in ENDED else 202)


@router.delete(
    "/studies/{study_id}",
    summary="Delete a study that has ended",
    status_code=204,
    responses={
        204: {"description": "It is gone; solves and plans of its points stay."},
        **error_responses("not-found", "study-state"),
    },
)
async def delete_study(services: ServicesDep, study_id: StudyId) -> Response:
    """Delete a study with its points. Their solves and plans stay."""
    await run_sync(services.studies.delete, study_id)
    return Response(status_code=204)
