"""Ordered objectives of a plan, as text."""

from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.search import OrderedObjectiveDocument
from planner.output.explain.text.layout import INDENT, columns, paragraph

_CHANGED = 5e-4  # relative: what three digits show


def objective_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the ordered objectives, each with its value, its bound and its limit; nothing if the plan has none."""
    listed = plan.get("objectives") or []
    if not listed:
        return []
    limits: dict[str, float] = {}
    for one in listed:
        limits |= one["limits"]
    rows = [("", "value", "at least", "at most", "before its turn")]
    rows += [
        (
            INDENT + one["name"],
            value_text(one["unit"], one["value"]),
            value_text(one["unit"], one["lower_bound"]),
            value_text(one["unit"], limits[one["name"]]) if one["name"] in limits else "-",
            value_text(one["unit"], one["value_before"]) if _is_changed(one) else "the same",
        )
        for one in listed
    ]
    note = (
        '"at least" is a bound of all plans that worsen the objectives before by no more than is tolerated, "at most"'
        " what the objectives after may worsen a value to"
    )
    return ["Ordered objectives", *columns(rows), *paragraph(note)]


def _is_changed(one: OrderedObjectiveDocument) -> bool:
    return abs(one["value_before"] - one["value"]) > _CHANGED * abs(one["value_before"])


def value_text(unit: str, value: float) -> str:
    """Return a value of an objective as people read it."""
    if unit == "share":
        return f"{100 * value:.1f}%"
    return format_seconds(value) if unit == "seconds" else format_bytes(value)
