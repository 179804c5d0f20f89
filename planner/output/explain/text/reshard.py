"""What resuming from a checkpoint of another plan takes, as text."""

from collections import Counter

from cost_models.text.number_text import counted
from planner.domain.formats.units import format_bytes
from planner.output.reshard.reshard_map import ReshardMap

_MOST_NAMED = 3


def explain_reshard(found: ReshardMap) -> str:
    """Say how much is read, by which rank most, and what state is lost."""
    totals = found.totals
    read_bytes = totals.weight_bytes + totals.state_bytes
    fullest = int(read_bytes.argmax())
    ranks = f"from {counted(found.old['world_size'], 'rank')} on {found.new['world_size']:,}"
    lines = [
        f"{counted(len(found.tables), 'table')} of {len(found.new['tables']):,} {ranks}:"
        f" {counted(int(totals.num_reads.sum()), 'read')}, {format_bytes(float(totals.weight_bytes.sum()))} of weights"
        f"{_state_bytes(found)}",
        f"  most: rank {fullest} reads {format_bytes(float(read_bytes[fullest]))}, the mean is"
        f" {format_bytes(float(read_bytes.mean()))}",
    ]
    states = Counter(table.state for table in found.tables)
    if states["lost"]:
        lost = [table for table in found.tables if table.state == "lost"]
        lines.append(f"  optimizer state of {counted(len(lost), 'table')} is lost; checkpoint_plan would keep it:")
        lines += [f"    {table.name}: {table.state_loss}" for table in lost[:_MOST_NAMED]]
        if len(lost) > _MOST_NAMED:
            lines.append(f"    and {len(lost) - _MOST_NAMED:,} more")
    if states["unknown"]:
        which = "" if found.state_is_unknown else f" of {counted(states['unknown'], 'table')}"
        lines.append(f"  optimizer state{which} is not counted: give the spec of the new plan, --spec SPEC.json")
    for names, what in ((found.new_tables, "start without stored state"), (found.gone_tables, "are not read")):
        if names:
            more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
            lines.append(f"  {what}: {', '.join(names[:_MOST_NAMED])}{more}")
    return "\n".join(lines)


def _state_bytes(found: ReshardMap) -> str:
    if found.state_is_unknown:
        return ""
    return f" and {format_bytes(float(found.totals.state_bytes.sum()))} of optimizer state"
