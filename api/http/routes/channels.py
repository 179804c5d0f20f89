"""Channels: named pointers to plans, which launchers read."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Header, Path, Query, Request, Response

from api.http.auth.principal import actor_of
from api.http.protocol.headers import page_headers
from api.http.protocol.responses import REVALIDATE, etagged_response, json_response
from api.http.routes.documentation import BODY_ERRORS, HAS_IT, IfNoneMatch, error_responses, json_answer, json_body
from api.http.routes.plans import PLAN_OR_SLICE, FormOfPlan, RankOfPlan, answer_plan
from api.http.services import ServicesDep
from api.schemas.channel import (
    ChannelDocument,
    ChannelHistory,
    ChannelPage,
    ChannelRollback,
    ChannelUpdate,
    ChannelVersion,
)
from api.schemas.number_text import WHOLE_NUMBER
from api.services.plans.channels import etag_of, plan_for
from api.specs.input.json import parse_document
from api.store.plans.channels import ChannelRecord

router = APIRouter(prefix="/v1", tags=["channels"])

IfMatch = Annotated[str | None, Header(description="ETag of the version that is replaced; a list of them, or *.")]
ChannelName = Annotated[str, Path(description="Up to 8 segments, such as ads/ranker/prod.", examples=["ads/prod"])]


@router.get(
    "/channels",
    summary="List channels by name",
    response_model=ChannelPage,
    responses=error_responses("invalid-parameter"),
)
async def list_channels(
    services: ServicesDep,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: channels."), WHOLE_NUMBER] = 50,
    page_token: Annotated[
        str | None, Query(pattern="^[a-z0-9._/-]{1,600}$", description="From next_page_token.")
    ] = None,
) -> Response:
    """List what launchers may follow, and where it points."""
    records, token = await run_sync(lambda: services.channels.page(limit=page_size, after=page_token))
    page = ChannelPage(channels=[ChannelDocument.of(record) for record in records], next_page_token=token)
    return json_response(page, headers=page_headers("/v1/channels", page_size, token))


@router.get(
    "/channels/{name:path}/plan",
    summary="Fetch the plan of a channel",
    responses={
        200: PLAN_OR_SLICE,
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter", "no-such-rank", "no-such-world-size"),
    },
)
async def get_channel_plan(
    request: Request,
    services: ServicesDep,
    name: ChannelName,
    rank: RankOfPlan = None,
    form: FormOfPlan = None,
    world_size: Annotated[
        int | None,
        Query(ge=1, lt=10**7, description="Ranks of the job: its plan, of a channel with plans for several sizes."),
        WHOLE_NUMBER,
    ] = None,
    if_none_match: IfNoneMatch = "",
) -> Response:
    """Answer with the plan that the channel points at now: what a launcher reads before its job starts."""
    channel = services.channels.peek(name)
    if channel is None:
        channel = await run_sync(services.channels.get, name)
    digest = plan_for(channel, world_size)
    return await answer_plan(
        request, services, digest, rank, form, if_none_match=if_none_match, cache_control=REVALIDATE
    )


@router.get(
    "/channels/{name:path}/history",
    summary="Look at the versions of a channel",
    responses={
        200: json_answer("A page, newest first.", ChannelHistory),
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def get_channel_history(
    services: ServicesDep,
    name: ChannelName,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: versions."), WHOLE_NUMBER] = 50,
    page_token: Annotated[int | None, Query(ge=1, lt=2**31, description="From next_page_token."), WHOLE_NUMBER] = None,
    if_none_match: IfNoneMatch = "",
) -> Response:
    """List what the channel pointed at, and since when."""
    records, token = await run_sync(lambda: services.channels.history(name, limit=page_size, before=page_token))
    next_token = None if token is None else str(token)
    document = ChannelHistory(versions=[ChannelVersion.of(record) for record in records], next_page_token=next_token)
    headers = page_headers(f"/v1/channels/{name}/history", page_size, next_token)
    return etagged_response(if_none_match, document, cache_control=REVALIDATE, headers=headers)


@router.post(
    "/channels/{name:path}:rollback",
    summary="Point a channel at an earlier plan again",
    openapi_extra=json_body("ChannelRollback", required=False),
    responses={
        200: json_answer("A new version, which points at the earlier plan.", ChannelDocument),
        **error_responses(
            "not-found",
            "invalid-parameter",
            "channel-changed",
            *BODY_ERRORS,
            "no-such-version",
            "precondition-required",
        ),
    },
)
async def rollback_channel(
    request: Request,
    services: ServicesDep,
    name: ChannelName,
    if_match: IfMatch = None,
) -> Response:
    """Make a new version of an earlier one's plan: rollbacks go back through what was promoted."""
    rollback = parse_document(await request.body() or b"{}", ChannelRollback)
    by = actor_of(request)
    channel = await run_sync(lambda: services.channels.rollback(name, rollback.version, if_match=if_match, by=by))
    return _answer(channel)


@router.get(
    "/channels/{name:path}",
    summary="Look at a channel",
    responses={
        200: json_answer("The channel; its ETag is what If-Match takes.", ChannelDocument),
        304: HAS_IT,
        **error_responses("not-found", "invalid-parameter"),
    },
)
async def get_channel(services: ServicesDep, name: ChannelName, if_none_match: IfNoneMatch = "") -> Response:
    """Answer with the digest and version that the channel is at."""
    return _answer(await run_sync(services.channels.get, name), if_none_match)


@router.put(
    "/channels/{name:path}",
    summary="Point a channel at a plan",
    openapi_extra=json_body("ChannelUpdate"),
    responses={
        200: json_answer("Changed.", ChannelDocument),
        201: json_answer("Created.", ChannelDocument),
        **error_responses("not-found", "invalid-parameter", "channel-changed", *BODY_ERRORS, "precondition-required"),
    },
)
async def put_channel(
    request: Request,
    services: ServicesDep,
    name: ChannelName,
    if_match: IfMatch = None,
    if_none_match: Annotated[
        str | None, Header(description="* to create only; or ETags that it must not have.")
    ] = None,
) -> Response:
    """Create a channel, or move one from the version that the caller has seen; changes never get lost."""
    update, by = parse_document(await request.body(), ChannelUpdate), actor_of(request)
    members = {int(world_size): digest for world_size, digest in update.plan_digests.items()}
    channel = await run_sync(
        lambda: services.channels.put(
            name, update.plan_digest, members=members, if_match=if_match, if_none_match=if_none_match, by=by
        )
    )
    return _answer(channel, status=201 if channel.version == 1 else 200)


def _answer(channel: ChannelRecord, if_none_match: str = "", *, status: int = 200) -> Response:
    document = ChannelDocument.of(channel)
    return etagged_response(if_none_match, document, etag=etag_of(channel), cache_control=REVALIDATE, status=status)
