"""An explanation as text for people: what binds, what hardware would buy, why tables are cut so."""

from collections.abc import Sequence

from cost_models.text.number_text import counted, number_ranges
from planner.domain.formats.units import format_bytes, format_seconds
from planner.domain.problem.problem import REQUEST_LATENCY
from planner.output.explain.bottlenecks import NEAR_SLOWEST, BindingPhase
from planner.output.explain.explanation import Explanation, TableReason
from planner.output.explain.memory_peak import MemoryPeak
from planner.output.explain.shadow_prices import AT_MOST, RELAXATION, ShadowPrice
from planner.output.explain.text.layout import INDENT, WIDTH, columns, paragraph, shortened
from planner.output.explain.text.unit_of_work import unit_of_work
from planner.output.explain.tier_use import Binding, TierUse, binding_rate
from planner.solver.problem import Objective

_RANKS_WIDTH = 14  # characters; what the other columns leave
_MORE = ", ..."


def explanation_text(explanation: Explanation, *, name: str) -> str:
    """Return an explanation of the plan of ``name`` as text, at most 80 columns wide."""
    sections = (
        _heading(explanation, name),
        _phases(explanation.phases, explanation.objective, explanation.shadow_prices),
        _tiers(explanation.tiers, unit_of_work(explanation.objective)),
        _memory(explanation.memory),
        _prices(explanation.shadow_prices),
        _tables(explanation.tables, explanation.num_tables),
    )
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _heading(explanation: Explanation, name: str) -> list[str]:
    sentence = (
        f"{explanation.objective} is {format_seconds(explanation.objective_seconds)}, as {explanation.cost_model}"
        f" predicts it; a relaxed problem, which may mix the cuts of a table and spread it at will, takes"
        f" {format_seconds(explanation.bound_seconds)}: a quick bound, above which the search may have proven more"
    )
    return [
        shortened(f"Why the plan of {name} is as it is", WIDTH),
        *paragraph(sentence),
        *paragraph(_binding(explanation.binding)),
    ]


def _binding(found: Binding) -> str:
    """Name the rate and the tiers that the plan waits for."""
    tiers = " and ".join(tier.label for tier in found.tiers)
    rate = f"the rate that binds most is {found.rate}" if found.rate else "no rate binds"
    return f"{rate}; " + (f"memory that binds: {tiers}" if tiers else "no memory binds")


def _phases(phases: Sequence[BindingPhase], objective: str, prices: Sequence[ShadowPrice]) -> list[str]:
    if not phases:
        return []
    rows = [("phase", "exposed", "hidden", "share", "relaxed", "evidence", "ranks")]
    rows += [
        (
            one.phase.label,
            format_seconds(one.exposed_seconds),
            format_seconds(one.hidden_seconds),
            f"{one.objective_share:.1%}",
            "-" if one.relaxed_seconds is None else format_seconds(one.relaxed_seconds),
            one.evidence.label,
            _ranks(one.ranks),
        )
        for one in phases
    ]
    if objective in (Objective.MAX_RANK_TIME.name.lower(), REQUEST_LATENCY):
        title, legends = "the rank whose phases add up to most", ["all phases are those of that rank"]
    else:
        title = "each phase lasts as long as its slowest rank"
        legends = [
            "exposed: what the step waits for, and share of the objective; hidden: what runs under dense compute",
            "relaxed: what the step waits for in the relaxed problem behind the bound; far less than exposed where the"
            " placement, and not the hardware, makes the phase slow",
        ]
    return [
        f"What binds: {title}",
        *columns(rows, left=(0, 5, 6)),
        *(line for legend in legends for line in paragraph(legend, hanging=INDENT)),
        *paragraph(f"ranks: the slowest one and those within {NEAR_SLOWEST:.0%} of it"),
        *paragraph("the rate of which more shortens each phase most:"),
        *columns(
            [(INDENT + one.phase.label, binding_rate(prices, one.phase) or "none") for one in phases], left=(0, 1)
        ),
    ]


def _tiers(uses: Sequence[TierUse], unit: str) -> list[str]:
    """Return how full and how busy tiers are, if any but the device's own memory is used."""
    if all(one.busiest_rank is None for one in uses):
        return []
    rows = [("tier", "holds", "of", "full", "busy", "most of it at")]
    rows += [
        (
            one.tier.label,
            format_bytes(one.used_bytes),
            format_bytes(one.capacity_bytes),
            f"{one.used_bytes / one.capacity_bytes:.1%}" if one.capacity_bytes > 0 else "-",
            "-" if one.busiest_rank is None else format_seconds(one.busy_seconds),
            one.rate or "-",
        )
        for one in uses
    ]
    return [f"What tiers hold on the fullest rank, and move in a {unit} on the busiest", *columns(rows, left=(0, 5))]


def _memory(peak: MemoryPeak | None) -> list[str]:
    """Return when the fullest device holds most."""
    if peak is None:
        return []
    sentence = (
        f"rank {peak.rank} holds most, {format_bytes(peak.peak_bytes)} of {format_bytes(peak.device_bytes)}, in"
        f" {peak.peak_phase.label}; {format_bytes(peak.buffer_bytes)} of that are buffers of this phase"
    )
    if peak.largest_buffer:
        sentence += f", {peak.largest_buffer} above all"
    return ["When memory is fullest", *paragraph(sentence)]


def _ranks(ranks: Sequence[int]) -> str:
    """Return as many ranks as there is room for, and dots where there are more."""
    sentence = number_ranges(ranks)
    if len(sentence) <= _RANKS_WIDTH:
        return sentence
    return sentence[: sentence.rfind(",", 0, _RANKS_WIDTH - len(_MORE) + 1)] + _MORE


def _prices(prices: Sequence[ShadowPrice]) -> list[str]:
    lines = ["What more hardware would buy"]
    alike: dict[str, list[str]] = {}  # resources by what more of each saves
    for one in prices:
        if one.method == RELAXATION:
            saves = _saved(one) if one.evidence is None else f"saves {_saved(one)}; {one.note}"
            alike.setdefault(f"{one.change}: {saves}", []).append(one.resource)
    for sentence, resources in alike.items():
        lines += paragraph(f"{' or '.join(resources)}, {sentence}", hanging=INDENT)
    again = [one for one in prices if one.method != RELAXATION]
    for change in dict.fromkeys(one.change for one in again):
        lines += paragraph(
            f"{change} of one rate, with all tables left where they are (a new plan may gain more), saves:"
        )
        rates = [one for one in again if one.change == change]
        lines += columns([(INDENT + one.resource, _saved(one)) for one in rates], left=(0, 1))
    return lines


def _saved(price: ShadowPrice) -> str:
    """What a change saves, and how well that is known; why not, where nothing was computed."""
    if price.saved_seconds is None or price.evidence is None:
        return price.note
    limit = "at most" if price.direction == AT_MOST else "at least"
    saved = "nothing" if price.saved_seconds == 0 else f"{limit} {format_seconds(price.saved_seconds)}"
    return f"{saved} ({price.evidence.label})"


def _tables(tables: Sequence[TableReason], num_tables: int) -> list[str]:
    if not tables:
        return []
    lines = [
        f"Why tables are cut so ({len(tables):,} of {counted(num_tables, 'table')})",
        *paragraph(
            "in brackets: seconds that the table takes on the slowest ranks; next best: the other cut that would cost"
            " least, were all other tables left where they are"
        ),
    ]
    for one in tables:
        sentence = f"{shortened(one.name, 40)} ({format_seconds(one.binding_seconds)}) is {one.reason}"
        lines += paragraph(sentence, hanging=INDENT)
    return lines
