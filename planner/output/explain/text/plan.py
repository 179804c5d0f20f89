"""A plan as text for people: what it costs, who is slowest, what is full, what was assumed."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from cost_models.text.number_text import at_most_text, counted, number_ranges, number_text
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument, CompactTableDocument
from planner.output.documents.step import RankDocument
from planner.output.explain.shard_groups import bytes_of, rank_loads, ranks_with, shards_in
from planner.output.explain.text.checkpoint import checkpoint_lines
from planner.output.explain.text.fullest_ranks import fullest_ranks
from planner.output.explain.text.gap import gap_lines
from planner.output.explain.text.growth import growth_lines
from planner.output.explain.text.index_dedup import index_dedup_lines
from planner.output.explain.text.kv_cache import kv_cache_lines
from planner.output.explain.text.layout import (
    INDENT,
    WIDTH,
    columns,
    paragraph,
    short_digest,
    shortened,
    stacked_bar,
    wrapped,
)
from planner.output.explain.text.movement import movement_lines
from planner.output.explain.text.objectives import objective_lines
from planner.output.explain.text.prediction import prediction_lines
from planner.output.explain.text.replica_groups import ranks_text, replica_group_lines
from planner.output.explain.text.starts import start_lines
from planner.output.explain.text.stash import stash_lines
from planner.output.explain.text.step_memory import step_memory_lines
from planner.output.explain.text.storage import storage_of, with_storage
from planner.output.explain.text.verdict import verdict_text
from planner.output.explain.text.whole_step import whole_step_lines
from planner.output.explain.verdict import LARGEST_GAP_SHOWN, verdict_of

#: One character per phase in the bars.
PHASE_GLYPHS = {
    "input_comm": "·",
    "forward_compute": "█",
    "forward_comm": "▒",
    "backward_comm": "░",
    "backward_compute": "▓",
    "prefetch": "+",
    "checkpoint": "×",
    "replica_sync": "≈",
    "kv_recompute": "○",
}
#: In the source of a default: how many tables it is for, of how many.
_OF_TABLES = re.compile(r"([0-9,]+) of ([0-9,]+) tables?")
#: A number of the hardware with its unit, which the name repeats.
_HARDWARE_NUMBER = re.compile(
    r"hardware\.(\w+?)_(?:bytes_per_second|flops_per_second|per_second|bytes|seconds) (\S+)"
    r" (bytes_per_second|operations_per_second|flops_per_second|bytes|seconds)"
)
_NAME_WIDTH = len("request_latency")  # the longest name of an objective
MAX_RANK_ROWS = 16  # beyond that: the slowest (or fullest) ones, and a count of the rest
MAX_TABLE_ROWS = 8
#: Times an even share of the lookups, from which on the rank that has them is named.
UNEVEN_LOOKUPS = 2.0
MAX_TIME_BAR, MAX_BYTES_BAR = 54, 36  # characters
#: Evidence from strong to weak, then what is no number.
EVIDENCE_ORDER = ("measured", "given", "datasheet", "estimated", "default", "note")
COUNTABLE = ("default", "note")  # nouns; the others are adjectives of numbers


def explain_plan(plan: CompactPlanDocument) -> str:
    """Return all that people want to know of a plan document, at most 80 columns wide; see ``summarise_plan``."""
    sections = (
        _heading(plan),
        _objective(plan),
        objective_lines(plan),
        whole_step_lines(plan),
        prediction_lines(plan),
        movement_lines(plan),
        _serving(plan),
        kv_cache_lines(plan),
        replica_group_lines(plan),
        index_dedup_lines(plan),
        _phases(plan),
        start_lines(plan),
        _rank_times(plan),
        _rank_bytes(plan),
        step_memory_lines(plan),
        stash_lines(plan),
        growth_lines(plan),
        _tiers(plan),
        checkpoint_lines(plan),
        _schemes(plan),
        _largest_tables(plan),
        _assumptions(plan),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _heading(plan: CompactPlanDocument) -> list[str]:
    provenance = plan["provenance"]
    lines = (
        f"Plan of {plan['name']}",
        f"  digest   {short_digest(plan['plan_digest'])}",
        f"  cluster  {ranks_text(plan)}, {provenance['hardware_profile']}",
        f"  prices   {provenance['cost_model']}",
    )
    return [*(shortened(line, WIDTH) for line in lines), *paragraph(verdict_text(verdict_of(plan)))]


def _objective(plan: CompactPlanDocument) -> list[str]:
    objective, termination, provenance = plan["objective"], plan["termination"], plan["provenance"]
    lines = [
        "Objective",
        f"  {objective['name']:<{_NAME_WIDTH}}  {format_seconds(objective['seconds'])}"
        f"   lower bound {format_seconds(objective['lower_bound_seconds'])}"
        f"   gap {gap_text(objective['relative_gap'])}",
    ]
    for other in ("step_time", "max_rank_time"):
        seconds = objective.get(f"{other}_seconds")
        if other != objective["name"] and isinstance(seconds, float | int):
            lines.append(f"  {other:<{_NAME_WIDTH}}  {format_seconds(seconds)}   (the other objective, for comparison)")
    limit = f", stopped by {termination['limit']}" if termination["limit"] else ""
    finder = f" by {provenance['partitioner']}" if provenance.get("partitioner") else ""
    length = format_seconds(provenance["solver_seconds"])
    found_seconds = provenance.get("found_seconds")  # of earlier plans only the search's length is known
    when = f" in {format_seconds(found_seconds)}" if found_seconds is not None else ""
    lines += paragraph(
        f"{termination['reason']}{limit}; found{finder}{when}, searched for {length}, seed {provenance['seed']}"
    )
    if termination["detail"]:
        lines += paragraph(termination["detail"])
    return [*lines, *gap_lines(plan)]


def _serving(plan: CompactPlanDocument) -> list[str]:
    serving = plan.get("serving")
    if serving is None:
        return []
    samples, messages = counted(serving["samples_per_request"], "sample"), counted(serving["num_messages"], "message")
    rate, limit = serving["requests_per_second"], f"{serving['utilization_limit']:.4g}"
    lines = ["Requests", *paragraph(f"{samples} each, {messages} between the host and its cards")]
    lines += paragraph(
        f"rank {serving['busiest_rank']} is busiest, {format_seconds(serving['busy_seconds'])} with each"
    )
    if rate is not None:
        lines += paragraph(f"{number_text(rate)} per second keep it busy for {serving['utilization']:.4g} of its time")
    half, most, asked = serving.get("p50_seconds"), serving.get("p99_seconds"), serving.get("p99_limit_seconds")
    if half is not None and most is not None:
        within = "" if asked is None else f"; {format_seconds(asked)} are asked"
        lines += paragraph(
            f"come at random, half are answered within {format_seconds(half)}, 99 of 100 within"
            f" {format_seconds(most)}{within}"
        )
    if (sustained := serving["sustained_requests_per_second"]) is not None:
        and_p99 = "" if asked is None else f" and 99 of 100 within {format_seconds(asked)}"
        lines += paragraph(f"at most {at_most_text(sustained)} per second, at a limit of {limit}{and_p99}")
    return lines


def gap_text(gap: float | None) -> str:
    """Return a gap in percent, as far as its digits say anything."""
    if gap is None:
        return "unknown"
    return f"{gap:.2%}" if gap < LARGEST_GAP_SHOWN else f"over {LARGEST_GAP_SHOWN:.0%}"


def _phases(plan: CompactPlanDocument) -> list[str]:
    rows = [("phase", "slowest", "seconds", "mean", "hidden", "evidence")]
    rows += [
        (
            f"{PHASE_GLYPHS.get(phase['name'], '?')} {phase['name']}",
            str(phase["slowest_rank"]),
            format_seconds(phase["seconds"]),
            format_seconds(phase["mean_seconds"]),
            format_seconds(phase.get("hidden_seconds", 0.0)) if phase.get("counted", True) else "not counted",
            phase.get("evidence", ""),
        )
        for phase in plan["phases"]
        if phase["seconds"] > 0
    ]
    if not rows[1:]:
        return []
    waits = "each lasts as long as its slowest rank" if plan.get("serving") is None else "ranks do not wait for others"
    return [f"Phases ({waits})", *columns(rows, left=(0, 5))]


def _rank_times(plan: CompactPlanDocument) -> list[str]:
    ranks = rank_loads(plan)
    names = [phase["name"] for phase in plan["phases"] if phase.get("counted", True)]
    parts = {
        rank["rank"]: [(PHASE_GLYPHS.get(name, "?"), rank["seconds"].get(name, 0.0)) for name in names]
        for rank in ranks
    }
    total = {rank: sum(seconds for _, seconds in bar) for rank, bar in parts.items()}
    slowest = max(total.values(), default=0.0)
    shown, hidden = _worth_showing(ranks, total)
    lines = ["Seconds per rank"]
    lines += [
        _bar_line(rank, parts[rank], slowest, f"{format_seconds(total[rank]):>9}", MAX_TIME_BAR) for rank in shown
    ]
    return lines + _left_out(hidden, total, format_seconds) + _uneven_lookups(ranks)


def _uneven_lookups(ranks: Sequence[RankDocument]) -> list[str]:
    """Return who looks up most, where that is far from an even share."""
    lookups = {rank["rank"]: rank.get("lookups") or 0.0 for rank in ranks}
    total, most = sum(lookups.values()), max(lookups, key=lambda rank: lookups[rank], default=0)
    if total <= 0 or lookups[most] * len(lookups) < UNEVEN_LOOKUPS * total:
        return []
    return paragraph(
        f"rank {most} makes {lookups[most] / total:.0%} of the lookups; an even share is {1 / len(lookups):.1%}"
    )


def _bar_line(rank: int, parts: Sequence[tuple[str, float]], full: float, amounts: str, max_bar: int) -> str:
    """Return the line of a rank: its bar, as long as the line leaves room for, and its amounts."""
    label = f"{INDENT}rank {rank:>4}  "
    bar = stacked_bar(parts, full, min(max_bar, WIDTH - len(label) - len("  ") - len(amounts)))
    return f"{label}{bar}  {amounts}"


def _left_out(hidden: Sequence[int], amount: Mapping[int, float], written: Callable[[float], str]) -> list[str]:
    """Return how many ranks are not shown, and between which amounts they are."""
    if not hidden:
        return []
    least, most = (written(end(amount[rank] for rank in hidden)) for end in (min, max))
    spread = most if least == most else f"{least} to {most}"
    return [f"{INDENT}... and {counted(len(hidden), 'more rank')}: {spread}"]


def _rank_bytes(plan: CompactPlanDocument) -> list[str]:
    lines: list[str] = []
    ranks = rank_loads(plan)
    fullest = fullest_ranks([rank["bytes"] for rank in ranks])
    for tier in (one.tier for one in fullest):
        used = {rank["rank"]: rank["bytes"].get(tier, 0.0) for rank in ranks}
        capacity = {rank["rank"]: rank["capacity_bytes"].get(tier, 0.0) for rank in ranks}
        lines.append(f"Bytes per rank in {tier}, of what is left after reservations")
        shown, hidden = _worth_showing(ranks, used)
        for rank in shown:
            share = used[rank] / capacity[rank] if capacity[rank] else 0.0
            parts = [("█", used[rank]), ("·", capacity[rank] - used[rank])]
            amounts = f"{format_bytes(used[rank]):>8} of {format_bytes(capacity[rank]):<8} {share:>4.0%}"
            lines.append(_bar_line(rank, parts, capacity[rank], amounts, MAX_BYTES_BAR))
        lines += _left_out(hidden, used, format_bytes)
    for one in fullest:
        lines += _ledger(ranks[one.position], one.tier)
    return lines


def _tiers(plan: CompactPlanDocument) -> list[str]:
    """Return how much of a step, or of a request, the tiers other than the accelerators' memory are busy."""
    rows = [("tier", "rank", "read", "written", "busy", "of it")]
    rows += [
        (
            tier["name"],
            str(tier["busiest_rank"]),
            format_bytes(tier["read_bytes"]),
            format_bytes(tier["written_bytes"]),
            format_seconds(tier["busy_seconds"]),
            f"{tier['utilization']:.0%}",
        )
        for tier in plan.get("tiers", [])
    ]
    what = "request" if plan.get("serving") is not None else "step (with its dense part)"
    title = f"Traffic of one {what}, on the busiest rank"
    return [title, *columns(rows, left=(0,))] if rows[1:] else []


