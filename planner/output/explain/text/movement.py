"""What moves from the previous plan, as text for people."""

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.search import MovementDocument
from planner.output.explain.text.layout import paragraph, short_digest
from planner.output.explain.text.unit_of_work import unit_of_work


def movement_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about the previous plan, none where there was none."""
    movement = plan.get("movement")
    if not movement:
        return []
    digest = movement["previous_plan_digest"]
    lines = [f"From the previous plan{f' {short_digest(digest)}' if digest else ''}", *_bytes(movement)]
    if movement["moved_bytes"]:
        lines += paragraph(_busiest(movement))
    lines += paragraph(_gain(movement, plan["objective"]["seconds"], unit_of_work(plan["objective"]["name"])))
    return lines


def _bytes(movement: MovementDocument) -> list[str]:
    moved, unmoved, new = movement["moved_bytes"], movement["kept_bytes"], movement["new_bytes"]
    share = f" ({moved / (moved + unmoved):.1%})" if moved + unmoved else ""
    if not moved and not new:
        return paragraph(f"nothing moves; all {format_bytes(unmoved)} stay where they are")
    text = f"{format_bytes(moved)} move{share}, {format_bytes(unmoved)} stay"
    if new:
        text += f", {format_bytes(new)} are of tables that are new or have another shape"
    if movement["max_moved_bytes"] is not None:
        text += f"; at most {format_bytes(movement['max_moved_bytes'])} may move"
    return paragraph(text)


def _busiest(movement: MovementDocument) -> str:
    sent, received = movement["most_sent"], movement["most_received"]
    text = (
        f"between {counted(movement['num_rank_pairs'], 'pair')} of ranks; rank {sent['rank']} sends most, "
        f"{format_bytes(sent['bytes'])}, and rank {received['rank']} receives most, {format_bytes(received['bytes'])}"
    )
    if movement["seconds"] is None:
        return text + "; how fast is not known"
    evidence = f" (link speed {movement['link_evidence']})" if movement["link_evidence"] else ""
    return f"{text}: about {format_seconds(movement['seconds'])}{evidence}"


def _gain(movement: MovementDocument, seconds: float, unit: str) -> str:
    before, saved = movement["previous_objective_seconds"], movement["saved_seconds_per_step"]
    if before is None or saved is None:
        return f"the previous plan is no longer legal: {movement['previous_issue']}"
    text = f"the previous plan would take {format_seconds(before)}"
    if not movement["moved_bytes"] or saved <= 0:
        return text + (" and stays" if seconds == before else "")
    steps = movement["break_even_steps"]
    after = "" if steps is None else f"; the move has paid for itself after {counted(steps, unit)}"
    return f"{text}: {format_seconds(saved)} less per {unit}{after}{_doubt(movement)}"


def _doubt(movement: MovementDocument) -> str:
    """Return a warning where the cost model cannot say whether anything is saved."""
    lower, upper = movement.get("saved_lower_seconds"), movement.get("saved_upper_seconds")
    if lower is None or upper is None or lower > 0:
        return ""
    lost = format_seconds(-lower)
    return (
        f"; but that lies inside the interval of the prediction, from {lost} more to {format_seconds(upper)} less:"
        " measure both plans"
    )
