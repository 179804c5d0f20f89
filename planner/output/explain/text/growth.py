"""Hash tables that grow with their ids, as text for people."""

from collections.abc import Iterator

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.growth import TableGrowthDocument
from planner.output.explain.text.layout import paragraph

#: Tables that are described; the plan has all.
_MOST_TABLES = 8


def growth_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about tables that grow, none if there are none."""
    tables = plan.get("growth")
    if not tables:
        return []
    lines = [line for table in tables[:_MOST_TABLES] for line in _lines(table)]
    if len(tables) > _MOST_TABLES:
        lines += paragraph(f"and {counted(len(tables) - _MOST_TABLES, 'more table')}")
    return ["Hash tables that grow, on a rank", *lines]


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _lines(table: TableGrowthDocument) -> Iterator[str]:
    first, last = table["steps"][0], table["steps"][-1]
    grown = f"{counted(first['slots_per_rank'], 'slot')}"
    if len(table["steps"]) > 1:
        grown += f" at first, {last['slots_per_rank']:,} after it grew {_times(len(table['steps']) - 1)}"
    bytes_of = [("on the device", first["device_bytes"], last["device_bytes"])]
    bytes_of.append(("in host memory", first["host_bytes"], last["host_bytes"]))
    sizes = [
        f"{format_bytes(least)} to {format_bytes(most)} {where}" if least < most else f"{format_bytes(most)} {where}"
        for where, least, most in bytes_of
        if most
    ]
    text = f"{table['table']}: {grown}; {', '.join(sizes)}"
    peak = max(table["steps"], key=lambda step: step["peak_device_bytes"])
    if peak["peak_device_bytes"] > last["device_bytes"]:
        text += f", {format_bytes(peak['peak_device_bytes'])} while it grows to {peak['slots_per_rank']:,}"
    if table["fits_ids"] is not None:
        text += f"; memory ends after {counted(table['fits_ids'], 'id')} of all ranks"
    yield from paragraph(text, hanging="  ")
