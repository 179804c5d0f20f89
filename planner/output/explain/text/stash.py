"""What a plan stashes while the dense part of a step runs, as text for people."""

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.text.layout import paragraph

#: Tables that are named; the plan has all.
_MOST_NAMES = 8


def stash_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about stashed weights, none if the spec stashes nothing."""
    stash = plan.get("stash")
    if stash is None:
        return []
    if not stash["num_tables"]:
        return ["Stashed weights", *paragraph("none: activations fit next to all tables")]
    names = [table["name"] for table in plan["tables"] if table.get("stash_weights")]
    more = f", and {counted(len(names) - _MOST_NAMES, 'more table')}" if len(names) > _MOST_NAMES else ""
    lines = paragraph(
        f"{counted(stash['num_tables'], 'table')}, {format_bytes(stash['all_ranks_bytes'])} on all ranks;"
        f" {format_bytes(stash['stashed_bytes'])} on rank {stash['busiest_rank']}, the most"
    )
    waits = format_seconds(stash["forward_wait_seconds"] + stash["backward_wait_seconds"])
    lines += paragraph(
        f"copies of that rank: {format_seconds(stash['to_host_seconds'])} to the host,"
        f" {format_seconds(stash['to_device_seconds'])} back; dense compute waits {waits} for copies"
    )
    return ["Stashed weights", *lines, *paragraph(f"tables: {', '.join(names[:_MOST_NAMES])}{more}", hanging="  ")]
