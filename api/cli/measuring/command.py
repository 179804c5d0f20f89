"""``measure``: benchmark this machine, and write what learned cost models are fitted to."""

import contextlib
import re
import statistics
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from api.cli.errors import MAX_COLUMNS, BadInput, echo

if TYPE_CHECKING:
    from api.cli.measuring.rows import RowFile
    from api.cli.measuring.session import Plan, Progress

_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LEAST_BUDGET_SECONDS, _MOST_BUDGET_SECONDS = 1.0, 24 * 3600.0
_KINDS = {"lookups": "lookup", "copies": "copy", "collectives": "collective"}
#: A machine whose times lie further apart than this is not quiet.
_NOISY_SPREAD = 0.1
_SECONDS_BETWEEN_LINES = 10.0


def measure_command(
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="ROWS.csv", help="Where to write the rows, else stdout.")
    ] = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="How long it may take, such as 60s, 15m or 1h.")] = "60s",
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the file ends.")] = False,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**20, help="Seed of what is measured.")] = 0,
    only: Annotated[
        Literal["lookups", "copies", "collectives"] | None, typer.Option(help="Measure one kind of work alone.")
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=1024, help="Ranks of this machine; else its GPUs, or 2 on a CPU."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary on stderr.")] = False,
) -> None:
    """Measure how long embeddings, collectives and copies take on this machine, row by row."""
    began = time.monotonic()
    seconds = _seconds(budget)
    path = _checked_output(output, resume)

    from api.cli.measuring.machine import this_machine

    machine = this_machine(ranks)  # what follows imports torch

    from api.cli.measuring.ranks import is_first_rank
    from api.cli.measuring.rows import RowFile
    from api.cli.measuring.session import Plan, follow, measure, num_rows_of
    from cost_models.measurements.schema import KINDS

    kinds = frozenset(kind for kind in KINDS if only is None or kind == _KINDS[only])
    plan = Plan(kinds=kinds, budget_seconds=seconds, seed=seed, began=began)
    if not is_first_rank():
        follow(plan, machine)
        return
    file = RowFile(path, machine.name)
    if resume:
        file.go_on(seed, lambda kind, index: num_rows_of(kind, index, plan, machine))
    before = file.num_rows
    with _progress(file, quiet) as report:
        try:
            notes = measure(plan, machine, file, report)
        except KeyboardInterrupt:
            if path is not None and not quiet:
                echo(f"shardplan: {file.num_rows:,} rows are in {path}; --resume goes on from there")
            raise
    if not quiet:
        for note in notes:
            echo(textwrap.fill(f"shardplan: {note}", MAX_COLUMNS, subsequent_indent="  "))
        _summarise(file, before, plan, path)


def _seconds(text: str) -> float:
    """``"60s"``, ``"1.5m"`` or ``"1h"`` in seconds."""
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh])", text)
    if found is None:
        raise BadInput(f"--budget takes a number and s, m or h, such as 60s or 15m, not {text[:40]!r}")
    seconds = float(found[1]) * _UNIT_SECONDS[found[2]]
    if not _LEAST_BUDGET_SECONDS <= seconds <= _MOST_BUDGET_SECONDS:
        raise BadInput(f"--budget {text}: use 1s to 24h")
    return seconds


def _checked_output(output: str | None, resume: bool) -> Path | None:
    if output is None or output == "-":
        if resume:
            raise BadInput("--resume goes on with a file: name it with -o")
        return None
    path = Path(output)
    if not path.name.endswith(".csv"):
        raise BadInput(f"{output}: rows are appended to a .csv as they come; compress it afterwards")
    if path.exists() and not resume:
        raise BadInput(f"{output} is there already: go on with it by --resume, or write to another file")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"{output}: there is no folder {path.absolute().parent}")
    return path


@contextlib.contextmanager
def _progress(file: "RowFile", quiet: bool) -> "Iterator[Progress]":
    """A bar on a terminal, else a line now and then."""
    if quiet:
        yield lambda _stage, _share: None
        return
    if not sys.stderr.isatty():
        yield _lines(file)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(20), TaskProgressColumn(), TextColumn("{task.fields[rows]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("beginning", total=1.0, rows="")

        def report(stage: str, share: float) -> None:
            bars.update(task, description=stage, completed=min(share, 1.0), rows=f"{file.num_rows:,} rows")

        yield report


def _lines(file: "RowFile") -> "Progress":
    """Print every ten seconds how far the run is."""
    reported_at = time.monotonic()

    def report(stage: str, share: float) -> None:
        nonlocal reported_at
        now = time.monotonic()
        if now - reported_at >= _SECONDS_BETWEEN_LINES:
            reported_at = now
            echo(f"shardplan: {share:.0%} of the time, {file.num_rows:,} rows; {stage}")

    return report


def _summarise(file: "RowFile", before: int, plan: "Plan", path: Path | None) -> None:
    took = time.monotonic() - plan.began
    echo(f"shardplan: {file.num_rows - before:,} rows measured in {took:.0f} s")
    if path is not None:
        echo(f"shardplan: {path} holds {file.num_rows:,} rows")
    for kind, spreads in sorted(file.spreads.items()):
        middle = statistics.median(spreads)
        wide = sum(spread > _NOISY_SPREAD for spread in spreads)
        echo(f"  {kind}: {file.done(kind):,} launches, repeats {middle:.1%} apart, {wide:,} above {_NOISY_SPREAD:.0%}")
        if middle > _NOISY_SPREAD:
            echo("    something else runs on this machine: measure again when it is quiet")
