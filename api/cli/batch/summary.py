"""The summary of a batch: models by shapes for people, and every figure as CSV."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields

from rich.console import Console
from rich.table import Table
from rich.text import Text

from api.cli.batch.log import Outcome

_OWN = "own cluster"
_BORDERS = 3  # what a column takes in addition to its text
_MODEL_COLUMNS = 20  # what is left for the names of models, at least
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def summary_table(outcomes: Sequence[Outcome], shapes: Sequence[str]) -> Table:
    """Return the step time of every model on some shapes, its gap, and how fast it is against TorchRec's plan."""
    table = Table(title="Objective (gap, speed against TorchRec's greedy)", title_justify="left")
    table.add_column("model", overflow="fold")
    for shape in shapes:
        table.add_column(shape or _OWN, justify="right", overflow="fold")
    cells = {(outcome.model, outcome.shape): _cell(outcome) for outcome in outcomes}
    for model in dict.fromkeys(outcome.model for outcome in outcomes):
        # Names come from files, and could look like markup.
        table.add_row(Text(model), *(Text(cells.get((model, shape), "")) for shape in shapes))
    return table


def summary_text(outcomes: Sequence[Outcome], *, width: int) -> str:
    """Return the table as text of a width, or several where it does not hold all shapes."""
    shapes = list(dict.fromkeys(outcome.shape for outcome in outcomes))
    widest = _BORDERS + max((len(text) for one in outcomes for text in (one.shape or _OWN, _cell(one))), default=0)
    at_once = max(1, (width - _MODEL_COLUMNS) // widest)
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        for start in range(0, len(shapes), at_once):
            console.print(summary_table(outcomes, shapes[start : start + at_once]))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def summary_csv(outcomes: Sequence[Outcome]) -> bytes:
    """Return one line for each plan, with all figures; texts that a spreadsheet would run are quoted for it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=[field.name for field in fields(Outcome)], lineterminator="\n")
    writer.writeheader()
    for outcome in outcomes:
        writer.writerow({key: _harmless(value) for key, value in asdict(outcome).items()})
    return text.getvalue().encode()


def _cell(outcome: Outcome) -> str:
    if outcome.seconds is None:
        return outcome.state
    gap = [] if outcome.relative_gap is None else [f"{outcome.relative_gap:.1%}"]
    ratio = [] if outcome.torchrec_ratio is None else [f"{outcome.torchrec_ratio:.2f}x"]
    return f"{1000 * outcome.seconds:.4g} ms" + (f" ({', '.join(gap + ratio)})" if gap or ratio else "")


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
