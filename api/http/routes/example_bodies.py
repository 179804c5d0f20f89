"""Examples: bodies that can be posted as they are."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from api.http.protocol.responses import REVALIDATE, etagged_response
from api.http.routes.documentation import HAS_IT, IfNoneMatch, error_responses
from api.http.routes.examples import EXAMPLES
from api.schemas.catalogue import ExampleList, ExampleSummary
from api.services.errors import found
from planner.domain.formats.canonical_json import canonical_bytes

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get(
    "/examples",
    summary="List examples of requests",
    response_model=ExampleList,
    responses={304: HAS_IT, **error_responses()},
)
async def list_examples(if_none_match: IfNoneMatch = "") -> Response:
    """List bodies that can be posted as they are, in an order in which they can be sent."""
    summaries = [ExampleSummary.of(example, method="POST", url=f"/v1/examples/{example.id}") for example in EXAMPLES]
    return etagged_response(if_none_match, ExampleList(examples=summaries), cache_control=REVALIDATE)


@router.get(
    "/examples/{example_id}",
    summary="Fetch an example",
    responses={
        200: {"description": "The body itself.", "content": {"application/json": {}}},
        304: HAS_IT,
        **error_responses("not-found"),
    },
)
async def get_example(
    example_id: Annotated[str, Path(description="Id of the example.", examples=["three-tables"])],
    if_none_match: IfNoneMatch = "",
) -> Response:
    """Answer with the body, ready to be posted to the path that the list names."""
    example = found(next((one for one in EXAMPLES if one.id == example_id), None), "example")
    return etagged_response(if_none_match, canonical_bytes(example.body), cache_control=REVALIDATE)
