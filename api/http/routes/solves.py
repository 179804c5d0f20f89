"""Ask for plans: submit, look, wait, cancel, validate."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response

from api.http.auth.middleware import require_priority_scope
from api.http.protocol.headers import page_headers
from api.http.protocol.idempotency import IdempotencyKey, request_key
from api.http.protocol.responses import json_response
from api.http.routes.documentation import BODY_ERRORS, KEY_ERRORS, error_responses, json_answer, json_body
from api.http.routes.examples import SPECS
from api.http.routes.submission import SubmissionDep, Tag, answer_submission, solve_answer, submission_responses
from api.http.services import ServicesDep
from api.schemas.number_text import NUMBER, WHOLE_NUMBER
from api.schemas.solve import SolveDocument, SolvePage, SolvePatch, StateName, ValidationDocument, solve_document
from api.services.plans.reports import validation_of
from api.specs.input.json import parse_document
from api.specs.parse import parse_spec
from api.specs.request import SolveRequest
from api.store.solves.records import ENDED, SolveRecord

router = APIRouter(prefix="/v1", tags=["solves"])

_SOLVE = json_answer("The solve.", SolveDocument)


@router.post(
    "/solves",
    summary="Ask for a plan",
    status_code=202,
    openapi_extra=json_body("SpecDocument", examples=SPECS),
    responses=submission_responses(),
)
async def submit_solve(services: ServicesDep, submission: SubmissionDep) -> Response:
    """Queue a spec. Equal specs get the same solve, so that asking twice is safe."""
    raw = await submission.request.body()
    return await answer_submission(services, submission, raw, lambda: parse_spec(raw, services.library))


@router.post(
    "/solves:from-patch",
    summary="Ask for a plan of a changed spec",
    status_code=202,
    openapi_extra=json_body("SolvePatch"),
    responses=submission_responses("not-found"),
)
async def submit_patch(services: ServicesDep, submission: SubmissionDep) -> Response:
    """Queue the spec of another solve with a JSON merge patch (RFC 7396); findings point into the patched spec.

    Priority, deadline and tags are those of this request.
    """
    raw = await submission.request.body()

    def read() -> SolveRequest:
        asked = parse_document(raw, SolvePatch)
        return parse_spec(services.solves.patched_spec(asked.solve, asked.patch), services.library)

    return await answer_submission(services, submission, raw, read)


@router.get(
    "/solves",
    summary="List solves, newest first",
    response_model=SolvePage,
    responses=error_responses("invalid-parameter"),
)
async def list_solves(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: solves."), WHOLE_NUMBER] = 50,
    page_token: Annotated[str | None, Query(pattern="^[0-9a-f]{1,64}$", description="From next_page_token.")] = None,
    state: Annotated[StateName | None, Query(description="Only solves in this state.")] = None,
    tag: Annotated[Tag | None, Query(description="Only solves with this tag.")] = None,
) -> Response:
    """List solves without their assumptions and warnings."""
    records, token = await run_sync(
        lambda: services.solves.page(limit=page_size, before=page_token, state=state, tag=tag)
    )
    page = SolvePage(solves=[solve_document(record) for record in records], next_page_token=token)
    chosen = "".join(f"&{name}={value}" for name, value in (("state", state), ("tag", tag)) if value is not None)
    return json_response(page, headers=page_headers("/v1/solves", page_size, token, chosen))


@router.get(
    "/solves/{solve_id}",
    summary="Look at a solve",
    responses={200: _SOLVE, **error_responses("not-found", "invalid-parameter")},
)
async def get_solve(
    services: ServicesDep,
    solve_id: str,
    wait: Annotated[
        float, Query(ge=0, le=600, description="Answer when it has ended, at most after this."), NUMBER
    ] = 0.0,
) -> Response:
    """Answer at once, or as soon as the solve has ended."""
    return solve_answer(await services.solves.wait(solve_id, wait))


@router.post(
    "/solves/{solve_id}:cancel",
    summary="Stop a solve",
    status_code=202,
    responses={
        202: json_answer("It will stop soon.", SolveDocument),
        200: json_answer("It has ended.", SolveDocument),
        **error_responses("not-found"),
    },
)
async def cancel_solve(services: ServicesDep, solve_id: str) -> Response:
    """Stop a solve; the best plan that it has found is kept. Doing it twice is harmless."""
    record = await run_sync(services.solves.cancel, solve_id)
    return solve_answer(record, status=200 if record.state in ENDED else 202)


@router.post(
    "/solves/{solve_id}:retry",
    summary="Try a failed or cancelled solve again",
    status_code=202,
    responses={
        202: json_answer("A new solve of the same spec: look at Location.", SolveDocument),
        200: json_answer("That of the same key, which has ended.", SolveDocument),
        **error_responses("invalid-parameter", "not-found", "solve-state", *KEY_ERRORS, "queue-full"),
    },
)
async def retry_solve(
    request: Request, services: ServicesDep, solve_id: str, idempotency_key: IdempotencyKey = None
) -> Response:
    """Queue a new solve of the same spec, with the same priority and tags, and without the deadline."""
    key = request_key(request, b"", idempotency_key)

    def retry() -> SolveRecord:
        made = services.solves.made_by(key)
        if made is not None:
            return made
        require_priority_scope(request, services.solves.get(solve_id).priority)
        return services.solves.retry(solve_id, key=key)

    with services.keys.holding(key):
        record = await run_sync(retry)
    headers = {"Location": f"/v1/solves/{record.id}"}
    return solve_answer(record, headers, status=200 if record.state in ENDED else 202)


@router.delete(
    "/solves/{solve_id}",
    summary="Delete a solve that has ended",
    status_code=204,
    responses={204: {"description": "It is gone; its plan stays."}, **error_responses("not-found", "solve-state")},
)
async def delete_solve(services: ServicesDep, solve_id: str) -> Response:
    """Delete a solve with its events, tags and keys. A plan that it published stays, with the spec that explains it."""
    await run_sync(services.solves.delete, solve_id)
    return Response(status_code=204)


@router.post(
    "/specs:validate",
    summary="Check a spec without solving it",
    openapi_extra=json_body("SpecDocument", examples=SPECS),
    responses={
        200: json_answer("The spec may be solved.", ValidationDocument),
        **error_responses(*BODY_ERRORS),
    },
)
async def validate_spec(request: Request, services: ServicesDep) -> Response:
    """Answer with warnings, assumptions and totals, or with the problem that a submission would get."""
    raw = await request.body()
    validation = await services.compute(lambda: validation_of(parse_spec(raw, services.library)))
    return json_response(validation)
