"""``measurements``: rows out of what other benchmarks report."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from api.cli.errors import BadInput, echo, system_errors, wrapped
from api.cli.files import check_distinct, check_output, write_document
from cost_models.errors import InvalidMeasurements
from cost_models.measurements.files import read_report
from cost_models.measurements.json_rows import rows_to_json
from cost_models.measurements.reports.report import NOTHING_STATED, Stated
from cost_models.measurements.schema import Measurements, joined
from cost_models.text.number_text import counted

app = typer.Typer(
    help="Read what other benchmarks measured.", no_args_is_help=True, rich_markup_mode=None, add_completion=False
)
#: Of what is left out of a file, so many lines are listed.
_LISTED = 20


@app.callback()
def group() -> None:
    """Read what other benchmarks measured."""


@app.command("import")
def import_command(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="Logs of nccl-tests or rccl-tests, benchmark_results.json, rows of ours."
        ),
    ],
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="ROWS.json", help="Where to write the rows, else stdout.")
    ] = None,
    operation: Annotated[
        Literal["all_to_all", "reduce_scatter", "all_gather", "all_reduce"] | None,
        typer.Option(help="What was run, for logs that do not say so."),
    ] = None,
    ranks: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=2**20, help="How many ranks ran, for logs without devices.")
    ] = None,
    ranks_per_host: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=2**20, help="Ranks of a host, for logs without devices.")
    ] = None,
    device: Annotated[str | None, typer.Option(metavar="NAME", help="The device that all files are of.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No list of what was read and left out.")] = False,
) -> None:
    """Write the rows that reports hold as JSON, as POST /v1/measurements and fit take them."""
    check_output(output, *files)
    check_distinct(((path, str(Path(path).resolve())) for path in files), "rows")
    stated = Stated(operation=operation, num_ranks=ranks, ranks_per_host=ranks_per_host, device=device)
    rows = joined([read_rows(path, stated, quiet=quiet) for path in files])
    write_document({"rows": rows_to_json(rows)}, output)


def read_rows(path: str, stated: Stated = NOTHING_STATED, *, quiet: bool = False) -> Measurements:
    """Return the rows of a file, and list on stderr what was read of a report and what was left out.

    Raises
    ------
    BadInput
        The system refuses to read the file.
    InvalidMeasurements
        With the name of the file where the whole of it is refused.
    """
    try:
        with system_errors(f"cannot read {path}"):
            report = read_report(Path(path), stated)
    except InvalidMeasurements as error:
        if error.issues[0].row >= 0:
            raise
        raise BadInput(f"{path}: {error}") from None
    if not quiet and (report.read or report.left_out):
        echo(f"{path}: {counted(report.rows.num_rows, 'row')}")
        listed = [f"read: {part}" for part in report.read] + [f"left out: {part}" for part in report.left_out[:_LISTED]]
        for line in (line for part in listed for line in wrapped(part, "  ")):
            echo(line)
        if len(report.left_out) > _LISTED:
            echo(f"  ... and {len(report.left_out) - _LISTED} more left out")
    return report.rows
