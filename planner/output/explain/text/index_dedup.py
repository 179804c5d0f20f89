"""What leaving out repeated ids saves and takes under a plan, as text for people."""

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.index_dedup import IndexDedupDocument, IndexDedupSettingDocument
from planner.output.explain.text.layout import columns, paragraph

_STATES = {"ruled_out": "cannot win", "infeasible": "has no plan", "not_searched": "not searched"}


def index_dedup_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about deduplicated ids, none if the spec leaves none out."""
    found, is_used = plan.get("index_dedup"), bool(plan.get("use_index_dedup"))
    if found is None:
        return []
    left_out = "are left out" if is_used else "could be left out"
    lines = paragraph(
        f"{found['removed_share']:.0%} of the {counted(round(found['batch_ids']), 'id')} of sequences in a rank's batch"
        f" repeat others of it and {left_out}, with the rows that come back for them"
    )
    takes = "takes" if is_used else "would take"
    lines += paragraph(
        f"finding unique ids {takes} {format_seconds(found['unique_seconds'])} of every step, repeating rows"
        f" {format_seconds(found['repeat_seconds'])}, adding up their gradients"
        f" {format_seconds(found['merge_seconds'])}"
    )
    lines += paragraph(_comparison(found, is_used=is_used))
    if found["settings"]:
        rows: list[tuple[str, ...]] = [("use_index_dedup", "objective", "lower bound", "")]
        rows += [_row(one, is_used=is_used) for one in found["settings"]]
        lines += columns(rows, left=(0, 3))
    return [f"Deduplicated ids: {'on' if is_used else 'off'}", *lines]


def _comparison(found: IndexDedupDocument, *, is_used: bool) -> str:
    used, other = found["objective_seconds_with"], found["objective_seconds_without"]
    if not is_used:
        used, other = other, used
    difference = format_seconds(abs(other - used))
    word = "longer" if other > used else "shorter"
    pays = "" if other >= used else "; deduplication does not pay" if is_used else "; deduplication would pay"
    return f"the same shards {'without' if is_used else 'with'} it: {format_seconds(other)}, {difference} {word}{pays}"


def _row(one: IndexDedupSettingDocument, *, is_used: bool) -> tuple[str, ...]:
    return (
        "on" if one["use_index_dedup"] else "off",
        "-" if one["objective_seconds"] is None else format_seconds(one["objective_seconds"]),
        format_seconds(one["lower_bound_seconds"]) if one["lower_bound_seconds"] > 0 else "-",
        "chosen" if one["use_index_dedup"] == is_used else _STATES.get(one["state"], ""),
    )
