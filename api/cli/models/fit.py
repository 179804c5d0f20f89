"""``fit``: a learned cost model out of measured rows."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from api.cli.errors import BadInput, echo
from api.cli.files import STDIN, check_distinct, check_output, write_content
from api.cli.interruptible import interruptible
from api.cli.models.files import ReportFile
from api.cli.models.laws import write_laws
from api.cli.models.measurements import read_rows
from api.schemas.base import MODEL_NAME
from api.services.cost_models.report.html import report_page
from api.services.cost_models.report.text import model_text
from api.specs.references.learned_model import CannotFit, fit
from cost_models.fitting.copies import copy_rates
from cost_models.measurements.schema import Measurements, joined


def fit_command(
    files: Annotated[
        list[str],
        typer.Argument(metavar="ROWS.csv...", help="Measured rows, or reports that have some, of one device."),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="MODEL.json", help="Where to write the model, else stdout.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", show_default="of the output file", help="What the model is called.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the split and the fit.")] = 0,
    report: ReportFile = None,
    overrides: Annotated[
        str | None,
        typer.Option(metavar="FILE.json", help="Also write the rates of measured copies, for hardware.overrides."),
    ] = None,
    laws: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json",
            help="Write laws of the measured collectives, for hardware.collective_laws. Alone it fits no model.",
        ),
    ] = None,
    domain_ranks: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, max=2**20, help="Ranks that share NVLink, if more than those of a host."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no report on stderr.")] = False,
) -> None:
    """Fit a learned cost model to measured rows; reports what it learned, and how well."""
    _check_apart(files, output=output, report=report, overrides=overrides, laws=laws)
    if domain_ranks is not None and laws is None:
        raise BadInput("--domain-ranks is for --laws")
    called = _name(name, output)

    check_distinct(((path, str(Path(path).resolve())) for path in files), "rows")
    rows = joined([read_rows(path, quiet=quiet) for path in files])
    rates = None if overrides is None else _rates(rows)
    if laws is not None:
        write_laws(rows, laws, name=_name(None, laws), domain_ranks=domain_ranks, quiet=quiet)
        if output is None and report is None and overrides is None:
            return
    if not quiet:
        echo(f"shardplan: fitting {rows.num_rows:,} rows; some thousands take a few minutes")
    try:
        content = interruptible(lambda: fit(rows, name=called, seed=seed))
    except CannotFit as error:
        raise BadInput(f"{error}: {error.hint}") from None
    write_content(content, output)
    document = json.loads(content)
    if report is not None:
        write_content(report_page(document).encode(), report)
    if rates is not None:
        write_content(json.dumps(rates, indent=2).encode(), overrides)
    if not quiet:
        echo(model_text(document))


def _name(name: str | None, output: str | None) -> str:
    """Return the name that was given, or that of the output file in characters that a name may have."""
    if name is None:
        stem = "model" if output is None or output == STDIN else Path(output).name.removesuffix(".json")
        return re.sub(r"[^a-z0-9._-]", "-", stem.lower())[:64].lstrip(".-") or "model"
    if re.fullmatch(MODEL_NAME, name) is None:
        raise BadInput("--name takes up to 64 of a-z 0-9 . _ - that begin with a letter or digit, such as h200-lab")
    return name


def _check_apart(files: list[str], **outputs: str | None) -> None:
    """Refuse a file that has no name of its own; the model alone may go to stdout."""
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None or (path == STDIN and option == "output"):
            continue
        if path == STDIN:
            raise BadInput(f"--{option} takes the name of a file")
        check_output(path, *files)
        if (other := taken.setdefault(Path(path).resolve(), option)) != option:
            raise BadInput(f"--{option} and --{other} name the same file")


def _rates(rows: Measurements) -> dict[str, float]:
    """Return the rates of measured copies; refuse where there are none."""
    try:
        rates = copy_rates(rows)
    except ValueError as error:
        raise BadInput(f"--overrides: {error}") from None
    if not rates:
        raise BadInput("--overrides: no measured copies are among the rows; shardplan measure writes some")
    return rates
