"""What a portfolio found, for people: its members, and what moves between them."""

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from planner.domain.formats.units import format_bytes, format_seconds


def portfolio_text(answer: Mapping[str, Any], *, width: int, currency: str) -> str:
    """Return a line for each member and each change of hosts, and what restarts cost if that was asked."""
    members = Table(box=None, pad_edge=False)
    for name in ("hosts", "step", "of the best", "at most", "plan"):
        members.add_column(name, justify="left" if name == "plan" else "right", overflow="fold")
    for one in answer["members"]:
        step = one["step_seconds"]
        members.add_row(
            str(one["num_hosts"]),
            "no plan" if step is None else format_seconds(step),
            _part(one["step_ratio"]),
            _part(one["step_ratio_at_most"]),
            (one["plan_digest"] or "").removeprefix("sha256:")[:12],
        )
    changes = Table(box=None, pad_edge=False)
    for name in ("change", "moved", "read", "independent plans", "time"):
        changes.add_column(name, justify="left" if name == "change" else "right", overflow="fold")
    for one in answer["transitions"]:
        changes.add_row(
            f"{one['from_hosts']} -> {one['to_hosts']}",
            _bytes(one["moved_bytes"]),
            _bytes(one["checkpoint_bytes"]),
            _bytes(_sum(one["independent_moved_bytes"], one["independent_checkpoint_bytes"])),
            "" if one["moved_seconds"] is None else format_seconds(one["moved_seconds"]),
        )
    lines = [*_lines(members, width), "", *_lines(changes, width)]
    return "\n".join([*lines, *_restarts(answer.get("restarts"), currency)])


def _restarts(costs: Mapping[str, Any] | None, currency: str) -> Iterator[str]:
    if costs is None:
        return
    yield ""
    without = f"{format_seconds(costs['lost_seconds_per_day'])} lost per day"
    with_spare = f"{format_seconds(costs['spare_lost_seconds_per_day'])} lost per day"
    if costs["price_per_day"] is not None:
        without += f", {costs['price_per_day']:,.2f} {currency}"
        with_spare += f", {costs['spare_price_per_day']:,.2f} {currency} with its price"
    yield f"one host fewer until repair: {without}"
    yield f"a spare: {with_spare}"


def _lines(table: Table, width: int) -> Sequence[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]


def _part(value: float | None) -> str:
    return "" if value is None else f"+{max(value, 0.0):.1%}"


def _bytes(value: float | None) -> str:
    return "" if value is None else format_bytes(value)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
