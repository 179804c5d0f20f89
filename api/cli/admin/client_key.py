"""Where a service is, and the key that commands show to it."""

from typing import Annotated

import typer

from api.cli.errors import BadInput
from api.cli.files import read_bytes
from api.client import TOKEN_VARIABLE

TokenFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help=f"File with a key of the service; else {TOKEN_VARIABLE} has it."),
]


def address_of(server: str) -> str:
    """Return the address of a service; one without a scheme would be tried again and again before it fails."""
    if not server.lower().startswith(("http://", "https://")):
        raise BadInput(f"the address {server} does not say how to talk to it: write http://{server}, or https://")
    return server


def token_in(path: str | None) -> str | None:
    """Return the key in a file; it never stands on the command line, where others could read it."""
    if path is None:
        return None
    try:
        return read_bytes(path).decode("ascii")
    except UnicodeDecodeError:
        raise BadInput(f"{path} has no key in it") from None
