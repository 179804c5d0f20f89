"""Keys of callers: made, listed and revoked by those who may do everything."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Request, Response

from api.http.auth.principal import actor_of, caller_of
from api.http.protocol.responses import not_stored
from api.http.routes.documentation import BODY_ERRORS, error_responses, json_answer, json_body
from api.http.services import ServicesDep
from api.schemas.access import CreatedKey, KeyDocument, KeyList, KeyRequest
from api.services.errors import ApiError
from api.specs.input.json import parse_document

router = APIRouter(prefix="/v1", tags=["access"])


@router.get(
    "/keys",
    summary="List keys",
    response_model=KeyList,
    responses=error_responses(),
)
async def list_keys(services: ServicesDep) -> Response:
    """List keys without their secrets, those that have ended among them."""
    records = await run_sync(services.store.api_keys)
    return not_stored(KeyList(keys=[KeyDocument.of(record) for record in records]))


@router.post(
    "/keys",
    summary="Make a key",
    status_code=201,
    openapi_extra=json_body("KeyRequest"),
    responses={
        201: json_answer("The key, which is shown this once.", CreatedKey),
        **error_responses("forbidden", *BODY_ERRORS),
    },
)
async def create_key(request: Request, services: ServicesDep) -> Response:
    """Make a key with some scopes, for some time or until it is revoked."""
    _require_authentication(request)
    key, by = parse_document(await request.body(), KeyRequest), actor_of(request)
    record, text = await run_sync(
        lambda: services.api_keys.create(key.name, key.scopes, expires_in_seconds=key.expires_in_seconds, by=by)
    )
    return not_stored(CreatedKey.of(record, key=text), 201)


@router.delete(
    "/keys/{key_id}",
    summary="Revoke a key",
    status_code=204,
    responses={204: {"description": "It is refused from now on."}, **error_responses("forbidden", "not-found")},
)
async def revoke_key(
    request: Request, services: ServicesDep, key_id: Annotated[str, Path(description="Id of the key.")]
) -> Response:
    """Revoke a key for good; it stays in the list. Doing it twice is harmless."""
    _require_authentication(request)
    by = actor_of(request)
    await run_sync(lambda: services.api_keys.revoke(key_id, by=by))
    return Response(status_code=204)


def _require_authentication(request: Request) -> None:
    """Keep those who need no key from making one that is valid when keys are asked for."""
    if caller_of(request.scope) is None:
        detail = "this server requires no key (SHARDPLAN_AUTH=none); use shardplan keys on its machine"
        raise ApiError("forbidden", detail)
