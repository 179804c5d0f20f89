"""``webhooks``: who gets events; works on the database of a service, also while a server runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from api.cli.admin.access_text import created_webhook_text, webhooks_text
from api.cli.admin.create_options import choices, named_request
from api.cli.admin.database import DataDir, check_tenant, opened, settings_of_service
from api.cli.errors import BadInput, echo
from api.cli.files import AsJson, print_content
from api.schemas.webhooks import CreatedWebhook, WebhookDocument, WebhookList, WebhookRequest
from api.services.errors import ApiError
from api.services.webhooks.service import WebhookService
from api.services.webhooks.signature import secret_text
from api.services.webhooks.targets import HostAllowList
from api.store.access.audit import LOCAL
from api.store.tenants import DEFAULT_TENANT
from api.store.webhooks.records import EVENTS

app = typer.Typer(
    help="Add, list, enable and delete the addresses that a service sends events to.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

OfTenant = Annotated[str, typer.Option("--tenant", metavar="NAME", help="Whose webhooks.")]
WebhookId = Annotated[str, typer.Argument(metavar="ID", help="Id of the webhook, as the list has it.")]


@app.command("create")
def create_command(
    url: Annotated[str, typer.Argument(metavar="URL", help="A host that SHARDPLAN_WEBHOOK_HOSTS lists.")],
    name: Annotated[str, typer.Option(metavar="NAME", help="Whose it is, or what for.")],
    event: Annotated[
        list[str] | None, typer.Option(metavar="EVENT", help="Such as solve.failed: several with commas; else all.")
    ] = None,
    tenant: OfTenant = DEFAULT_TENANT,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Add a webhook, and write it with its secret to stdout, this once."""
    request = named_request(WebhookRequest, name=name, url=url, events=choices(event or EVENTS, EVENTS, "event"))
    with _webhooks(tenant, data_dir) as webhooks:
        record = webhooks.create(request.url, request.events, request.name, by=LOCAL)
    document = CreatedWebhook.of(record, secret=secret_text(record.secret))
    is_written = print_content(document.model_dump_json().encode(), as_json=as_json)
    echo(created_webhook_text(document, with_secret=not is_written))


@app.command("list")
def list_command(tenant: OfTenant = DEFAULT_TENANT, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List webhooks without their secrets, disabled ones among them."""
    with _webhooks(tenant, data_dir) as webhooks:
        document = WebhookList(webhooks=[WebhookDocument.of(record) for record in webhooks.all()])
    if not print_content(document.model_dump_json().encode(), as_json=as_json):
        echo(webhooks_text(document.webhooks))


@app.command("enable")
def enable_command(
    webhook_id: WebhookId, tenant: OfTenant = DEFAULT_TENANT, data_dir: DataDir = None, as_json: AsJson = False
) -> None:
    """Enable a disabled webhook."""
    with _webhooks(tenant, data_dir) as webhooks:
        record = webhooks.enable(webhook_id, by=LOCAL)
    if not print_content(WebhookDocument.of(record).model_dump_json().encode(), as_json=as_json):
        echo(f"shardplan: {record.url} is enabled; what waits is sent at once")


@app.command("delete")
def delete_command(webhook_id: WebhookId, tenant: OfTenant = DEFAULT_TENANT, data_dir: DataDir = None) -> None:
    """Delete a webhook, and what waits for it."""
    with _webhooks(tenant, data_dir) as webhooks:
        webhooks.delete(webhook_id, by=LOCAL)
    echo(f"shardplan: the webhook {webhook_id} is deleted, and what waited for it")


@contextmanager
def _webhooks(tenant: str, data_dir: str | None) -> Iterator[WebhookService]:
    check_tenant(tenant)
    settings = settings_of_service(data_dir)
    try:
        with opened(settings) as database:
            yield WebhookService(database.for_tenant(tenant), HostAllowList(settings.webhook_hosts))
    except ApiError as error:
        raise BadInput(error.detail) from error
