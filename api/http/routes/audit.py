"""The audit trail: who changed what, and when."""

from typing import Annotated
from urllib.parse import quote

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Response

from api.http.protocol.headers import page_headers
from api.http.protocol.responses import json_response
from api.http.routes.documentation import error_responses
from api.http.services import ServicesDep
from api.schemas.access import AuditEntry, AuditPage
from api.schemas.number_text import WHOLE_NUMBER
from api.services.pages import page_of

router = APIRouter(prefix="/v1", tags=["access"])


@router.get(
    "/audit",
    summary="Look at the audit trail",
    response_model=AuditPage,
    responses=error_responses("invalid-parameter"),
)
async def list_audit(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: entries."), WHOLE_NUMBER] = 50,
    page_token: Annotated[int | None, Query(ge=1, lt=2**31, description="From next_page_token."), WHOLE_NUMBER] = None,
    subject: Annotated[
        str | None, Query(max_length=700, description="Only changes of this, such as channels/ads/ranker/prod.")
    ] = None,
) -> Response:
    """List promotions, rollbacks, activations and changes of keys and webhooks, newest first."""
    found = await run_sync(lambda: services.store.audit(limit=page_size + 1, before=page_token, subject=subject))
    page, token = page_of(found, page_size, lambda record: str(record.seq))
    document = AuditPage(entries=[AuditEntry.of(record) for record in page], next_page_token=token)
    chosen = "" if subject is None else f"&subject={quote(subject, safe='')}"
    return json_response(document, headers=page_headers("/v1/audit", page_size, token, chosen))
