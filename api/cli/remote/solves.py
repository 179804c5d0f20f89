"""``solves``: the solves of a service."""

from typing import Annotated, Any

import typer

from api.cli.admin.client_key import TokenFile
from api.cli.errors import BadInput, echo
from api.cli.files import AsJson, Form, check_output, parse_assignment, print_document, read_bytes
from api.cli.remote.connection import DEFAULT_SERVER, ListsByDefault, NumShown, Server, connected
from api.cli.remote.follow import conclude_solve, followed
from api.cli.remote.text import solve_text, solves_text
from api.specs.input.changes import with_field
from api.specs.input.json import read_json

app = typer.Typer(
    cls=ListsByDefault,
    help="List the solves of a service, look at one, cancel it, try it again or change its spec.",
    rich_markup_mode=None,
    add_completion=False,
)

SolveId = Annotated[str, typer.Argument(metavar="ID", help="Id of the solve, as the list has it.")]


@app.command("list")
def list_command(
    state: Annotated[
        str | None, typer.Option(help="Only those that are queued, running, succeeded, failed or cancelled.")
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag, such as batch=week-47.")] = None,
    limit: NumShown = 20,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """List solves, newest first."""
    with connected(server, token_file) as client:
        solves = client.solves.newest(limit, state=state, tag=tag)
    if not print_document({"solves": solves}, as_json=as_json):
        echo(solves_text(solves))


@app.command("show")
def show_command(
    solve_id: SolveId,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PLAN.json", help="Wait for the end, and write the plan.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    form: Form = "long",
    as_json: AsJson = False,
) -> None:
    """Show a solve; with -o wait until it has ended, and write its plan."""
    check_output(output)
    with connected(server, token_file) as client:
        solve = client.get_solve(solve_id)
        if output is not None:
            solve = followed(client, solve, server)
            conclude_solve(client, solve, output, form)
            return
    _show(solve, as_json=as_json)


@app.command("cancel")
def cancel_command(
    solve_id: SolveId, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Stop a solve; the best plan that it has found stays."""
    with connected(server, token_file) as client:
        _show(client.solves.cancel(solve_id), as_json=as_json)


@app.command("retry")
def retry_command(
    solve_id: SolveId, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Queue a new solve of the spec of a solve that failed or was cancelled."""
    with connected(server, token_file) as client:
        _show(client.solves.retry(solve_id), as_json=as_json)


@app.command("from-patch")
def from_patch_command(
    solve_id: SolveId,
    patch: Annotated[
        str | None, typer.Argument(metavar="PATCH.json", help="JSON merge patch of its spec; - reads standard input.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Change a field, such as hardware.num_hosts=2."),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="PLAN.json", help="Wait for the end, and write the plan.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    token_file: TokenFile = None,
    form: Form = "long",
    as_json: AsJson = False,
) -> None:
    """Ask for a plan of the spec of a solve with changes; with -o wait until it has ended, and write its plan."""
    if patch is None and not changes:
        raise BadInput("nothing is changed: give PATCH.json, --set FIELD=VALUE, or both")
    check_output(output, *([] if patch is None else [patch]))
    asked = read_json(b"{}" if patch is None else read_bytes(patch))
    for path, value in map(parse_assignment, changes or ()):
        asked = with_field(asked, path, value)
    if not isinstance(asked, dict):
        raise BadInput('a merge patch of a spec is a JSON object, such as {"hardware": {"num_hosts": 2}}')
    with connected(server, token_file) as client:
        solve = client.solves.from_patch(solve_id, asked)
        if output is not None:
            solve = followed(client, solve, server)
            conclude_solve(client, solve, output, form)
            return
    _show(solve, as_json=as_json)


def _show(solve: dict[str, Any], *, as_json: bool) -> None:
    if not print_document(solve, as_json=as_json):
        echo(solve_text(solve))
