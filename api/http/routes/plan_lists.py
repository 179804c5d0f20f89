"""Plans listed, and compared with each other."""

import json
from typing import Annotated
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Response

from api.http.protocol.headers import page_headers
from api.http.protocol.responses import IMMUTABLE, REVALIDATE, etagged_response
from api.http.routes.documentation import HAS_IT, IfNoneMatch, error_responses, json_answer, reference
from api.http.routes.plans import PlanDigest, find_plan, inputs_of
from api.http.services import Services, ServicesDep
from api.schemas.base import DIGEST_PATTERN, MAX_NAME_LENGTH
from api.schemas.number_text import WHOLE_NUMBER
from api.schemas.plan_list import PlanDifferenceDocument, PlanObjective, PlanPage, PlanSummaryDocument
from api.services.errors import ApiError
from api.services.pages import page_of
from api.services.plans.resharding import reshard_bytes
from api.store.plans.plans import PlanSummary, UnknownPlan
from planner.output.explain.difference import difference

router = APIRouter(prefix="/v1", tags=["plans"])

RESHARD_OR_READS = {
    "description": "The map of all ranks, or what one rank reads.",
    "content": {"application/json": {"schema": reference("ReshardMapDocument", "RankReads", choice="oneOf")}},
}


@router.get(
    "/plans",
    summary="List plans, newest first",
    responses={
        200: json_answer("A page.", PlanPage),
        304: HAS_IT,
        **error_responses("invalid-parameter"),
    },
)
async def list_plans(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: plans."), WHOLE_NUMBER] = 50,
    page_token: Annotated[str | None, Query(pattern=DIGEST_PATTERN, description="From next_page_token.")] = None,
    name: Annotated[str | None, Query(max_length=MAX_NAME_LENGTH, description="Only plans of this name.")] = None,
    if_none_match: IfNoneMatch = "",
) -> Response:
    """List published plans without their tables."""
    summaries = await run_sync(lambda: _summaries(services, page_size + 1, page_token, name))
    page, token = page_of(summaries, page_size, lambda summary: summary.plan_digest)
    chosen = "" if name is None else f"&name={quote(name, safe='')}"
    headers = page_headers("/v1/plans", page_size, token, chosen)
    document = PlanPage(plans=[_document(summary) for summary in page], next_page_token=token)
    return etagged_response(if_none_match, document, cache_control=REVALIDATE, headers=headers)


@router.get(
    "/plans/{digest}/diff/{other}",
    summary="Compare a plan with another",
    responses={
        200: json_answer("What changed from the plan to the other.", PlanDifferenceDocument),
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def compare_plans(
    services: ServicesDep,
    digest: PlanDigest,
    other: Annotated[str, Path(pattern=DIGEST_PATTERN, description="Digest of the other plan.")],
    if_none_match: IfNoneMatch = "",
) -> Response:
    """Say what changed: tables, seconds, bytes. Neither plan ever changes, so this does not either."""
    body = await services.compute(lambda: _difference(services, digest, other))
    return etagged_response(if_none_match, body, cache_control=IMMUTABLE)


@router.get(
    "/plans/{digest}/reshard/{other}",
    summary="Map a checkpoint of a plan onto another",
    responses={
        200: RESHARD_OR_READS,
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter", "no-such-rank", "unsupported"),
    },
)
async def reshard_plan(
    services: ServicesDep,
    digest: PlanDigest,
    other: Annotated[str, Path(pattern=DIGEST_PATTERN, description="Digest of the plan that reads.")],
    rank: Annotated[
        int | None,
        Query(ge=-(2**31), lt=2**31, description="Only what this rank of the other plan reads, counted from 0."),
        WHOLE_NUMBER,
    ] = None,
    if_none_match: IfNoneMatch = "",
) -> Response:
    """Say which rank of the other plan reads which bytes of a checkpoint that was written under this one."""
    body = await services.compute(lambda: _resharded(services, digest, other, rank))
    return etagged_response(if_none_match, body, cache_control=IMMUTABLE)


def _resharded(services: Services, digest: str, other: str, rank: int | None) -> bytes:
    old, new = (find_plan(services, one).canonical for one in (digest, other))
    head = json.loads(new)
    inputs = inputs_of(services, head)
    body = reshard_bytes(old, new, None if inputs is None else inputs.problem, rank)
    if body is None:
        raise ApiError("no-such-rank", f"the ranks of this plan are 0 to {head['world_size'] - 1}")
    return body


def _summaries(services: Services, limit: int, before: str | None, name: str | None) -> list[PlanSummary]:
    try:
        return services.store.plan_summaries(limit=limit, before=before, name=name)
    except UnknownPlan:
        raise ApiError("invalid-parameter", "page_token is of no plan that is listed") from None


def _difference(services: Services, digest: str, other: str) -> bytes:
    first, second = (json.loads(find_plan(services, one).canonical) for one in (digest, other))
    return PlanDifferenceDocument.model_validate(difference(first, second).to_document()).model_dump_json().encode()


def _document(summary: PlanSummary) -> PlanSummaryDocument:
    objective = PlanObjective.of(summary, name=summary.objective_name, seconds=summary.objective_seconds)
    return PlanSummaryDocument.of(
        summary,
        job_world_size=summary.job_world_size or summary.world_size,
        objective=objective,
        url=f"/v1/plans/{summary.plan_digest}",
    )
