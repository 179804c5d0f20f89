"""Who sends a request, and what that allows: what pages and programs need not offer."""

from fastapi import APIRouter, Request, Response

from api.http.auth.principal import Principal, actor_of, caller_of, tenant_of
from api.http.auth.scopes import SCOPES
from api.http.protocol.responses import not_stored
from api.http.routes.documentation import error_responses
from api.schemas.access import CallerDocument

router = APIRouter(prefix="/v1", tags=["access"])


@router.get("/caller", summary="See what you may do", response_model=CallerDocument, responses=error_responses())
async def get_caller(request: Request) -> Response:
    """Answer with the caller and its scopes: those of its key or token, or all on a server without authentication."""
    caller = caller_of(request.scope)
    scopes = [scope for scope in SCOPES if not isinstance(caller, Principal) or caller.may(scope)]
    return not_stored(CallerDocument(who=actor_of(request).who, tenant=tenant_of(request.scope), scopes=scopes))
