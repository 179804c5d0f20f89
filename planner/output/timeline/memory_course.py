"""What the memory of a rank holds at every moment of a step whose dense part is timed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from planner.domain.plan.step_memory import MemoryPhase
from planner.output.documents.step import StepMemoryDocument
from planner.output.timeline.bars import BarKind, Timeline

_ACTIVATIONS = "activations"
_STASHED = "stashed_weights"
#: Phases of memory that last as long as the phase of the embeddings of the same name.
_LASTING = (MemoryPhase.FORWARD_COMPUTE, MemoryPhase.FORWARD_COMM)
_LASTING_BACKWARD = (MemoryPhase.BACKWARD_COMM, MemoryPhase.BACKWARD_COMPUTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySpan:
    """A part of the step; between its ends every line grows, or shrinks, evenly."""

    phase: str | None  # of the memory; None while no buffers are held
    start_seconds: float
    end_seconds: float
    start_bytes: Mapping[str, float]  # by line, with those that stay through the step
    end_bytes: Mapping[str, float]


def memory_course(timeline: Timeline, memory: StepMemoryDocument, rank: int) -> tuple[MemorySpan, ...]:
    """Return the spans of a rank, which cover the step without a hole; ``()`` if the dense part is not timed.

    Moments, such as joining what was received, are spans without a length. Activations of the dense part grow evenly
    over its forward pass, and shrink evenly over its backward pass.
    """
    if not any(bar.kind is BarKind.DENSE for bar in timeline.bars):
        return ()
    return tuple(_Course(timeline, memory, rank).spans())


class _Course:
    def __init__(self, timeline: Timeline, memory: StepMemoryDocument, rank: int) -> None:
        self._timeline, self._memory, self._rank, self._now = timeline, memory, rank, 0.0

    def spans(self) -> Iterator[MemorySpan]:
        for phase in _LASTING:
            yield from self._until_phase(phase)
        yield from self._until(self._now, MemoryPhase.OUTPUT_CONCAT)
        yield from self._dense()
        yield from self._until(self._now, MemoryPhase.GRADIENT_SPLIT)
        for phase in _LASTING_BACKWARD:
            yield from self._until_phase(phase)
        yield from self._until(self._timeline.seconds, None)

    def _dense(self) -> Iterator[MemorySpan]:
        forward, backward = self._ends("dense_forward"), self._ends("dense_backward", "wait_for_restore")
        copied, returned = self._ends("stash"), self._ends("restore")
        most = self._lines(MemoryPhase.DENSE_FORWARD).get(_ACTIVATIONS, 0.0)
        remaining, begun = most, 0.0
        if copied is not None and returned is not None and copied[1] > copied[0]:
            begun = self._lines(MemoryPhase.STASH).get(_ACTIVATIONS, 0.0)
            yield from self._until(copied[1], MemoryPhase.STASH, (0.0, begun))
        if forward is not None:
            yield from self._until(forward[1], MemoryPhase.DENSE_FORWARD, (begun, most))
        if copied is not None and returned is not None and copied[1] > copied[0]:
            remaining = self._lines(MemoryPhase.RESTORE).get(_ACTIVATIONS, 0.0)
            yield from self._until(returned[0], MemoryPhase.DENSE_BACKWARD, (most, remaining))
            yield from self._until(returned[1], MemoryPhase.RESTORE, (remaining, 0.0))
        elif backward is not None:
            yield from self._until(backward[1], MemoryPhase.DENSE_BACKWARD, (most, 0.0))

    def _until_phase(self, phase: MemoryPhase) -> Iterator[MemorySpan]:
        ends = self._ends(phase.label)
        if ends is None:
            yield from self._until(self._now, phase)
            return
        if ends[0] > self._now:
            yield from self._until(ends[0], None)
        yield from self._until(ends[1], phase)

    def _until(
        self, end: float, phase: MemoryPhase | None, activations: tuple[float, float] | None = None
    ) -> Iterator[MemorySpan]:
        if phase is not None and phase.label not in self._memory["phase_bytes"]:
            return
        lines = self._lines(phase)
        start_bytes, end_bytes = (
            (lines, lines)
            if activations is None or _ACTIVATIONS not in lines
            else tuple({**lines, _ACTIVATIONS: amount} for amount in activations)
        )
        yield MemorySpan(
            phase=None if phase is None else phase.label,
            start_seconds=self._now,
            end_seconds=end,
            start_bytes=start_bytes,
            end_bytes=end_bytes,
        )
        self._now = end

    def _lines(self, phase: MemoryPhase | None) -> dict[str, float]:
        buffers = self._memory["buffer_bytes"]
        if phase is None:  # nothing but what stays, and stashed weights, which are away in the dense part alone
            first = buffers[MemoryPhase.FORWARD_COMPUTE.label]
            return {**self._memory["persistent_bytes"], **{key: first[key] for key in (_STASHED,) if key in first}}
        return {**self._memory["persistent_bytes"], **buffers[phase.label]}

    def _ends(self, *names: str) -> tuple[float, float] | None:
        """Return when bars of these names begin and end on the rank, with what waits for the end of their phase."""
        found = [bar for bar in self._timeline.bars if bar.name in names or (bar.phase in names and bar.phase)]
        found = [bar for bar in found if bar.track != "next_batch"]
        if not found:
            return None
        return (
            float(np.min([bar.start_seconds[self._rank] for bar in found])),
            float(np.max([bar.end_seconds[self._rank] for bar in found])),
        )
