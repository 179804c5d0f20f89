"""What the report of a learned model says, in one form that text and page are made of.

A document was checked when it was read, but names, devices and libraries are any text: code that makes a page of
these facts escapes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cost_models.learned.reach.coverage import held_out_groups, verdicts
from cost_models.learned.reach.ranges import TOLERANCE
from cost_models.measurements.schema import COLLECTIVES
from cost_models.text.number_text import counted, number_text
from planner.domain.formats.units import format_bytes
from planner.options.schemes.geometry import PREFERRED_ORDER

#: What groups of held-out rows are by, as a reader sees them.
_GROUPINGS = {
    "all": "All",
    "phase": "By phase",
    "collective": "By operation and direction",
    "shards": "By shards fused in one launch",
    "bytes": "By bytes: of all rows looked up, or of the busiest rank",
    "ranks": "By ranks",
}
_FIGURES = ("Rows", "Mean error", "Median", "Tau", "Inside", "Width")
#: Kinds of measured rows, as a reader sees them.
KINDS = {"lookup": "lookups", "collective": "collectives"}
#: Parts of a document, and the rows that each learns from.
_PARTS = (("compute", "lookup"), ("exchange", "collective"))
ROOFLINE = "roofline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under headings; those of one body belong together, and its heading may be ``""``."""

    title: str
    note: str
    columns: tuple[str, ...]  # the first is flush left and names the row
    bodies: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All that a report says in words and numbers."""

    title: str
    summary: tuple[tuple[str, str], ...]
    verdicts: tuple[str, ...]  # whether what was measured is enough, and what to measure more
    tables: tuple[Table, ...]
    not_measured: tuple[str, ...]
    reference: str  # what cost_model of a spec says to mean this model


def facts(document: Mapping[str, Any]) -> Facts:
    """Return what there is to say of the document of a model that was read without complaint."""
    return Facts(
        title=f"{document['name']}: a cost model of {document['device']}",
        summary=tuple(_summary(document)),
        verdicts=tuple(verdict.text for verdict in verdicts(document)),
        tables=tuple([*_errors(document), _schemes(document), *_ranges(document)]),
        not_measured=tuple(_not_measured(document)),
        reference=reference_of(document),
    )


def reference_of(document: Mapping[str, Any]) -> str:
    """Return what ``cost_model`` of a spec says to mean the model of a document."""
    return f"learned:{document['digest']}"


def held_out_errors(document: Mapping[str, Any]) -> str:
    """Return ``"lookups 20.4%, collectives not known"``: mean errors of what the model learned."""
    learned = [kind for part, kind in _PARTS if document[part] is not None]
    return ", ".join(f"{KINDS[kind]} {_mean_error(held_out_groups(document, kind, 'all'))}" for kind in learned)


def _summary(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    trained, compute, exchange = document["trained_on"], document["compute"], document["exchange"]
    yield "Device", document["device"]
    rows = ", ".join(f"{number:,} of {kind}" for kind, number in trained["rows"].items())
    yield "Rows", f"{rows}, in {counted(trained['launches'], 'launch', 'launches')}"
    yield "Measured with", ", ".join([*trained["implementations"], *trained["libraries"]])
    yield "Rows digest", trained["rows_digest"]
    yield "Seed", str(trained["seed"])
    if (repeats := trained["repeats"]) is not None:
        several, difference = repeats["launches"], _percent(repeats["mean_relative_difference"])
        yield "Repeats", f"{several} of the same launches differ by {difference} on average: so far is chance"
    if compute is not None:
        networks = len(compute["networks"])
        form = f"physics and {counted(networks, 'network')}" if networks else "physics alone: too few rows for networks"
        few, many = compute["contention"]
        ranks = counted(many, "rank") if few == many else f"{few} to {many} ranks"
        yield "Lookups", f"{form}; {ranks} per host"
    if exchange is not None:
        yield "Collectives", counted(len(exchange["curves"]), "curve")
    if not document["figures"]:
        yield "Held out", "no rows: how well it does is not known; measure more"
        return
    yield "Held out", f"split {document['figures']['split']}; intervals are made to hold {_stated(document)}"
    for part, kind in _PARTS:
        if document[part] is not None and not held_out_groups(document, kind, "all"):
            yield f"No {KINDS[kind]}", "were held out, for there are too few: how well it does there is not known"


def _stated(document: Mapping[str, Any]) -> str:
    compute, exchange = document["compute"], document["exchange"]
    stated = {interval["coverage"] for interval in compute["intervals"]} if compute else set()
    stated |= {exchange["coverage"]} if exchange else set()
    return " or ".join(f"{share:.0%}" for share in sorted(stated))


def _errors(document: Mapping[str, Any]) -> Iterator[Table]:
    for kind, named in KINDS.items():
        bodies = []
        for by, heading in _GROUPINGS.items():
            rows = tuple(_figures(group) for group in held_out_groups(document, kind, by))
            if rows:
                bodies.append(("" if by == "all" else heading, rows))
        if bodies:
            yield Table(
                title=f"Error of held-out {named}",
                note="Error: |predicted / measured - 1|. Tau: Kendall's rank correlation. Inside: share of rows within "
                "their intervals. Width: upper over lower limit, typically.",
                columns=("Group", *_FIGURES),
                bodies=tuple(bodies),
            )


def _figures(group: Mapping[str, Any]) -> tuple[str, ...]:
    correlation = group["rank_correlation"]
    return (
        group["group"],
        f"{group['num_rows']:,}",
        _percent(group["mean_relative_error"]),
        _percent(group["median_relative_error"]),
        "-" if correlation is None else f"{correlation:.3f}",
        f"{group['coverage']:.1%}",
        _times(group["mean_interval_ratio"]),
    )


def _percent(share: float) -> str:
    """``"4.2%"``; huge errors without digits that say nothing."""
    return f"{share:.1%}" if share < 1e3 else f"{share * 100:.1e}%"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio < 1e2 else f"{min(ratio, 999_999):,.0f}x"


def _schemes(document: Mapping[str, Any]) -> Table:
    """Return the errors of what each scheme runs: measured rows know no scheme."""
    lookups = _mean_error(held_out_groups(document, "lookup", "all")) if document["compute"] else ROOFLINE
    rows = []
    for scheme in PREFERRED_ORDER:
        forward, backward = scheme.collectives
        of_both = (_of_collective(document, forward, "forward"), _of_collective(document, backward, "backward"))
        rows.append((scheme.label, ROOFLINE if scheme.is_replicated else lookups, *of_both))
    return Table(
        title="Mean error by scheme",
        note="Measured rows know no scheme; these are the errors of what each scheme runs inside one host. Where it "
        "says roofline the analytic model answers, as it always does for prefetches, unfused kernels, all-reduces, and "
        "collectives among ranks of different hosts alone.",
        columns=("Scheme", "Lookups", "Forward comm.", "Backward comm."),
        bodies=(("", tuple(rows)),),
    )


def _of_collective(document: Mapping[str, Any], operation: str, direction: str) -> str:
    """Return the error of the curve that prices a collective; as a model finds it, with or without direction."""
    if not operation:
        return "none"
    if operation == "all_reduce":  # of the gradients of replicated tables: never learned
        return ROOFLINE
    curves = document["exchange"]["curves"] if document["exchange"] else ()
    measured = {curve["direction"] for curve in curves if curve["operation"] == operation and not curve["spans_hosts"]}
    label = f"{operation} {direction}" if direction in measured else operation
    if not measured & {direction, ""}:
        return ROOFLINE
    return _mean_error(
        [group for group in held_out_groups(document, "collective", "collective") if group["group"] == label]
    )


def _mean_error(groups: Sequence[Mapping[str, Any]]) -> str:
    return _percent(groups[0]["mean_relative_error"]) if groups else "not known"


def _ranges(document: Mapping[str, Any]) -> Iterator[Table]:
    compute, exchange = document["compute"], document["exchange"]
    if compute is not None:
        named = (("Of a shard", "ranges"), ("Of the shards of a rank together", "rank_ranges"))
        yield Table(
            title="Where lookups are learned",
            note=f"The least and the most that was measured; up to {TOLERANCE:.0%} beyond counts as within. Outside, "
            "a shard grows from there as roofline says, and the plan says why; a rank beyond has a wider interval.",
            columns=("Feature", "Least", "Most"),
            bodies=tuple(
                (heading, tuple((name, *map(number_text, limits)) for name, limits in compute[part].items()))
                for heading, part in named
            ),
        )
    if exchange is not None:
        yield Table(
            title="Where collectives are learned",
            note="Bytes are those of all ranks together. Up to twice the ranks and any bytes are priced, with wider "
            "intervals; roofline prices all else.",
            columns=("Collective", "Hosts", "Ranks", "Least bytes", "Most bytes", "Rows"),
            bodies=(("", tuple(_curve(curve) for curve in exchange["curves"])),),
        )


def _curve(curve: Mapping[str, Any]) -> tuple[str, ...]:
    measured = curve["range"]
    counts = [f"{count:.0f}" for count in measured["rank_counts"]]
    return (
        f"{curve['operation']} {curve['direction']}".strip(),
        "several" if curve["spans_hosts"] else "one",
        ", ".join(counts) if len(counts) <= 4 else f"{counts[0]} to {counts[-1]}",
        format_bytes(measured["least_bytes"]),
        format_bytes(measured["most_bytes"]),
        f"{curve['num_rows']:,.0f}",
    )


def _not_measured(document: Mapping[str, Any]) -> Iterator[str]:
    compute, exchange = document["compute"], document["exchange"]
    yield f"Any device other than {document['device']}."
    if compute is None:
        yield "Lookups."
    else:
        yield "Lookups that are weighted, not pooled, not trained, or of another kernel than fused."
        if compute["targets"] == ["both"]:
            yield "Forward and backward apart: their sum is learned, and divided as roofline divides it."
    curves = exchange["curves"] if exchange else []
    found = {(curve["operation"], curve["spans_hosts"]) for curve in curves}
    for spans_hosts, where in ((False, "inside one host"), (True, "over several hosts")):
        missing = [name for name in COLLECTIVES if (name, spans_hosts) not in found]
        if missing:
            yield f"Collectives {where}: {', '.join(missing)}."
    if not any(any(curve["skew"]) for curve in curves):
        yield "Ranks that start a collective late."
