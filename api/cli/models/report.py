"""``model``: the report of a learned cost model that exists, and which come with shardplan."""

import json
from pathlib import Path
from typing import Annotated

import typer

from api.cli.errors import BadInput
from api.cli.files import STDIN, check_output, read_bytes, write_content
from api.cli.models.files import ReportFile
from api.services.cost_models.report.html import report_page
from api.services.cost_models.report.text import list_text, model_text
from api.specs.references.cost_model import ShippedModels, is_reference, learned_digest
from api.specs.references.learned_model import load_model
from cost_models.learned.shipped import shipped_models


def model_command(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL.json|NAME|learned:sha256:...",
            help="A file, - for standard input, or a model that comes with shardplan; without it these are listed.",
        ),
    ] = None,
    report: ReportFile = None,
) -> None:
    """Report on a learned cost model: held-out errors, coverage, ranges, what was not measured."""
    if report == STDIN:
        raise BadInput("--report takes the name of a file")
    if model is None and report is not None:
        raise BadInput("--report writes the page of one model: name it")

    if model is None:
        listing = list_text([json.loads(content) for content in shipped_models().values()])
    else:
        content = _content(model)
        load_model(content)
        document = json.loads(content)
        listing = model_text(document)
        if report is not None:
            check_output(report, model)
            write_content(report_page(document).encode(), report)
    write_content(listing.encode(), STDIN)


def _content(model: str) -> bytes:
    """Return the bytes of what a model is called; a name of the package goes before a file that is called so."""
    shipped = shipped_models()
    if model in shipped:
        return shipped[model]
    if is_reference(model):
        digest = learned_digest(model)
        if digest is None:
            raise BadInput(f"{model} means something to a server alone: see its GET /v1/cost-models/{{id}}/report")
        found = ShippedModels().of_digest(digest)
        if found is None:
            raise BadInput("no model of this digest comes with shardplan: give its file")
        return found.canonical
    if model != STDIN and not Path(model).exists():
        raise BadInput(
            f"there is no file {model}, and no such model comes with shardplan (these do: {', '.join(shipped)})"
        )
    return read_bytes(model)
