"""``serve``: the HTTP service."""

import ipaddress
import subprocess
import sys
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from api.cli.errors import BadInput, ServerTrouble, say
from api.settings import Settings


def serve_command(
    host: Annotated[str | None, typer.Option(help="Address to listen on (SHARDPLAN_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (SHARDPLAN_PORT).")] = None,
    data_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where plans and solves are kept (SHARDPLAN_DATA_DIR).")
    ] = None,
) -> None:
    """Run the service: REST under /v1, console under /docs. Settings come from SHARDPLAN_* variables."""
    from api.server import StartFailed, serve
    from planner.partitioners.warm import is_warm

    given: dict[str, Any] = {
        name: value for name, value in (("host", host), ("port", port), ("data_dir", data_dir)) if value is not None
    }
    try:
        settings = Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"setting {name}: {first['msg']}") from None
    if not _is_loopback(settings.host):
        say(f"shardplan: listening on {settings.host} without authentication; keep it inside a trusted network")
    if not is_warm():
        say("shardplan: compiling the search for this machine, once; plans of the next half minute wait for it")
        subprocess.Popen([sys.executable, "-m", "planner.partitioners.warm"])
    try:
        serve(settings)
    except StartFailed as error:
        raise ServerTrouble(str(error)) from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
