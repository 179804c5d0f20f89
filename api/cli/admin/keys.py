"""``keys``: who may use a service that asks for keys; works on its database, also while a server runs."""

import re
from typing import Annotated

import typer

from api.cli.admin.access_text import created_key_text, keys_text
from api.cli.admin.create_options import choices, named_request
from api.cli.admin.database import (
    DataDir,
    check_tenant,
    named,
    opened,
    settings_of_database,
    settings_of_service,
)
from api.cli.errors import BadInput, echo
from api.cli.files import AsJson, print_content
from api.http.auth.keys.service import ApiKeyService
from api.http.auth.scopes import SCOPES
from api.schemas.access import CreatedKey, KeyDocument, KeyList, KeyRequest
from api.store.access.audit import LOCAL
from api.store.tenants import DEFAULT_TENANT

app = typer.Typer(
    help="Make, list and revoke the keys that a service with SHARDPLAN_AUTH=keys asks for.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_UNITS = {"m": 60, "h": 3600, "d": 86_400}
_LONGEST_DAYS = 3660


@app.command("create")
def create_command(
    name: Annotated[str, typer.Option(metavar="NAME", help="Whose key it is, or what for.")],
    scope: Annotated[
        list[str], typer.Option(metavar="SCOPE", help="read, solve, promote, admin: several with commas, or repeated.")
    ],
    expires: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it is valid, such as 90d, 12h or 30m; else for good.")
    ] = None,
    tenant: Annotated[
        str, typer.Option(metavar="TENANT", help="The only tenant whose plans the key reaches.")
    ] = DEFAULT_TENANT,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and write it to stdout, this once."""
    scopes = choices(scope, SCOPES, "scope")
    request = named_request(KeyRequest, name=name, scopes=scopes, expires_in_seconds=_seconds(expires))
    check_tenant(tenant)
    settings = settings_of_database(data_dir)
    is_new = settings.database_url is None and not settings.database.exists()
    with opened(settings) as database:
        keys = ApiKeyService(database.for_tenant(tenant))
        record, text = keys.create(
            request.name, request.scopes, expires_in_seconds=request.expires_in_seconds, by=LOCAL
        )
    document = CreatedKey.of(record, key=text)
    if not print_content(document.model_dump_json().encode(), as_json=as_json):
        echo(created_key_text(document))
    if is_new:
        echo(f"shardplan: {named(settings)} was not there and is made: start the server with this folder")
    echo("shardplan: keep the key safe: it is not stored, and cannot be shown again")


@app.command("list")
def list_command(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the keys of all tenants without their secrets, those that have ended among them."""
    with opened(settings_of_service(data_dir)) as database:
        document = KeyList(keys=[KeyDocument.of(record) for record in database.all_api_keys()])
    if not print_content(document.model_dump_json().encode(), as_json=as_json):
        echo(keys_text(document.keys))


@app.command("revoke")
def revoke_command(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key, as the list has it.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key for good; servers refuse it within 5 seconds."""
    with opened(settings_of_service(data_dir)) as database:
        known = database.api_key(key_id)
        if known is None:
            raise BadInput("there is no key of this id; `shardplan keys list` has the ids")
        record = ApiKeyService(database.for_tenant(known.tenant)).revoke(key_id, by=LOCAL)
    if not print_content(KeyDocument.of(record).model_dump_json().encode(), as_json=as_json):
        echo(f"shardplan: the key {record.id} ({record.name}) is revoked for good")


def _seconds(text: str | None) -> int | None:
    if text is None:
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,8})([mhd])", text)
    seconds = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < seconds <= _LONGEST_DAYS * _UNITS["d"]:
        raise BadInput(f"--expires takes a number and m, h or d, at most {_LONGEST_DAYS}d, not {text[:40]!r}")
    return seconds
