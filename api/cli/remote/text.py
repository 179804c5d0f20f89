"""Documents of a service as text for people, at most 80 columns wide."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.domain.formats.units import format_seconds
from planner.output.explain.text.layout import columns, paragraph, short_digest, shortened

Documents = Sequence[Mapping[str, Any]]
_WHO_COLUMNS = 16


def solves_text(solves: Documents) -> str:
    """Return a table of solves."""
    rows = [("name", "solve", "state", "objective", "gap")]
    rows += [(str(one["name"]), str(one["id"]), str(one["state"]), *_quality(one)) for one in solves]
    return _table(rows, "no solves yet: `shardplan plan SPEC.json --server URL` submits one")


def solve_text(solve: Mapping[str, Any]) -> str:
    """Return a solve: how the work goes, and how good the answer is."""
    lines = [f"solve {solve['id']} of {shortened(str(solve['name']), 40)}: {solve['state']}"]
    for label, key in (("created", "created_at"), ("started", "started_at"), ("ended", "ended_at")):
        if solve.get(key):
            lines.append(f"  {label:<9}  {moment(solve[key])} UTC")
    if solve.get("tags"):
        lines += paragraph(f"tags       {', '.join(solve['tags'])}", hanging=" " * 11)
    objective, gap = _quality(solve)
    if objective:
        lines.append(f"  objective  {objective}" + (f"   gap {gap}" if gap else ""))
    return "\n".join([*lines, *ending_lines(solve)])


def ending_lines(solve: Mapping[str, Any]) -> list[str]:
    """Return why a solve ended, its plan, and without a plan what would give one."""
    result, error = solve.get("result") or {}, solve.get("error")
    lines = []
    if error:
        lines += paragraph(_with_hint(error))
    if termination := result.get("termination"):
        limit = f", stopped by {termination['limit']}" if termination.get("limit") else ""
        detail = f": {termination['detail']}" if termination.get("detail") else ""
        lines += paragraph(f"{termination['reason']}{limit}{detail}")
    if digest := result.get("plan_digest"):
        lines.append(f"  plan {digest}")
    for shortfall in result.get("shortfalls") or []:
        lines += paragraph(_with_hint(shortfall), hanging="  ")
    for fix in (result.get("diagnosis") or {}).get("fixes") or []:
        lines += paragraph(f"what would give a plan: {fix['message']}", hanging="  ")
    return lines


def channels_text(channels: Documents) -> str:
    """Return a table of channels."""
    rows = [("channel", "version", "plan", "changed")]
    rows += [
        (str(one["name"]), str(one["version"]), short_digest(one["plan_digest"]), moment(one["updated_at"]))
        for one in channels
    ]
    return _table(rows, "no channels yet: `shardplan promote CHANNEL PLAN.json` makes one")


def channel_text(channel: Mapping[str, Any]) -> str:
    """Return what a channel points at."""
    lines = [
        f"{channel['name']}: version {channel['version']}, changed {moment(channel['updated_at'])} UTC",
        f"  plan {channel['plan_digest']}",
    ]
    by_size = channel.get("plan_digests") or {}
    lines += [f"  {size} ranks {short_digest(by_size[size])}" for size in sorted(by_size, key=int)]
    return "\n".join(lines)


def pointed_at(version: Mapping[str, Any]) -> str:
    """Return what a channel points at, at one of its versions, in a line."""
    sizes = sorted(version.get("plan_digests") or {}, key=int)
    return f"{version['plan_digest']}" + (f", and plans for {', '.join(sizes)} ranks" if sizes else "")


def history_text(versions: Documents) -> str:
    """Return a table of the versions of a channel, with who made each."""
    rows = [("version", "plan", "changed", "by", "how")]
    rows += [
        (
            str(one["version"]),
            short_digest(one["plan_digest"]),
            moment(one["updated_at"]),
            shortened(str(one.get("who") or ""), _WHO_COLUMNS),
            _action(one),
        )
        for one in versions
    ]
    return _table(rows, "no versions")


def studies_text(studies: Documents) -> str:
    """Return a table of studies."""
    rows = [("name", "study", "kind", "state", "points")]
    rows += [
        (
            str(one["name"]),
            str(one["id"]),
            str(one["kind"]),
            str(one["state"]),
            f"{one['progress']['num_ended']} of {one['progress']['num_points']}",
        )
        for one in studies
    ]
    return _table(rows, "no studies yet: `shardplan study STUDY.json -o DIR --server URL` submits one")


def study_text(study: Mapping[str, Any]) -> str:
    """Return how far a study is."""
    progress = study["progress"]
    lines = [
        f"{study['kind']} {study['id']} of {shortened(str(study['name']), 40)}: {study['state']}",
        f"  {progress['num_ended']} of {progress['num_points']} points have ended",
    ]
    return "\n".join(lines + (paragraph(_with_hint(study["error"])) if study.get("error") else []))


def moment(text: str) -> str:
    """``"2026-11-29 20:28:03"``: a moment of the service, in UTC, to the second."""
    return str(text)[:19].replace("T", " ")


def _quality(solve: Mapping[str, Any]) -> tuple[str, str]:
    """Return the objective and the gap of the plan of a solve, or of the best plan so far."""
    found = (solve.get("result") or {}).get("objective") or {}
    progress = solve.get("progress") or {}
    seconds = found.get("seconds", progress.get("incumbent_seconds"))
    gap = found.get("relative_gap") if found else progress.get("relative_gap")
    return "" if seconds is None else format_seconds(seconds), "" if gap is None else f"{gap:.2%}"


def _action(version: Mapping[str, Any]) -> str:
    restored = version.get("restored_version")
    return f"back to {restored}" if restored else str(version.get("action") or "")


def _with_hint(issue: Mapping[str, Any]) -> str:
    hint = issue.get("hint")
    return f"{issue['message']}; {hint}" if hint else str(issue["message"])


def _table(rows: Sequence[tuple[str, ...]], otherwise: str) -> str:
    """Return rows under their heading, or what there is to do if there are none."""
    return "\n".join(columns(rows, left=tuple(range(len(rows[0]))))) if rows[1:] else f"  {otherwise}"
