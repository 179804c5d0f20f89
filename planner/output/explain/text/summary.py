"""A plan on one screen: what it costs, what it waits for, what is full, how tables are cut."""

from collections import Counter
from collections.abc import Mapping

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.step import PhaseDocument, RankDocument
from planner.output.explain.shard_groups import rank_loads, shards_in
from planner.output.explain.text.fullest_ranks import fullest_ranks
from planner.output.explain.text.layout import WIDTH, columns, paragraph, short_digest, shortened, wrapped
from planner.output.explain.text.plan import EVIDENCE_ORDER, gap_text
from planner.output.explain.text.replica_groups import ranks_text
from planner.output.explain.text.verdict import verdict_text
from planner.output.explain.verdict import verdict_of

#: Lines of a summary: a terminal of 24 lines also has the name of the file and the next prompt.
MAX_LINES = 22
_MAX_PHASES = 3
_LINES_OF_NO_PHASE = 3  # an empty line, names of columns, and what is left out
_MAX_CUTS = 2
_MAX_TIERS = 2


def summarise_plan(plan: CompactPlanDocument) -> str:
    """Return the summary of a plan document, at most ``MAX_LINES`` lines of 80 columns."""
    above = [*_heading(plan), *paragraph(verdict_text(verdict_of(plan))), *_objective(plan)]
    below = [*_ranks(plan), *_cuts(plan)]
    room = MAX_LINES - len(above) - len(below) - _LINES_OF_NO_PHASE
    return "\n".join([*above, *_phases(plan, max(1, min(room, _MAX_PHASES))), *below])


def _heading(plan: CompactPlanDocument) -> list[str]:
    provenance = plan["provenance"]
    return [
        shortened(f"Plan of {plan['name']}, {short_digest(plan['plan_digest'])}", WIDTH),
        shortened(f"  {ranks_text(plan)}, {provenance['hardware_profile']}, prices {provenance['cost_model']}", WIDTH),
    ]


def _objective(plan: CompactPlanDocument) -> list[str]:
    objective, termination, provenance = plan["objective"], plan["termination"], plan["provenance"]
    lines = [
        f"  {objective['name']} {format_seconds(objective['seconds'])}"
        f"   lower bound {format_seconds(objective['lower_bound_seconds'])}"
        f"   gap {gap_text(objective['relative_gap'])}"
    ]
    limit = f", stopped by {termination['limit']}" if termination["limit"] else ""
    found_seconds = provenance.get("found_seconds")  # of earlier plans only the search's length is known
    found = "" if found_seconds is None else f"found after {format_seconds(found_seconds)}, "
    lines.append(
        shortened(
            f"  {termination['reason']}{limit}; {found}searched {format_seconds(provenance['solver_seconds'])}",
            WIDTH,
        )
    )
    if (step := plan.get("whole_step")) is not None:
        lines.append(
            f"  whole step {format_seconds(step['seconds'])}, {step['samples_per_second']:,.0f} samples per second"
        )
    if movement := plan.get("movement"):
        moved, unmoved = format_bytes(movement["moved_bytes"]), format_bytes(movement["kept_bytes"])
        what = f"{moved} move" if movement["moved_bytes"] or movement["new_bytes"] else "nothing moves"
        lines.append(f"  from the previous plan {what}, {unmoved} stay")
    return lines


def _phases(plan: CompactPlanDocument, most: int) -> list[str]:
    """Return the phases that take longest, ``most`` of them, each with its share of all seconds that count."""
    counted_phases = [phase for phase in plan["phases"] if phase["seconds"] > 0 and phase.get("counted", True)]
    total = sum(phase["seconds"] for phase in counted_phases)
    if not counted_phases:
        return []
    longest = sorted(counted_phases, key=lambda phase: -phase["seconds"])
    rows: list[tuple[str, ...]] = [("phase", "seconds", "share", "mean", "slowest rank")]
    rows += [_phase_row(phase, total) for phase in longest[:most]]
    lines = ["", *columns(rows)]
    if rest := longest[most:]:
        seconds = sum(phase["seconds"] for phase in rest)
        lines.append(f"  ... and {counted(len(rest), 'more phase')}: {format_seconds(seconds)}")
    return lines


def _phase_row(phase: PhaseDocument, total_seconds: float) -> tuple[str, ...]:
    return (
        phase["name"],
        format_seconds(phase["seconds"]),
        f"{phase['seconds'] / total_seconds:.0%}",
        format_seconds(phase["mean_seconds"]),
        str(phase["slowest_rank"]),
    )


def _ranks(plan: CompactPlanDocument) -> list[str]:
    """Return the slowest rank with the mean of all, and the fullest rank of each tier."""
    ranks = rank_loads(plan)
    names = {phase["name"] for phase in plan["phases"] if phase.get("counted", True)}
    seconds = {rank["rank"]: _seconds(rank, names) for rank in ranks}
    lines = []
    if seconds and (slowest := max(seconds, key=lambda rank: seconds[rank])) is not None:
        mean = sum(seconds.values()) / len(seconds)
        lines.append(
            f"  slowest         rank {slowest}, {format_seconds(seconds[slowest])}; mean of all {format_seconds(mean)}"
        )
    for one in fullest_ranks([rank["bytes"] for rank in ranks])[:_MAX_TIERS]:
        rank = ranks[one.position]
        capacity = rank["capacity_bytes"].get(one.tier, 0)
        share = f" ({one.used_bytes / capacity:.0%})" if capacity else ""
        amounts = f"{format_bytes(one.used_bytes)} of {format_bytes(capacity)}{share}"
        lines.append(f"  {f'fullest in {one.tier}':<15} rank {rank['rank']}, {amounts}")
    return lines


def _seconds(rank: RankDocument, names: set[str]) -> float:
    seconds: Mapping[str, float] = rank["seconds"]
    return sum(value for name, value in seconds.items() if name in names)


def _cuts(plan: CompactPlanDocument) -> list[str]:
    """Return how many tables each scheme has, and how well what the plan rests on is known."""
    tables: Counter[tuple[str, str]] = Counter()
    shards: Counter[tuple[str, str]] = Counter()
    for table in plan["tables"]:
        key = (table["sharding_type"], table["compute_kernel"])
        tables[key] += 1
        shards[key] += shards_in(table)
    common = tables.most_common()
    parts = [
        f"{counted(number, 'table')} {scheme} {kernel} in {counted(shards[scheme, kernel], 'shard')}"
        for (scheme, kernel), number in common[:_MAX_CUTS]
    ]
    if len(common) > _MAX_CUTS:
        parts.append(f"{sum(number for _, number in common[_MAX_CUTS:])} otherwise")
    evidence = Counter(entry["evidence"] for entry in plan["provenance"]["evidence"].values())
    known = ", ".join(f"{evidence[kind]:,} {kind}" for kind in EVIDENCE_ORDER[:-1] if evidence[kind])
    lines = wrapped(parts, label="cut:")
    if known:
        lines.append(shortened(f"  rests on: {known}", WIDTH))
    if notes := [entry["value"] for entry in plan["provenance"]["evidence"].values() if entry["evidence"] == "note"]:
        lines.append(shortened(f"  note: {notes[0]}" if len(notes) == 1 else f"  {len(notes)} notes: --full", WIDTH))
    return lines
