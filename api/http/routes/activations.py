"""Which learned cost model is active for a hardware profile."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Request, Response

from api.http.auth.principal import actor_of
from api.http.protocol.responses import REVALIDATE, etagged_response
from api.http.routes.documentation import BODY_ERRORS, HAS_IT, IfNoneMatch, error_responses, json_answer, json_body
from api.http.services import Services, ServicesDep
from api.schemas.cost_models import ActivationDocument, ActivationUpdate, ActivationVersion
from api.services.cost_models.activations import etag_of
from api.specs.input.json import parse_document
from api.store.models.activations import ActivationRecord

router = APIRouter(prefix="/v1", tags=["cost models"])

_MAX_HISTORY = 100

ProfileId = Annotated[str, Path(description="Hardware profile.", examples=["dgx-h100-80g"])]


@router.get(
    "/hardware-profiles/{profile_id}/cost-model",
    summary="Look at the active cost model of a hardware profile",
    responses={
        200: json_answer("It; its ETag is what If-Match takes.", ActivationDocument),
        304: HAS_IT,
        **error_responses("not-found"),
    },
)
async def get_active_cost_model(
    services: ServicesDep, profile_id: ProfileId, if_none_match: IfNoneMatch = ""
) -> Response:
    """Answer with the model that the cost model ``learned`` of a spec means, and what it meant before."""
    active = await run_sync(services.activations.get, profile_id)
    return await run_sync(lambda: _answer(services, active, if_none_match))


@router.put(
    "/hardware-profiles/{profile_id}/cost-model",
    summary="Activate a cost model for a hardware profile",
    openapi_extra=json_body("ActivationUpdate"),
    responses={
        200: json_answer("Changed.", ActivationDocument),
        201: json_answer("The first of this profile.", ActivationDocument),
        **error_responses(
            "not-found", "invalid-parameter", "activation-changed", *BODY_ERRORS, "precondition-required"
        ),
    },
)
async def activate_cost_model(
    request: Request,
    services: ServicesDep,
    profile_id: ProfileId,
    if_match: Annotated[
        str | None, Header(description="ETag of the activation that is replaced; a list of them, or *.")
    ] = None,
    if_none_match: Annotated[
        str | None, Header(description="* where none may be active; or ETags that it must not have.")
    ] = None,
) -> Response:
    """Let ``learned`` mean another model from now on; solves that were asked for keep theirs."""
    update, by = parse_document(await request.body(), ActivationUpdate), actor_of(request)
    active = await run_sync(
        lambda: services.activations.put(
            profile_id, update.cost_model, if_match=if_match, if_none_match=if_none_match, by=by
        )
    )
    return await run_sync(lambda: _answer(services, active, status=201 if active.version == 1 else 200))


def _answer(services: Services, active: ActivationRecord, if_none_match: str = "", *, status: int = 200) -> Response:
    history = services.store.activation_history(active.profile)[-_MAX_HISTORY:]
    document = ActivationDocument.of(active, history=[ActivationVersion.of(record) for record in history])
    return etagged_response(if_none_match, document, etag=etag_of(active), cache_control=REVALIDATE, status=status)
