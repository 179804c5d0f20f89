"""A timeline: bars with a beginning and a length on every rank, and the events that they stand for."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cost_models.arrays import Floats


class Track(StrEnum):
    """Rows of a rank; bars of one track do not overlap, but for parts of a phase, which lie inside their phase."""

    STEP = "step"  #: what the step consists of, one part after the other
    NEXT_BATCH = "next_batch"  #: ids, and rows of caches, of the next batch, while the dense part computes
    STASH = "stash"  #: copies of stashed weights to the host and back
    ALL_REDUCE = "all_reduce"  #: gradients of the dense part
    CHECKPOINT = "checkpoint"  #: an upload that goes on while the job trains


class BarKind(StrEnum):
    """What a bar is."""

    PHASE = "phase"  #: a phase of the embeddings
    SHARDING_TYPE = "sharding_type"  #: inside a phase: the tables of a module that have one sharding type
    STARTS = "starts"  #: inside a phase: what such tables start, if their other seconds are not known apart
    WAIT = "wait"  #: for the slowest rank, or for copies of stashed weights
    DENSE = "dense"  #: compute of the dense part
    ALL_REDUCE = "all_reduce"
    COPY = "copy"  #: of stashed weights
    OVERHEAD = "overhead"
    UPLOAD = "upload"


#: Bars of these kinds lie inside those of their phase.
NESTED = frozenset({BarKind.SHARDING_TYPE, BarKind.STARTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One part of a step on all ranks; a length of 0 is no part of that rank."""

    name: str  # "forward_comm", "dense_forward", "row_wise"
    kind: BarKind
    track: Track
    start_seconds: Floats  # (num_ranks,)
    duration_seconds: Floats  # (num_ranks,)
    phase: str | None = None  # of the embeddings, that it is or belongs to
    module: str | None = None  # path of the module, of parts of a phase
    whole_seconds: float | None = None  # of a bar that goes on after the step: its own length

    @property
    def end_seconds(self) -> Floats:
        """When it ends, (num_ranks,)."""
        ends: Floats = self.start_seconds + self.duration_seconds
        return ends


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """A bar on one rank."""

    rank: int
    bar: Bar
    start_seconds: float
    duration_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """One step, or one request, on every rank; it begins at 0."""

    unit: str  # "step" or "request"
    seconds: float  # the plan's own, at which the last bar ends
    hosts: tuple[int, ...]  # (num_ranks,)
    bars: tuple[Bar, ...]  # in the order of the step; parts of a phase follow it

    @property
    def num_ranks(self) -> int:
        """All ranks of the plan."""
        return len(self.hosts)

    def events(self) -> Iterator[TimelineEvent]:
        """Yield the bars of each rank, in the order of the step."""
        for rank in range(self.num_ranks):
            for bar in self.bars:
                if bar.duration_seconds[rank] > 0:
                    yield TimelineEvent(
                        rank=rank,
                        bar=bar,
                        start_seconds=float(bar.start_seconds[rank]),
                        duration_seconds=float(bar.duration_seconds[rank]),
                    )

    def seconds_of(self, phase: str, *kinds: BarKind) -> Floats:
        """Return what the bars of a phase of these kinds take on every rank, (num_ranks,)."""
        found = np.zeros(self.num_ranks)
        for bar in self.bars:
            if bar.phase == phase and bar.kind in kinds:
                found += bar.duration_seconds
        return found
