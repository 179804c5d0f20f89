"""Why there is no plan, as text for people: what is short, by how much, and the way out."""

from collections.abc import Sequence

from planner.domain.plan import PlanResult, Shortfall
from planner.explain.text import WIDTH, counted, paragraph, shortened
from planner.units import format_bytes

MAX_SHORTFALLS = 10


def explain_no_plan(result: PlanResult, *, name: str) -> str:
    """Return the reason why ``result`` carries no plan, at most 80 columns wide."""
    limit = f" (stopped by {result.limit})" if result.limit else ""
    lines = [shortened(f"No plan of {name}: {result.reason}{limit}", WIDTH)]
    lines += paragraph(_beside_shortfalls(result))
    lines += _shortfalls(result.shortfalls)
    return "\n".join(lines) + "\n"


def _beside_shortfalls(result: PlanResult) -> str:
    """What ``detail`` says that no shortfall below says again; it may begin with the message of one."""
    detail = result.detail
    for shortfall in result.shortfalls:
        detail = detail.removeprefix(shortfall.message)
    return detail.lstrip("; ")


def _shortfalls(shortfalls: Sequence[Shortfall]) -> list[str]:
    lines: list[str] = []
    for shortfall in shortfalls[:MAX_SHORTFALLS]:
        lines += ["", *paragraph(_heading(shortfall)), *paragraph(shortfall.message, indent="    ")]
        if shortfall.hint:
            lines += paragraph(f"way out: {shortfall.hint}", indent="    ")
    if len(shortfalls) > MAX_SHORTFALLS:
        lines += ["", f"  ... and {counted(len(shortfalls) - MAX_SHORTFALLS, 'more shortfall')}"]
    return lines


def _heading(shortfall: Shortfall) -> str:
    """What is short, and by how much: the message below says how that comes about."""
    where = f'table "{shortened(shortfall.table, 40)}"' if shortfall.table else f"the {shortfall.scope}"
    missing = shortfall.required_bytes - shortfall.available_bytes
    if missing > 0:
        return f"{format_bytes(missing)} of {shortfall.resource} short for {where}"
    return f"{shortfall.resource} of {where}" if shortfall.table else shortfall.resource
