"""What changed from one plan to another, as text for people."""

from collections.abc import Sequence

from cost_models.text.number_text import counted, number_ranges
from planner.domain.formats.compact_form import shards_of
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument, CompactTableDocument
from planner.output.explain.difference import Pair, PlanDifference, difference
from planner.output.explain.shard_groups import ranks_with
from planner.output.explain.text.layout import columns, paragraph, short_digest, shortened
from planner.output.explain.text.replica_groups import ranks_text
from planner.output.explain.text.storage import storage_of, with_storage

MAX_TABLE_ROWS = 40
LARGEST_CHANGE_SHOWN = 100.0  # beyond it, the factor


def compare_plans(a: CompactPlanDocument, b: CompactPlanDocument) -> str:
    """Return the differences of two plan documents, A and B, at most 80 columns wide."""
    found = difference(a, b)
    sections = (_heading(a, b, found), _numbers(found), _tables(a, b, found))
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _heading(a: CompactPlanDocument, b: CompactPlanDocument, found: PlanDifference) -> list[str]:
    lines = [
        f"{label}  {short_digest(plan['plan_digest'])}  {shortened(plan['name'], 30)}, {_ranks(plan)}"
        for label, plan in (("A", a), ("B", b))
    ]
    if found.same_plan:
        lines.append("The same plan: every shard of every table is where it was.")
    sizes = [plan.get("replica_groups") for plan in (a, b)]
    if sizes[0] != sizes[1]:
        lines += paragraph(
            "The sharding groups differ: ranks are numbered within a group, so that one number may be two ranks.",
            indent="",
        )
    if not found.same_spec:
        lines.append("The specs differ: seconds may differ for reasons other than the placement.")
    if not found.same_prices:
        models = [plan["provenance"]["cost_model"] for plan in (a, b)]
        lines += paragraph(
            f"Priced by {models[0]} (A) and {models[1]} (B): seconds of the two cannot be compared.", indent=""
        )
    for name in found.doubtful:
        lower, upper = found.changes[name]
        lines += paragraph(
            f"{name} differs by less than the cost model knows: B may take {format_seconds(-lower)} less or"
            f" {format_seconds(upper)} more. Measure both plans.",
            indent="",
        )
    return lines


def _ranks(plan: CompactPlanDocument) -> str:
    return counted(plan["world_size"], "rank") if plan.get("replica_groups") is None else ranks_text(plan)


def _numbers(found: PlanDifference) -> list[str]:
    rows = [("", "A", "B", "change")]
    for name, pair in {**found.objectives, **found.phases}.items():
        rows.append((name, format_seconds(pair.before), format_seconds(pair.after), _change(pair)))
    for tier, full in found.fullest_rank_bytes.items():
        rows.append((f"fullest rank, {tier}", format_bytes(full.before), format_bytes(full.after), _change(full)))
    return ["Objectives, phases and memory", *columns(rows)]


def _change(pair: Pair) -> str:
    change = pair.relative_change
    if change is None:
        return "" if pair.after == pair.before else "new"
    return f"{change:+.2%}" if change < LARGEST_CHANGE_SHOWN else f"x {pair.after / pair.before:.3g}"


def _cut(table: CompactTableDocument) -> str:
    ranks = number_ranges(ranks_with(table))
    return f"{table['sharding_type']} [{shortened(ranks, 9)}]"


def _storages(before: CompactTableDocument | None, after: CompactTableDocument | None) -> list[str]:
    """Return how the rows are stored in A and in B: once if that is the same, nothing if both are plain."""
    texts = ["-" if table is None else storage_of(table) or "fused, fp32" for table in (before, after)]
    plain = all(table is None or not storage_of(table) for table in (before, after))
    if plain:
        return []
    return texts[:1] if texts[0] == texts[1] else [f"A: {texts[0]}", f"B: {texts[1]}"]


def _size(table: CompactTableDocument) -> str:
    """Return rows and columns: ``"1,000 x 64"``."""
    shards = shards_of(table["shards"])
    rows = max((shard["row_offset"] + shard["num_rows"] for shard in shards), default=0)
    return f"{rows:,} x {max((shard['column_offset'] + shard['num_columns'] for shard in shards), default=0):,}"


def _sizes(before: CompactTableDocument | None, after: CompactTableDocument | None) -> list[str]:
    """Return rows and columns in A and in B if they differ: the same cut of a larger table looks like no change."""
    if before is None or after is None or (sizes := (_size(before), _size(after)))[0] == sizes[1]:
        return []
    return [f"{sizes[0]} in A, {sizes[1]} in B"]


def _tables(a: CompactPlanDocument, b: CompactPlanDocument, found: PlanDifference) -> list[str]:
    before = {table["name"]: table for table in a["tables"]}
    after = {table["name"]: table for table in b["tables"]}
    lines = [
        f"Tables: {found.unchanged:,} unchanged, {len(found.changed):,} changed, {len(found.new):,} new,"
        f" {len(found.gone):,} gone",
        f"  {format_bytes(found.moved_bytes)} on other ranks, or cut again",
    ]
    names: Sequence[str] = (*found.changed, *found.new, *found.gone)
    rows = [("table", "A", "B")]
    rows += [
        (
            shortened(name, 18),
            _cut(before[name]) if name in before else "-",
            _cut(after[name]) if name in after else "-",
        )
        for name in names[:MAX_TABLE_ROWS]
    ]
    if names:
        pairs = [(before.get(name), after.get(name)) for name in names[:MAX_TABLE_ROWS]]
        notes = [[*_sizes(*pair), *_storages(*pair)] for pair in pairs]
        lines += with_storage(columns(rows, left=(0, 1, 2)), notes)
    if len(names) > MAX_TABLE_ROWS:
        lines.append(f"  ... and {counted(len(names) - MAX_TABLE_ROWS, 'more table')}")
    return lines
