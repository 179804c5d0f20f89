"""The memory of the rank with the highest peak over a training step, as text for people."""

from collections.abc import Mapping

from planner.domain.formats.units import format_bytes
from planner.domain.plan.step_memory import MemoryPhase
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.shard_groups import rank_loads
from planner.output.explain.text.layout import INDENT, WIDTH, stacked_bar, wrapped

_NAME_WIDTH = max(len(label) for label in MemoryPhase.labels())
_MAX_BAR = 44  # characters


def step_memory_lines(plan: CompactPlanDocument) -> list[str]:
    """Return the phases of the rank that holds most at once; none where requests are served, and of earlier plans."""
    known = [(rank["rank"], memory) for rank in rank_loads(plan) if (memory := rank.get("step_memory")) is not None]
    if not known:
        return []
    rank, memory = max(known, key=lambda one: one[1]["peak_bytes"])
    persistent, full = sum(memory["persistent_bytes"].values()), memory["device_bytes"]
    lines = [f"Memory of rank {rank} over a step, of {format_bytes(full)}"]
    for phase in (label for label in MemoryPhase.labels() if label in memory["phase_bytes"]):
        held = memory["phase_bytes"][phase]
        head, amount = f"{INDENT}{phase:<{_NAME_WIDTH}}  ", f"  {format_bytes(held):>8}"
        bar = stacked_bar(
            [("█", persistent), ("▒", held - persistent), ("·", full - held)],
            full,
            min(_MAX_BAR, WIDTH - len(head) - len(amount)),
        )
        lines.append(f"{head}{bar}{amount}")
    lines += _lines("held through the step:", memory["persistent_bytes"])
    return lines + _lines(f"besides, in {memory['peak_phase']}:", memory["buffer_bytes"][memory["peak_phase"]])


def _lines(label: str, held: Mapping[str, int]) -> list[str]:
    parts = [f"{name} {format_bytes(amount)}" for name, amount in held.items() if amount > 0]
    return wrapped(parts, label=label) if parts else []
