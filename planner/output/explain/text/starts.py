"""What a plan starts once per step, as text."""

from planner.domain.formats.units import format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.layout import INDENT, columns


def start_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the sharding types that have starts, and what these take; nothing where no starts are priced."""
    starts = plan.get("starts") or []
    if not starts:
        return []
    rows = [
        (INDENT + one["sharding_type"], format_seconds(one["seconds"]), one["module"])
        for one in sorted(starts, key=lambda one: (-one["seconds"], one["module"], one["sharding_type"]))
    ]
    total = format_seconds(sum(one["seconds"] for one in starts))
    return [f"Starts (in the seconds of every rank, {total} in all)", *columns(rows, left=(0, 2))]
