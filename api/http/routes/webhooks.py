"""Webhooks: addresses that are notified when solves end and channels change."""

from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Path, Query, Request, Response

from api.http.auth.principal import actor_of
from api.http.protocol.headers import page_headers
from api.http.protocol.responses import json_response, not_stored
from api.http.routes.documentation import BODY_ERRORS, error_responses, json_answer, json_body
from api.http.services import ServicesDep
from api.schemas.number_text import WHOLE_NUMBER
from api.schemas.webhooks import (
    CreatedWebhook,
    DeliveryDocument,
    DeliveryPage,
    WebhookDocument,
    WebhookList,
    WebhookRequest,
)
from api.services.webhooks.signature import secret_text
from api.specs.input.json import parse_document

router = APIRouter(prefix="/v1", tags=["webhooks"])

_EXAMPLE = {
    "name": "pager of the ads team",
    "url": "https://hooks.example.com/shardplan",
    "events": ["solve.failed", "channel.promoted"],
}

WebhookId = Annotated[str, Path(description="Id of the webhook.", examples=["wh_0a1b2c3d4e5f"])]
DeliveryId = Annotated[str, Path(description="Id of the delivery.", examples=["msg_019aa1b2c3d4"])]


@router.get(
    "/webhooks",
    summary="List webhooks",
    response_model=WebhookList,
    responses=error_responses(),
)
async def list_webhooks(services: ServicesDep) -> Response:
    """List all webhooks without their secrets, disabled ones among them."""
    records = await run_sync(services.webhooks.all)
    return not_stored(WebhookList(webhooks=[WebhookDocument.of(record) for record in records]))


@router.post(
    "/webhooks",
    summary="Add a webhook",
    status_code=201,
    openapi_extra=json_body("WebhookRequest", examples={"some events": _EXAMPLE}),
    responses={
        201: json_answer("The webhook, with its secret, which is shown this once.", CreatedWebhook),
        **error_responses("too-many-webhooks", *BODY_ERRORS, "webhook-refused"),
    },
)
async def create_webhook(request: Request, services: ServicesDep) -> Response:
    """Send events to an address, in messages that are signed with the secret of the answer."""
    webhook, by = parse_document(await request.body(), WebhookRequest), actor_of(request)
    record = await run_sync(lambda: services.webhooks.create(webhook.url, webhook.events, webhook.name, by=by))
    return not_stored(CreatedWebhook.of(record, secret=secret_text(record.secret)), 201)


@router.get(
    "/webhooks/{webhook_id}",
    summary="Look at a webhook",
    responses={200: json_answer("The webhook without its secret.", WebhookDocument), **error_responses("not-found")},
)
async def get_webhook(services: ServicesDep, webhook_id: WebhookId) -> Response:
    """Answer with the webhook, and whether it is active."""
    return not_stored(WebhookDocument.of(await run_sync(services.webhooks.get, webhook_id)))


@router.delete(
    "/webhooks/{webhook_id}",
    summary="Delete a webhook",
    status_code=204,
    responses={204: {"description": "Nothing more is sent to it."}, **error_responses("not-found")},
)
async def delete_webhook(request: Request, services: ServicesDep, webhook_id: WebhookId) -> Response:
    """Delete a webhook with its deliveries; a message that is under way may still arrive."""
    by = actor_of(request)
    await run_sync(lambda: services.webhooks.delete(webhook_id, by=by))
    return Response(status_code=204)


@router.post(
    "/webhooks/{webhook_id}:enable",
    summary="Enable a webhook again",
    responses={200: json_answer("The webhook, active.", WebhookDocument), **error_responses("not-found")},
)
async def enable_webhook(request: Request, services: ServicesDep, webhook_id: WebhookId) -> Response:
    """Enable a disabled webhook: what waits is sent at once, and what happens from now on."""
    by = actor_of(request)
    record = await run_sync(lambda: services.webhooks.enable(webhook_id, by=by))
    return not_stored(WebhookDocument.of(record))


@router.get(
    "/webhooks/{webhook_id}/deliveries",
    summary="Look at the deliveries of a webhook",
    response_model=DeliveryPage,
    responses=error_responses("not-found", "invalid-parameter"),
)
async def list_deliveries(
    services: ServicesDep,
    webhook_id: WebhookId,
    page_size: Annotated[int, Query(ge=1, le=500, description="Unit: deliveries."), WHOLE_NUMBER] = 50,
    page_token: Annotated[
        str | None, Query(pattern="^msg_[0-9a-f]{1,60}$", description="From next_page_token.")
    ] = None,
) -> Response:
    """List the last messages, newest first: which arrived, which wait, and why the last attempt failed."""
    found, token = await run_sync(lambda: services.webhooks.deliveries(webhook_id, limit=page_size, before=page_token))
    page = DeliveryPage(deliveries=[DeliveryDocument.of(record) for record in found], next_page_token=token)
    return json_response(page, headers=page_headers(f"/v1/webhooks/{webhook_id}/deliveries", page_size, token))


@router.post(
    "/webhooks/{webhook_id}/deliveries/{delivery_id}:resend",
    summary="Send a message again",
    status_code=202,
    responses={202: json_answer("The delivery, which waits.", DeliveryDocument), **error_responses("not-found")},
)
async def resend_delivery(services: ServicesDep, webhook_id: WebhookId, delivery_id: DeliveryId) -> Response:
    """Attempt a delivery that has ended again, under the same webhook-id; one that waits is left as it is."""
    record = await run_sync(services.webhooks.resend, webhook_id, delivery_id)
    return not_stored(DeliveryDocument.of(record), 202)
