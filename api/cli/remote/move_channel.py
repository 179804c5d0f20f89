"""``promote`` and ``rollback``: commands that point a channel at another plan."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.admin.client_key import TokenFile
from api.cli.errors import NOT_FOUND, BadInput, ExitCode, echo
from api.cli.files import STDIN, AsJson, print_document, read_plan
from api.cli.remote.channels import ChannelName
from api.cli.remote.connection import DEFAULT_SERVER, Server, connected
from api.cli.remote.text import pointed_at
from api.client import PlannerClient, ProblemError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the channel is moved.")]
_DIGEST = re.compile(r"(sha256:)?([0-9a-f]{64})")


def promote_command(
    channel: ChannelName,
    plan: Annotated[str, typer.Argument(metavar="PLAN.json|DIGEST", help="A plan that the service has.")],
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Point a channel at a plan: every launcher that reads the channel gets the plan from now on."""
    digest = _digest_of(plan)
    with connected(server, token_file) as client:
        before, etag = _channel(client, channel)
        if before is not None:
            if before["plan_digest"] == digest and not before.get("plan_digests"):
                echo(f"{channel}: version {before['version']} points at this plan already; nothing is changed")
                print_document(before, as_json=as_json)
                return
            _ask(channel, before, {"plan_digest": digest}, yes=yes)
        try:
            after = client.promote(channel, digest, if_match=etag)
        except ProblemError as error:
            if error.status != NOT_FOUND:
                raise
            raise BadInput(
                f"the service has no plan {digest}: `shardplan plan SPEC.json --server {server}` plans there, and the"
                " plan of an equal spec is the same"
            ) from error
    _report(channel, before, after, as_json=as_json)


def rollback_command(
    channel: ChannelName,
    version: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Back to the plan of this version; else to the last other plan."),
    ] = None,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Point a channel at an earlier plan again; a second rollback goes back further."""
    with connected(server, token_file) as client:
        before, etag = _channel(client, channel)
        if before is None or etag is None:
            raise BadInput(f"there is no channel {channel}; `shardplan channels` lists those that there are")
        target = client.channels.restored(channel, at=before["version"], version=version)
        if target is None:
            missing = "no earlier version with another plan" if version is None else f"no version {version}"
            raise BadInput(f"{channel} has {missing}; `shardplan channels history {channel}` lists its versions")
        _ask(channel, before, target, yes=yes)
        after = client.rollback(channel, if_match=etag, version=version)
    _report(channel, before, after, as_json=as_json)


def _digest_of(plan: str) -> str:
    """Return the digest of a plan that is named by a digest or by a file."""
    found = _DIGEST.fullmatch(plan)
    if found is not None and not Path(plan).exists():
        return f"sha256:{found[2]}"
    if plan != STDIN and not Path(plan).exists():
        raise BadInput(f"{plan} is neither a file nor a digest, which is sha256: and 64 hexadecimal digits")
    return read_plan(plan)["plan_digest"]


def _channel(client: PlannerClient, name: str) -> tuple[dict[str, Any] | None, str | None]:
    """Return a channel and its ETag; nothing if there is no such channel yet."""
    try:
        return client.get_channel(name)
    except ProblemError as error:
        if error.status != NOT_FOUND:
            raise
        return None, None


def _ask(channel: str, before: Mapping[str, Any], after: Mapping[str, Any], *, yes: bool) -> None:
    """Ask on a terminal whether a channel is to be moved; raises ``typer.Exit`` unless the answer is yes."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    echo(f"{channel} points at version {before['version']}")
    echo(f"  from {pointed_at(before)}")
    echo(f"  to   {pointed_at(after)}")
    if not typer.confirm("Move the channel?", err=True):
        echo("shardplan: nothing is changed")
        raise typer.Exit(ExitCode.BAD_INPUT)


def _report(channel: str, before: dict[str, Any] | None, after: dict[str, Any], *, as_json: bool) -> None:
    print_document(after, as_json=as_json)
    if before is None:
        echo(f"{channel}: made, version {after['version']}")
    else:
        echo(f"{channel}: moved from version {before['version']} to version {after['version']}")
        echo(f"  from {pointed_at(before)}")
    echo(f"  to   {pointed_at(after)}")
