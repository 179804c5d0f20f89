"""What the gap of a plan consists of, as text for people."""

from planner.domain.formats.units import format_seconds
from planner.output.explain.text.layout import paragraph
from planner.output.plan_document import GapPartsDocument, PlanDocument

_LEAST_PART = 0.01  # of the gap, that is worth a word


def gap_lines(plan: PlanDocument) -> list[str]:
    """Return who is to blame for the gap, and what a longer solve would do; none of a plan that is proven optimal."""
    parts = plan.get("gap_parts")
    if parts is None or plan["termination"]["reason"] == "OPTIMAL":
        return []
    gap_seconds = parts["balance_seconds"] + parts["packing_seconds"] + parts["choice_seconds"]
    least = _LEAST_PART * gap_seconds
    blamed = [
        f"{format_seconds(seconds)} {reason}"
        for seconds, reason in (
            (parts["balance_seconds"], "at most can be gained with the same shards on other ranks"),
            (parts["packing_seconds"], "is lost because these shards do not divide evenly among ranks"),
            (parts["choice_seconds"], "is what they cost more than the mix of shardings that the bound assumes"),
        )
        if seconds > least
    ]
    if not blamed:
        return []
    return [*paragraph(f"of the gap of {format_seconds(gap_seconds)}, {'; '.join(blamed)}"), *_outlook(parts)]


def _outlook(parts: GapPartsDocument) -> list[str]:
    lines = []
    if parts["refuted_seconds"] > 0:
        raised = f"refuted cases raised the bound by {format_seconds(parts['refuted_seconds'])}"
        lines.append(raised + ("; a longer solve would not raise it" if parts["is_bound_final"] else ""))
    gained = parts["late_gain_seconds"]
    if gained is not None:
        what = f"gained {format_seconds(gained)}" if gained > 0 else "found no better plan"
        lines.append(f"the second half of the solve {what}")
    return paragraph("; ".join(lines)) if lines else []
