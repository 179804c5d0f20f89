"""Follow a solve: server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse

from api.http.routes.documentation import error_responses
from api.http.services import ServicesDep

router = APIRouter(prefix="/v1", tags=["solves"])

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_MEDIA_TYPE = "text/event-stream"


@router.get(
    "/solves/{solve_id}/events",
    summary="Follow a solve",
    responses={
        200: {
            "description": "Events state, progress (ProgressEvent, numbered) and at last end (SolveDocument).",
            "content": {_MEDIA_TYPE: {"schema": {"type": "string"}}},
        },
        **error_responses("not-found", "invalid-parameter", "too-many-listeners"),
    },
)
async def stream_solve_events(
    request: Request,
    services: ServicesDep,
    solve_id: str,
    last_event_id: Annotated[
        str | None, Header(pattern="^[0-9]{1,9}$", description="Number of the last event seen: go on after it.")
    ] = None,
) -> Response:
    """Stream what a solve finds while it runs; of one that has ended all that it found, and its end."""
    await services.streams.check(solve_id)
    if request.method == "HEAD":
        return Response(media_type=_MEDIA_TYPE, headers=_HEADERS)
    events = services.streams.stream(solve_id, after=int(last_event_id or 0))
    return StreamingResponse(events, media_type=_MEDIA_TYPE, headers=_HEADERS)