def _ledger(rank: RankDocument, tier: str) -> list[str]:
    """Return what the fullest rank of a tier holds there, and what it may not use of it."""
    lines: list[str] = []
    for label, ledger in (("holds", rank.get("ledger_bytes", {})), ("keeps free", rank.get("reserved_bytes", {}))):
        parts = [f"{name} {format_bytes(value)}" for name, value in ledger.get(tier, {}).items() if value > 0]
        if parts:
            lines += wrapped(parts, label=f"rank {rank['rank']} {label} in {tier}:")
    estimated = (rank.get("torchrec_bytes") or {}).get(tier)
    if estimated:
        lines.append(f"  rank {rank['rank']} would hold {format_bytes(estimated)} in {tier} by TorchRec's own estimate")
    return lines


def _worth_showing(ranks: Sequence[RankDocument], amount: Mapping[int, float]) -> tuple[list[int], list[int]]:
    """Return the ranks to show, those with the largest amounts, in order of rank; and the others."""
    every = [rank["rank"] for rank in ranks]
    if len(every) <= MAX_RANK_ROWS:
        return every, []
    by_amount = sorted(every, key=lambda rank: (-amount[rank], rank))
    return sorted(by_amount[:MAX_RANK_ROWS]), by_amount[MAX_RANK_ROWS:]


