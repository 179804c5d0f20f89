"""The service that a command works on: its address, the key, and how many items of a list are shown."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from api.cli.admin.client_key import address_of, token_in
from api.cli.errors import BadInput
from api.client import PlannerClient, RetryPolicy

DEFAULT_SERVER = "http://127.0.0.1:8080"
SERVER_VARIABLE = "SHARDPLAN_SERVER"
Server = Annotated[str, typer.Option(metavar="URL", envvar=SERVER_VARIABLE, help="The service.")]
NumShown = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=500, help="Show so many, newest first.")]


class ListsByDefault(TyperGroup):
    """A group of commands whose name alone lists what there is."""

    def parse_args(self, ctx: Any, args: Sequence[str]) -> list[str]:
        """Put ``list`` in front of arguments that name no command."""
        given = list(args)
        if not given or (given[0].startswith("-") and given[0] != "--help"):
            given.insert(0, "list")
        return list(super().parse_args(ctx, given))


@contextmanager
def connected(
    server: str, token_file: str | None, *, once_within_seconds: float | None = None
) -> Iterator[PlannerClient]:
    """Yield a client of a service, which asks again if no answer comes, or only once and within some seconds.

    Raises ``BadInput`` if the address, the key or a name cannot be sent.
    """
    url, token = address_of(server), token_in(token_file)
    limits: dict[str, Any] = {}
    if once_within_seconds is not None:
        limits = {"timeout": once_within_seconds, "retry": RetryPolicy(attempts=1)}
    try:
        with PlannerClient(url, token=token, **limits) as client:
            yield client
    except ValueError as error:  # what the client refuses to send, such as a name that no channel has
        raise BadInput(str(error)) from error
