"""``serve``: the HTTP service."""

from typing import Annotated

import typer

from api.cli.errors import BadInput, echo
from api.cli.service.run_server import serve
from api.cli.service.settings import settings_of
from api.http.auth.loopback import is_loopback

_OPEN_ADDRESS = (
    "not listening on {host}, where all who reach it could do everything: make a key with"
    " `shardplan keys create --name me --scope admin` and set SHARDPLAN_AUTH=keys; or, inside a trusted"
    " network, say --insecure"
)


def serve_command(
    host: Annotated[str | None, typer.Option(help="Address to listen on (SHARDPLAN_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (SHARDPLAN_PORT).")] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where plans and solves are kept (SHARDPLAN_DATA_DIR).")
    ] = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Let all who reach the address do everything (SHARDPLAN_INSECURE)."),
    ] = None,
) -> None:
    """Run the service: pages under /, REST under /v1, console under /docs. Settings come from SHARDPLAN_* variables."""
    settings = settings_of(host=host, port=port, data_dir=data_dir, insecure=insecure)
    if settings.auth == "none" and not is_loopback(settings.host):
        if not settings.insecure:
            raise BadInput(_OPEN_ADDRESS.format(host=settings.host))
        echo(f"shardplan: listening on {settings.host} without authentication; keep it inside a trusted network")
    serve(settings)
