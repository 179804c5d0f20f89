"""The timeline of a step of a plan."""

import json

from fastapi import APIRouter, Response

from api.http.protocol.responses import json_response
from api.http.routes.documentation import error_responses, json_answer
from api.http.routes.plans import PlanDigest, find_plan, inputs_of
from api.http.services import Services, ServicesDep
from api.schemas.timeline import TimelineDocument
from planner.options.runtimes.export import ExportFacts
from planner.output.exporters.registry import timeline_of
from planner.output.timeline.document import timeline_document

router = APIRouter(prefix="/v1", tags=["plans"])


@router.get(
    "/plans/{digest}/timeline",
    summary="Lay out a step of a plan",
    responses={
        200: json_answer("What every rank does in a step, and when.", TimelineDocument),
        **error_responses("not-found", "invalid-parameter", "invalid-problem"),
    },
)
async def get_timeline(services: ServicesDep, digest: PlanDigest) -> Response:
    """Place phases, waits, the dense part and copies where the plan's own seconds put them."""
    timeline = await services.compute(lambda: _timeline(services, digest))
    return json_response(timeline, headers={"X-Plan-Digest": digest})


def _timeline(services: Services, digest: str) -> TimelineDocument:
    document = json.loads(find_plan(services, digest).canonical)
    inputs = inputs_of(services, document)
    facts = ExportFacts() if inputs is None else ExportFacts(problem=inputs.problem, cost_model=inputs.cost_model)
    return TimelineDocument.model_validate(timeline_document(timeline_of(document, facts)))
