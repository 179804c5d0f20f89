"""The points of a study as a table for people, and with all figures as CSV."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from api.schemas.studies.answers import PointFigures
from planner.domain.formats.units import format_bytes, format_seconds

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_STANDINGS = {"front": "front", "dominated": "dominated", "undecided": "open"}
_FIGURES = tuple(PointFigures.model_fields)


@dataclass(frozen=True, slots=True)
class _Column:
    """A figure as people read it."""

    name: str
    title: str
    shown: Callable[[float], str]


#: In the order of the table, if some point has the figure.
_COLUMNS = (
    _Column("step_seconds", "step", format_seconds),
    _Column("relative_gap", "gap", "{:.1%}".format),
    _Column("samples_per_second", "samples/s", "{:,.0f}".format),
    _Column("requests_per_second", "requests/s", "{:,.0f}".format),
    _Column("p99_seconds", "P99", format_seconds),
    _Column("checkpoint_write_bytes_per_second", "written/s", format_bytes),
    _Column("checkpoint_stored_bytes", "stored", format_bytes),
    _Column("num_hosts", "hosts", "{:,}".format),
    _Column("price_per_hour", "per hour", "{:,.2f}".format),
)


def in_grid_order(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return points by the values of their axes, those of the first axis together; values in the order they came."""
    seen: dict[str, dict[str, int]] = {}
    for point in points:
        for name, label in point["labels"].items():
            values = seen.setdefault(name, {})
            values.setdefault(label, len(values))
    return sorted(points, key=lambda point: [seen[name][label] for name, label in point["labels"].items()])


def points_text(points: Sequence[Mapping[str, Any]], standings: Mapping[str, str], *, width: int) -> str:
    """Return a line for each point: its values, the gap, the figures that some point has, and its standing."""
    labels = list(dict.fromkeys(name for point in points for name in point["labels"]))
    known = {name for point in points for name, value in _shown_figures(point).items() if value is not None}
    columns = [one for one in _COLUMNS if one.name in known]
    table = Table(box=None, pad_edge=False)
    for name in labels:
        table.add_column(name.rpartition(".")[2], overflow="fold")
    for name in (*(one.title for one in columns), "front"):
        table.add_column(name, justify="right", overflow="fold")
    for point in points:
        values = [Text(point["labels"].get(name, "")) for name in labels]
        figures = _shown_figures(point)
        if not figures:
            state = Text(point["state"].replace("_", " "))
            table.add_row(*values, state, *([""] * len(columns)))
            continue
        table.add_row(
            *values,
            *("" if figures.get(one.name) is None else one.shown(figures[one.name]) for one in columns),
            _STANDINGS.get(standings.get(point["key"], ""), ""),
        )
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def _shown_figures(point: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a point and its gap; none of a point without a plan."""
    figures = point.get("figures")
    return {**figures, "relative_gap": point.get("relative_gap")} if figures else {}


def points_csv(points: Sequence[Mapping[str, Any]], standings: Mapping[str, str]) -> bytes:
    """Return one line for each point, with all figures; texts that a spreadsheet would run are quoted for it."""
    labels = list(dict.fromkeys(name for point in points for name in point["labels"]))
    head = [
        "key",
        *labels,
        "state",
        "standing",
        "plan_digest",
        "objective_seconds",
        "lower_bound_seconds",
        "relative_gap",
    ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*head, *_FIGURES, "issue"])
    for point in points:
        figures, issues = point.get("figures") or {}, point.get("issues") or []
        values: list[object] = [point["key"], *(point["labels"].get(name) for name in labels), point["state"]]
        values += [standings.get(point["key"], ""), *(point.get(name) for name in head[len(labels) + 3 :])]
        values += [*(figures.get(name) for name in _FIGURES), issues[0]["message"] if issues else ""]
        writer.writerow([_harmless(value) for value in values])
    return text.getvalue().encode()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