def _schemes(plan: CompactPlanDocument) -> list[str]:
    groups: dict[tuple[str, str], list[CompactTableDocument]] = {}
    for table in plan["tables"]:
        groups.setdefault((table["sharding_type"], table["compute_kernel"]), []).append(table)
    has_caches = any(table.get("cache_load_factor") for table in plan["tables"])
    head = ("scheme", "kernel", *(("cached",) if has_caches else ()), "tables", "shards", "bytes")
    rows: list[tuple[str, ...]] = [head]
    rows += [
        (
            scheme,
            kernel,
            *((_shares(tables),) if has_caches else ()),
            f"{len(tables):,}",
            f"{sum(map(shards_in, tables)):,}",
            format_bytes(sum(bytes_of(table) for table in tables)),
        )
        for (scheme, kernel), tables in sorted(groups.items(), key=lambda item: -sum(map(bytes_of, item[1])))
    ]
    num_tables = len(plan["tables"])
    title = "How the table is cut" if num_tables == 1 else f"How the {num_tables:,} tables are cut"
    types = Counter(name for table in plan["tables"] if (name := table.get("data_type")))
    parts = [f"{name} {counted(types[name], 'table')}" for name in sorted(types)] if types.keys() - {"fp32"} else []
    return [title, *columns(rows, left=(0, 1)), *(wrapped(parts, label="weights:") if parts else [])]


