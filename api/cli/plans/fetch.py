"""``fetch``: what a launcher runs. It imports little, for every rank may wait for it."""

from typing import Annotated

import typer

from api.cli.admin.client_key import TokenFile, address_of, token_in
from api.cli.completion import complete_channel
from api.cli.errors import BadInput, echo, system_errors
from api.cli.files import AsJson, Form, check_output, print_document
from api.client import PlannerClient, RetryPolicy
from api.client.plan_file import fetch

DEFAULT_SERVER = "http://127.0.0.1:8080"


def fetch_command(
    channel: Annotated[
        str, typer.Argument(metavar="CHANNEL", autocompletion=complete_channel, help="Such as ads/ranker/prod.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", metavar="PLAN.json", help="The file to keep up to date.")],
    server: Annotated[
        str, typer.Option(metavar="URL", envvar="SHARDPLAN_SERVER", help="The service.")
    ] = DEFAULT_SERVER,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Limit of one attempt.")] = 30.0,
    attempts: Annotated[int, typer.Option(min=1, help="How often a server that does not answer is asked.")] = 6,
    token_file: TokenFile = None,
    form: Form = "long",
    world_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Ranks of the job, of a channel with plans for several sizes."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring a file up to date with a channel: what a launcher runs before its job starts."""
    check_output(output)
    url, token = address_of(server), token_in(token_file)
    try:
        client = PlannerClient(url, token=token, timeout=timeout, retry=RetryPolicy(attempts=attempts))
        with client, system_errors(f"cannot write {output}"):
            file = fetch(client, channel, output, form=form, world_size=world_size)
    except ValueError as error:
        raise BadInput(str(error)) from error
    written = {"path": str(file.path), "plan_digest": file.digest, "changed": file.changed}
    print_document(written, as_json=as_json)
    echo(f"{file.path}: {'new plan' if file.changed else 'unchanged'} {file.digest}")
