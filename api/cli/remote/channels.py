"""``channels``: what launchers read."""

from typing import Annotated

import typer

from api.cli.admin.client_key import TokenFile
from api.cli.completion import complete_channel
from api.cli.errors import echo
from api.cli.files import AsJson, print_document
from api.cli.remote.connection import DEFAULT_SERVER, ListsByDefault, NumShown, Server, connected
from api.cli.remote.text import channel_text, channels_text, history_text

app = typer.Typer(
    cls=ListsByDefault,
    help="List the channels of a service, look at one and at what it pointed at.",
    rich_markup_mode=None,
    add_completion=False,
)

ChannelName = Annotated[
    str, typer.Argument(metavar="CHANNEL", autocompletion=complete_channel, help="Such as ads/ranker/prod.")
]


@app.command("list")
def list_command(server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """List all channels by name."""
    with connected(server, token_file) as client:
        channels = client.channels.list_all()
    if not print_document({"channels": channels}, as_json=as_json):
        echo(channels_text(channels))


@app.command("show")
def show_command(
    channel: ChannelName, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Show the plan that a channel points at."""
    with connected(server, token_file) as client:
        document, _ = client.get_channel(channel)
    if not print_document(document, as_json=as_json):
        echo(channel_text(document))


@app.command("history")
def history_command(
    channel: ChannelName,
    limit: NumShown = 20,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """List what a channel pointed at, newest first, and who changed it."""
    with connected(server, token_file) as client:
        versions = client.channels.newest_versions(channel, limit)
    if not print_document({"versions": versions}, as_json=as_json):
        echo(history_text(versions))
