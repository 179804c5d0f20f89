"""When memory is fullest in a training step, and what fills it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from planner.domain.plan.plan import Evaluation
from planner.domain.plan.step_memory import MemoryPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPeak:
    """The peak of the rank that holds most at once."""

    rank: int
    peak_phase: MemoryPhase
    peak_bytes: float
    buffer_bytes: float  # of the peak, what only this phase and its neighbours hold
    largest_buffer: str | None  # the first of the lines with the most of them; None where there are none
    device_bytes: float

    def to_document(self) -> Mapping[str, object]:
        """Return the peak as JSON."""
        return {**asdict(self), "peak_phase": self.peak_phase.label}


def memory_peak(evaluation: Evaluation) -> MemoryPeak | None:
    """Return the highest peak of all ranks; ``None`` where requests are served."""
    known = [(load.rank, load.step_memory) for load in evaluation.ranks if load.step_memory is not None]
    if not known:
        return None
    rank, memory = max(known, key=lambda one: one[1].peak_bytes)
    lines = memory.buffer_bytes[memory.peak_phase]
    largest = max(lines, key=lambda line: lines[line])
    return MemoryPeak(
        rank=rank,
        peak_phase=memory.peak_phase,
        peak_bytes=memory.peak_bytes,
        buffer_bytes=sum(lines.values()),
        largest_buffer=largest if lines[largest] > 0 else None,
        device_bytes=memory.device_bytes,
    )
