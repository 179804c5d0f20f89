"""Why there is no plan, as text for people: what is short, by how much, and the way out."""

from collections.abc import Sequence

from planner.domain.plan import PlanResult, Shortfall
from planner.explain.text import paragraph, shortened
from planner.units import format_bytes

MAX_SHORTFALLS = 10


def explain_no_plan(result: PlanResult, *, name: str) -> str:
    """Return the reason why ``result`` carries no plan, at most 80 columns wide."""
    limit = f" (stopped by {result.limit})" if result.limit else ""
    lines = [shortened(f"No plan of {name}: {result.reason}{limit}", 80)]
    if result.detail:
        lines += paragraph(result.detail)
    lines += _shortfalls(result.shortfalls)
    return "\n".join(lines) + "\n"


def _shortfalls(shortfalls: Sequence[Shortfall]) -> list[str]:
    lines: list[str] = []
    for shortfall in shortfalls[:MAX_SHORTFALLS]:
        where = f'table "{shortened(shortfall.table, 40)}"' if shortfall.table else shortfall.scope
        lines += ["", f"  {shortfall.resource} of the {where}" if not shortfall.table else f"  {where}"]
        if shortfall.required_bytes > 0:
            missing = shortfall.required_bytes - shortfall.available_bytes
            lines.append(
                f"    needs {format_bytes(shortfall.required_bytes)}, has {format_bytes(shortfall.available_bytes)}:"
                f" {format_bytes(missing)} of {shortfall.resource} short"
            )
        lines += paragraph(shortfall.message, indent="    ")
        if shortfall.hint:
            lines += paragraph(f"way out: {shortfall.hint}", indent="    ")
    if len(shortfalls) > MAX_SHORTFALLS:
        lines += ["", f"  ... and {len(shortfalls) - MAX_SHORTFALLS} more shortfalls"]
    return lines