def _shares(tables: Sequence[CompactTableDocument]) -> str:
    """``"0.02-0.4"``: cached shares of tables, from the least to the most."""
    shares = sorted({share for table in tables if (share := table.get("cache_load_factor"))})
    return "" if not shares else f"{shares[0]:.3g}" if len(shares) == 1 else f"{shares[0]:.3g}-{shares[-1]:.3g}"


def _largest_tables(plan: CompactPlanDocument) -> list[str]:
    largest = sorted(plan["tables"], key=lambda table: (-bytes_of(table), table["name"]))[:MAX_TABLE_ROWS]
    rows = [("table", "scheme", "bytes", "shards", "ranks")]
    rows += [
        (
            shortened(table["name"], 24),
            table["sharding_type"],
            format_bytes(bytes_of(table)),
            str(shards_in(table)),
            shortened(number_ranges(ranks_with(table)), 18),
        )
        for table in largest
    ]
    title = f"The largest {len(largest)} of them" if len(plan["tables"]) > 1 else "Where it is"
    if not largest:
        return []
    return [title, *with_storage(columns(rows, left=(0, 1, 4)), [[storage_of(table)] for table in largest])]


def _assumptions(plan: CompactPlanDocument) -> list[str]:
    evidence = plan["provenance"]["evidence"]
    if not evidence:
        return []
    counts = Counter(entry["evidence"] for entry in evidence.values())
    summary = [
        counted(counts[kind], kind) if kind in COUNTABLE else f"{counts[kind]} {kind}"
        for kind in EVIDENCE_ORDER
        if counts[kind]
    ]
    lines = wrapped(summary, label="What the plan rests on:", is_heading=True)
    for kind in EVIDENCE_ORDER:
        entries = [(subject, entry) for subject, entry in evidence.items() if entry["evidence"] == kind]
        if kind == "note":
            for _, entry in entries:
                lines += paragraph(f"note: {entry['value']}")
        elif entries:
            assumed = [f"{_assumed(subject, entry['value'])}{_of_some(entry['source'])}" for subject, entry in entries]
            lines += wrapped(assumed, label=f"{kind}:")
    return lines


def _of_some(source: str) -> str:
    """``" (1 of 3 tables)"`` where not all tables have a default."""
    found = _OF_TABLES.search(source)
    return f" ({found[0]})" if found is not None and found[1] != found[2] else ""


def _assumed(subject: str, value: str) -> str:
    """``"hbm 80.0 GB"`` for a number of the hardware, ``"model.pipeline = none"`` for anything else."""
    number = _HARDWARE_NUMBER.fullmatch(f"{subject} {value}")
    if number is None:
        return f"{subject.removeprefix('hardware.')} = {value}"
    name, amount, unit = number.groups()
    if unit == "operations_per_second":
        return f"{name} {float(amount):,.0f}/s"
    if unit == "flops_per_second":
        return f"{name} {float(amount) / 1e12:,.4g} Tflop/s"
    if unit == "seconds":
        return f"{name} {format_seconds(float(amount))}"
    return f"{name} {format_bytes(float(amount))}{'/s' if unit == 'bytes_per_second' else ''}"
