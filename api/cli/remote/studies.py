"""``studies``: questions that a service answers with many plans."""

from typing import Annotated, Any

import typer

from api.cli.admin.client_key import TokenFile
from api.cli.errors import MAX_COLUMNS, echo
from api.cli.files import AsJson, print_document
from api.cli.remote.connection import DEFAULT_SERVER, ListsByDefault, NumShown, Server, connected
from api.cli.remote.text import studies_text, study_text
from api.cli.study.text import in_grid_order, points_text

app = typer.Typer(
    cls=ListsByDefault,
    help="List the studies of a service, look at one or cancel it.",
    rich_markup_mode=None,
    add_completion=False,
)

StudyId = Annotated[str, typer.Argument(metavar="ID", help="Id of the study, as the list has it.")]


@app.command("list")
def list_command(
    limit: NumShown = 20, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """List studies, newest first."""
    with connected(server, token_file) as client:
        studies = client.studies.newest(limit)
    if not print_document({"studies": studies}, as_json=as_json):
        echo(studies_text(studies))


@app.command("show")
def show_command(
    study_id: StudyId, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Show how far a study is, and its points."""
    with connected(server, token_file) as client:
        study: dict[str, Any] = client.studies.get(study_id)
        points = client.studies.points(study_id)
    if not print_document({**study, "points": points}, as_json=as_json):
        echo(study_text(study))
        if points:
            standings = {
                one["key"]: one["standing"] for one in (study.get("answer") or {}).get("front", {}).get("points", ())
            }
            echo(points_text(in_grid_order(points), standings, width=MAX_COLUMNS))


@app.command("cancel")
def cancel_command(
    study_id: StudyId, server: Server = DEFAULT_SERVER, token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Stop a study and the solves that it submitted."""
    with connected(server, token_file) as client:
        study = client.studies.cancel(study_id)
    if not print_document(study, as_json=as_json):
        echo(study_text(study))
