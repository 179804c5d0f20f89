"""The points of a study as a table for people, and with all figures as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from api.schemas.study import PointFigures
from planner.domain.formats.units import format_seconds

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_STANDINGS = {"front": "front", "dominated": "dominated", "undecided": "open"}
_FIGURES = tuple(PointFigures.model_fields)


def in_grid_order(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return points by the values of their axes, those of the first axis together; values in the order they came."""
    seen: dict[str, dict[str, int]] = {}
    for point in points:
        for name, label in point["labels"].items():
            values = seen.setdefault(name, {})
            values.setdefault(label, len(values))
    return sorted(points, key=lambda point: [seen[name][label] for name, label in point["labels"].items()])


def points_text(points: Sequence[Mapping[str, Any]], standings: Mapping[str, str], *, width: int) -> str:
    """Return a line for each point: its values, the step, samples per second, hosts, price and standing."""
    labels = list(dict.fromkeys(name for point in points for name in point["labels"]))
    has_price = any((point.get("figures") or {}).get("price_per_hour") is not None for point in points)
    table = Table(box=None, pad_edge=False)
    for name in labels:
        table.add_column(name.rpartition(".")[2], overflow="fold")
    for name in ("step", "gap", "samples/s", "hosts", *(["per hour"] if has_price else []), "front"):
        table.add_column(name, justify="right", overflow="fold")
    for point in points:
        values = [Text(point["labels"].get(name, "")) for name in labels]
        figures, gap = point.get("figures"), point.get("relative_gap")
        if figures is None:
            blank = [""] * (4 if has_price else 3)
            table.add_row(*values, Text(point["state"].replace("_", " ")), *blank, "")
            continue
        price = figures.get("price_per_hour")
        table.add_row(
            *values,
            "" if figures.get("step_seconds") is None else format_seconds(figures["step_seconds"]),
            "" if gap is None else f"{gap:.1%}",
            _count(figures.get("samples_per_second", figures.get("requests_per_second"))),
            str(figures["num_hosts"]),
            *([_money(price)] if has_price else []),
            _STANDINGS.get(standings.get(point["key"], ""), ""),
        )
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


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


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _money(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
