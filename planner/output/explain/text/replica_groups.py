"""Sharding groups, what keeps them alike, and how other sizes compare, as text for people."""

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes, format_seconds
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.documents.replica_groups import GroupSizeDocument
from planner.output.explain.text.layout import columns, paragraph

_STATES = {"ruled_out": "cannot win", "infeasible": "has no plan", "not_searched": "not searched"}


def ranks_text(plan: CompactPlanDocument) -> str:
    """Return the ranks of a plan: ``"128 ranks, 16 x 8"``, or ``"128 ranks in 8 groups of 16"``."""
    groups = plan.get("replica_groups")
    if groups is None:
        hosts = plan["world_size"] // plan["ranks_per_host"]
        text = f"{counted(plan['world_size'], 'rank')}, {hosts} x {plan['ranks_per_host']}"
        if (pod_size := plan.get("pod_size")) is not None:
            text += f", {counted(plan['world_size'] // pod_size, 'pod')} of {pod_size}"
        return text
    ranks, number = counted(groups["world_size"], "rank"), counted(groups["num_groups"], "group")
    return f"{ranks} in {number} of {groups['sharding_group_size']}"


def replica_group_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the lines about sharding groups, none if the plan is for one group of all ranks without a choice."""
    groups, sync = plan.get("replica_groups"), plan.get("replica_sync")
    if groups is None or sync is None:
        return []
    size, number, per_host = groups["sharding_group_size"], groups["num_groups"], plan["ranks_per_host"]
    apart = "contiguous ranks" if groups["use_inter_host_allreduce"] else f"one of every {number} ranks"
    pods = f", {groups['node_group_size']} in each pod" if "pod_size" in plan else ""
    lines = ["Sharding groups"]
    if number == 1:
        lines += paragraph("one group of all ranks: nothing is averaged")
    else:
        lines += paragraph(
            f"{number} groups of {counted(size, 'rank')} ({size // per_host} x {per_host}{pods}), {apart}; each holds"
            " every table"
        )
        what = "weights and optimizer state" if groups["include_optimizer_state"] else "weights"
        every = groups["sync_interval_steps"]
        lines += paragraph(
            f"{what} are averaged every {counted(every, 'step') if every > 1 else 'step'}:"
            f" {format_bytes(sync['bytes'])} on the fullest rank, {format_seconds(sync['seconds'])} each time,"
            f" {format_seconds(sync['seconds_per_step'])} per step"
        )
    if sync["sizes"]:
        rows: list[tuple[str, ...]] = [("ranks", "groups", "objective", "lower bound", "averages", "")]
        rows += [_row(one, size) for one in sync["sizes"]]
        lines += columns(rows, left=(5,))
    return lines


def _row(one: GroupSizeDocument, chosen: int) -> tuple[str, ...]:
    is_chosen = one["sharding_group_size"] == chosen
    sync = one["sync_seconds_per_step"]
    return (
        f"{one['sharding_group_size']:,}",
        f"{one['num_groups']:,}",
        "-" if one["objective_seconds"] is None else format_seconds(one["objective_seconds"]),
        format_seconds(one["lower_bound_seconds"]) if one["lower_bound_seconds"] > 0 else "-",
        "-" if sync is None else format_seconds(sync),
        "chosen" if is_chosen else _STATES.get(one["state"], ""),
    )
