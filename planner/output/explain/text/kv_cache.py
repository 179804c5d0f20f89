"""The cache of keys and values next to the tables, and how other sizes compare, as text for people."""

from cost_models.text.number_text import number_text
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.kv_cache import KvCacheSizeDocument
from planner.output.explain.text.layout import columns, paragraph

_STATES = {"ruled_out": "cannot win", "infeasible": "has no plan", "not_searched": "not searched"}


def kv_cache_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about keys and values, none if the plan has no cache of them."""
    cache = plan.get("kv_cache")
    if cache is None:
        return []
    lines = ["Keys and values of users"]
    lines += paragraph(
        f"{format_bytes(cache['bytes'])} of every rank, {number_text(float(round(cache['users'])))} users:"
        f" {cache['hit_rate']:.1%} of requests hit"
    )
    lines += paragraph(
        f"a miss takes {format_seconds(cache['recompute_seconds'])}, a request"
        f" {format_seconds(cache['seconds_per_request'])} on average"
    )
    if cache["sizes"]:
        rows: list[tuple[str, ...]] = [("bytes", "hits", "recompute", "objective", "lower bound", "")]
        rows += [_row(one, cache["bytes"]) for one in cache["sizes"]]
        lines += columns(rows, left=(5,))
    return lines


def _row(one: KvCacheSizeDocument, chosen: int) -> tuple[str, ...]:
    return (
        format_bytes(one["bytes"]),
        f"{one['hit_rate']:.1%}",
        format_seconds(one["seconds_per_request"]),
        "-" if one["objective_seconds"] is None else format_seconds(one["objective_seconds"]),
        format_seconds(one["lower_bound_seconds"]) if one["lower_bound_seconds"] > 0 else "-",
        "chosen" if one["bytes"] == chosen else _STATES.get(one["state"], ""),
    )
