"""The time that a solve may take: what its spec says, within the limit of the server and the deadline."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from planner.domain.formats.canonical_json import canonical_bytes
from planner.errors import Issue

_SHORTEST_SECONDS = 0.001


def within_server_limit(spec: Mapping[str, Any], max_seconds: float | None) -> tuple[dict[str, Any], tuple[Issue, ...]]:
    """Return a normalised spec that keeps the limit of the server, and a warning where that is shorter."""
    limit = spec["solver"]["time_limit_seconds"]
    if max_seconds is None or limit <= max_seconds:
        return dict(spec), ()
    why, hint = "no solve here takes longer", "the limit is SHARDPLAN_MAX_SOLVE_SECONDS"
    return _limited(spec, max_seconds), (_warning("time-limit-clamped", max_seconds, limit, why, hint),)


def deadline_warnings(spec: Mapping[str, Any], seconds_left: float) -> tuple[Issue, ...]:
    """Return a warning where a deadline leaves a normalised spec less time than its limit."""
    limit, seconds = spec["solver"]["time_limit_seconds"], _searched(seconds_left)
    if limit <= seconds:
        return ()
    why, hint = "that is what the deadline leaves", "what it waits in the queue is taken off, too"
    return (_warning("time-limit-deadline", seconds, limit, why, hint),)


def without_deadline(warnings: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return what stays of the warnings of a request where it has no deadline any more."""
    return [warning for warning in warnings if warning["code"] != "time-limit-deadline"]


def spec_in_time(spec_bytes: bytes, *, deadline_at: float | None, now: float) -> bytes | None:
    """Return the spec of a solve that starts now and ends in time, ``None`` if its deadline has passed."""
    if deadline_at is None:
        return spec_bytes
    if deadline_at <= now:
        return None
    spec = json.loads(spec_bytes)
    return canonical_bytes(_limited(spec, min(spec["solver"]["time_limit_seconds"], _searched(deadline_at - now))))


def _warning(code: str, seconds: float, limit: float, why: str, hint: str) -> Issue:
    message = f"the search takes {seconds:g} seconds at most, not {limit:g}: {why}"
    return Issue(code=code, pointer="/solver/time_limit_seconds", message=message, hint=hint, severity="warning")


def _searched(seconds_left: float) -> float:
    return max(_SHORTEST_SECONDS, math.floor(seconds_left * 1000) / 1000)


def _limited(spec: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    solver = {**spec["solver"], "time_limit_seconds": seconds}
    work = solver.get("work_limit_seconds")  # a normalised spec leaves out what is null
    return {**spec, "solver": solver if work is None else {**solver, "work_limit_seconds": min(work, seconds)}}
