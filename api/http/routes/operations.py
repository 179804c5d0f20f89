"""For operators and machines: health, version, and what problems mean."""

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from prometheus_client.exposition import choose_encoder

from api.http.protocol.responses import json_response
from api.http.routes.documentation import error_responses
from api.http.services import ServicesDep
from api.release import VERSION, versions
from api.schemas.catalogue import HealthDocument, ProblemKindDocument, VersionDocument
from api.schemas.error_kinds import ERROR_KINDS
from api.services.errors import ApiError, found

router = APIRouter(tags=["operations"])


@router.get("/livez", summary="Whether the process answers", response_model=HealthDocument)
async def livez() -> Response:
    """Answer, which is all there is to it."""
    return json_response(HealthDocument(status="ok"))


@router.get(
    "/readyz",
    summary="Whether requests can be served",
    response_model=HealthDocument,
    responses=error_responses("not-ready", "storage-unavailable"),
)
async def readyz(services: ServicesDep) -> Response:
    """Answer 200 when the database can be read and solvers and fits work."""
    await run_sync(services.store.ping)
    if not services.engine.is_running:
        raise ApiError("not-ready", "the queue hands out no work")
    return json_response(HealthDocument(status="ok"))


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    responses={200: {"description": "All metrics, as text.", "content": {"text/plain": {}}}, **error_responses()},
)
async def metrics(request: Request, services: ServicesDep) -> Response:
    """Answer with what was counted since the start, and with what stands now."""
    encode, media_type = choose_encoder(request.headers.get("accept", ""))
    body = await run_sync(encode, services.metrics)
    return Response(body, headers={"Content-Type": media_type, "Cache-Control": "no-store"})


@router.get("/version", summary="What runs here", response_model=VersionDocument)
async def version() -> Response:
    """Answer with the releases of the service and of what it is made of."""
    return json_response(VersionDocument(name="shardplan", version=VERSION, versions=versions()))


@router.get(
    "/problems/{code}",
    summary="What a problem means",
    response_model=ProblemKindDocument,
    responses=error_responses("not-found"),
)
async def get_problem(code: str) -> Response:
    """Explain the type of a problem document."""
    return json_response(ProblemKindDocument.of(found(ERROR_KINDS.get(code), "problem")))
