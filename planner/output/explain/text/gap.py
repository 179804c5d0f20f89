"""What the gap of a plan consists of, as text for people."""

from planner.domain.formats.units import format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.search import GapPartsDocument
from planner.output.explain.text.layout import paragraph

_LEAST_PART = 0.01  # of the gap, that is worth a word


def gap_lines(plan: CompactPlanDocument) -> list[str]:
    """Return what the gap consists of, and what a longer solve would do; none of a plan that is proven optimal."""
    parts = plan.get("gap_parts")
    if parts is None or plan["termination"]["reason"] == "OPTIMAL":
        return []
    gap_seconds = parts["balance_seconds"] + parts["packing_seconds"] + parts["choice_seconds"]
    least = _LEAST_PART * gap_seconds
    seconds = format_seconds
    named = [
        sentence
        for part_seconds, sentence in (
            (
                parts["balance_seconds"],
                f"other ranks for the same shards gain at most {seconds(parts['balance_seconds'])}",
            ),
            (
                parts["packing_seconds"],
                f"{seconds(parts['packing_seconds'])} is lost because the shards do not divide evenly among ranks",
            ),
            (
                parts["choice_seconds"],
                f"the shards cost {seconds(parts['choice_seconds'])} more than the mix of shardings that the bound"
                " assumes",
            ),
        )
        if part_seconds > least
    ]
    if not named:
        return []
    return [
        *paragraph(f"the gap is {seconds(gap_seconds)}: {'; '.join(named)}"),
        *_outlook(parts, plan["provenance"].get("late_gain_seconds")),
    ]


def _outlook(parts: GapPartsDocument, gained: float | None) -> list[str]:
    words = []
    if parts["refuted_seconds"] > 0:
        words.append(f"branching raised the bound by {format_seconds(parts['refuted_seconds'])}")
    if parts["is_bound_final"]:
        words.append("a longer solve cannot raise the bound")
    if gained is not None:
        what = f"gained {format_seconds(gained)}" if gained > 0 else "gained less than 0.1%"
        words.append(f"the second half of the solve {what}")
    return paragraph("; ".join(words)) if words else []
