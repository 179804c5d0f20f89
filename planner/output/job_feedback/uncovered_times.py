"""Which of a job's times have no interval to compare with, or give no rows, and why: in words, by rank and table.

A rank's phase is timed as a whole. If measured rows cover only a part of it, as when the dense update of a replicated
table runs next to the fused lookups, the analytic model prices the rest. The total is compared, but the limits
of an analytic price have no known probability, and the time of the fused launch alone is not known.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from cost_models.arrays import Ints
from cost_models.protocol import AssignmentModel, ShardWork
from cost_models.text.number_text import counted, number_ranges
from cost_models.vocabulary import IS_REPLICATED, Kernel, Phase
from planner.domain.problem.problem import Problem
from planner.pricing.predictions.learned_prediction import PlacedShards

_COMPUTE = (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE)
_MOST_NAMES = 5
_NO_INTERVAL = "the analytic model priced that, so the whole time has no interval of known probability"


def uncovered_times(
    problem: Problem, placed: PlacedShards, model: AssignmentModel, phase: Phase, ranks: Ints
) -> list[str]:
    """Return why the times of ``ranks`` in a phase are compared, but not by intervals; none for no ranks."""
    if len(ranks) == 0:
        return []
    if phase not in _COMPUTE:
        work = placed.work.take(np.unique(placed.kind))
        reasons = [f"{named(ranks)}: {why}" for of, why in model.unmeasured_collectives(work) if of is phase]
        return _without_interval(reasons, ranks)
    idle = np.setdiff1d(ranks, placed.rank)
    busy = np.setdiff1d(ranks, idle)
    texts = [f"{named(idle)}: the plan has no shards there, so nothing was predicted"] if len(idle) else []
    if len(busy) == 0:
        return texts
    outside = model.unknown(placed.work, problem.cluster.hardware)
    others = [_other(placed.work, kind, outside[kind]) for kind in range(placed.work.num_shards)]
    return [*texts, *_without_interval(list(_by_reason(problem, placed, busy, others)), busy)]


def unmeasured_parts(problem: Problem, placed: PlacedShards, ranks: Ints) -> list[str]:
    """Return what ``ranks`` run besides fused lookups, so that the time of these alone is not known."""
    others = [_other(placed.work, kind, "") for kind in range(placed.work.num_shards)]
    return list(_by_reason(problem, placed, ranks, others))


def named(ranks: Ints) -> str:
    """Return ``"rank 3"`` or ``"ranks 0-7"``."""
    return f"rank{'' if len(ranks) == 1 else 's'} {number_ranges(ranks.tolist())}"


def _without_interval(reasons: Sequence[str], ranks: Ints) -> list[str]:
    found = reasons or [f"{named(ranks)}: not all of this phase was measured"]
    return [f"{reason}; {_NO_INTERVAL}" for reason in found]


def _other(work: ShardWork, kind: int, outside: str) -> str:
    """Return what measured rows lack of the shards of a kind; ``""`` for fused lookups within the range."""
    kernel = Kernel(int(work.kernel[kind]))
    if IS_REPLICATED[work.scheme[kind]]:
        return f"replicated (kernel {kernel.label})"
    if kernel is not Kernel.FUSED:
        return f"of the kernel {kernel.label}"
    for text, holds in (
        ("weighted", work.is_weighted[kind]),
        ("of sequences", not work.is_pooled[kind]),
        ("not trained", not work.is_trained[kind]),
        ("outside of what was measured", bool(outside)),
    ):
        if holds:
            return text
    return ""


def _by_reason(problem: Problem, placed: PlacedShards, ranks: Ints, reasons: Sequence[str]) -> Iterator[str]:
    """Yield for each reason the ranks and the tables that it holds for."""
    here = np.isin(placed.rank, ranks)
    for reason in dict.fromkeys(filter(None, reasons)):
        shards = here & np.array([one == reason for one in reasons], dtype=np.bool_)[placed.kind]
        tables = np.unique(placed.table[placed.kind[shards]])
        if len(tables):
            names = [problem.tables[table].name for table in tables[:_MOST_NAMES].tolist()]
            more = f" and {counted(len(tables) - _MOST_NAMES, 'other')}" if len(tables) > _MOST_NAMES else ""
            which = f"table {names[0]} is" if len(tables) == 1 else f"tables {', '.join(names)}{more} are"
            yield f"{named(np.unique(placed.rank[shards]))}: {which} {reason}"
