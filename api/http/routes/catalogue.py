"""Hardware profiles with the sources of their numbers."""

from fastapi import APIRouter, Response

from api.http.protocol.responses import json_response
from api.http.routes.documentation import error_responses
from api.schemas.catalogue import ProfileDocument, ProfileList, ProfileSummary
from api.services.errors import not_found
from cost_models.errors import UnknownProfile
from cost_models.hardware.profiles_loader import load_profile, profile_ids

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get(
    "/hardware-profiles",
    summary="List hardware profiles",
    response_model=ProfileList,
    responses=error_responses(),
)
def list_hardware_profiles() -> Response:
    """List the profiles that ``hardware.profile`` can name."""
    summaries = [ProfileSummary.of(load_profile(profile), id=profile) for profile in profile_ids()]
    return json_response(ProfileList(profiles=summaries))


@router.get(
    "/hardware-profiles/{profile_id}",
    summary="Look at a hardware profile",
    response_model=ProfileDocument,
    responses=error_responses("not-found"),
)
def get_hardware_profile(profile_id: str) -> Response:
    """Answer with every number, its unit, its evidence and who says so."""
    try:
        hardware = load_profile(profile_id)
    except UnknownProfile:
        raise not_found("hardware profile") from None
    return json_response(ProfileDocument.of(hardware, id=profile_id))
