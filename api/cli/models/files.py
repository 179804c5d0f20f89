"""Files of learned cost models on the command line."""

from typing import Annotated

import typer

from api.cli.errors import BadInput
from api.cli.files import read_bytes
from api.specs.references.cost_model import LEARNED, FindModel, OneModel, pinned_name
from api.specs.references.learned_model import load_model

CostModelFile = Annotated[
    str | None,
    typer.Option("--cost-model-file", metavar="MODEL.json", help="A learned cost model; replaces cost_model, too."),
]
ReportFile = Annotated[
    str | None, typer.Option(metavar="FILE.html", help="Also write the report as a page that needs no network.")
]


def chosen_cost_model(name: str | None, path: str | None) -> tuple[str | None, FindModel | None]:
    """Return what replaces ``cost_model`` of a spec, and where learned models are looked up.

    Raises
    ------
    BadInput
        Both a file and the name of another model are given.
    planner.errors.InvalidProblem
        The file is no learned model; the issue has its place in the file.
    """
    if path is None:
        return name, None
    if name not in (None, LEARNED):
        raise BadInput(f"give either --cost-model {name} or --cost-model-file")
    content = read_bytes(path)
    return pinned_name(load_model(content)), OneModel(content)
