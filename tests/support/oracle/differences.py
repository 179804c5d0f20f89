"""The product's figures of a plan next to the oracle's."""

from collections.abc import Iterator
from typing import Any

from planner.domain.plan.plan import Evaluation, RankLoad
from tests.support.oracle.plan import Recomputed, recompute


def figures(spec: dict[str, Any], plan: dict[str, Any], evaluation: Evaluation) -> Iterator[tuple[str, float, float]]:
    """Yield name, the product's value and the oracle's, of every figure of a plan."""
    mine: Recomputed = recompute(spec, plan)
    yield "objective", evaluation.objective_seconds, mine.objective
    for rank, load in enumerate(evaluation.ranks):
        for phase, seconds in load.seconds.items():
            yield f"seconds of rank {rank}, {phase.label}", seconds, mine.seconds[rank][phase.label]
        lines = {(t.label, name): held for t, of_tier in load.ledger_bytes.items() for name, held in of_tier.items()}
        for place in lines.keys() | {place for place, held in mine.bytes[rank].items() if held}:
            yield f"bytes of rank {rank}, {place}", lines.get(place, 0.0), mine.bytes[rank][place]
        taken = {(t.label, name): held for t, of_tier in load.reserved_bytes.items() for name, held in of_tier.items()}
        for place in taken.keys() | {place for place, held in mine.reserved[rank].items() if held}:
            yield f"reserved of rank {rank}, {place}", taken.get(place, 0.0), mine.reserved[rank][place]
        yield f"lookups of rank {rank}", load.lookups, mine.lookups[rank]
        yield f"id bytes of rank {rank}", load.id_bytes, mine.id_bytes[rank]
        yield from _step_memory(rank, load, mine)
        if load.torchrec_bytes is not None and mine.torchrec_bytes is not None:
            for tier, held in load.torchrec_bytes.items():
                yield f"torchrec bytes of rank {rank}, {tier.label}", held, mine.torchrec_bytes[rank][tier.label]

    step = evaluation.whole_step
    assert (step is None) == (mine.whole_step is None)
    if step is not None and mine.whole_step is not None:
        for name, value in mine.whole_step.items():
            yield f"whole step, {name}", getattr(step, name), value
    for tier in evaluation.tiers:
        of_rank = mine.tiers[tier.busiest_rank][tier.tier.label]
        most = max(one[tier.tier.label].busy for one in mine.tiers if tier.tier.label in one)
        yield f"{tier.tier.label}, busy", tier.busy_seconds, most
        yield f"{tier.tier.label}, utilization", tier.utilization, of_rank.busy / mine.step_seconds
        yield f"{tier.tier.label}, read", tier.read_bytes, of_rank.read
        yield f"{tier.tier.label}, written", tier.written_bytes, of_rank.written
        yield f"{tier.tier.label}, operations", tier.operations, of_rank.operations


def _step_memory(rank: int, load: RankLoad, mine: Recomputed) -> Iterator[tuple[str, float, float]]:
    """Yield what the device of a rank holds in each phase of a step."""
    memory = load.step_memory
    assert (memory is None) == (mine.buffers is None)
    if memory is None or mine.buffers is None:
        return
    stays, buffers = mine.persistent[rank], mine.buffers[rank]
    for line, held in memory.persistent_bytes.items():
        yield f"rank {rank} through a step, {line}", held, stays[line]
    totals = {phase: sum(stays.values()) for phase in memory.phase_bytes}
    for phase, lines in memory.buffer_bytes.items():
        for line, held in lines.items():
            yield f"rank {rank} in {phase.label}, {line}", held, buffers[phase.label, line]
        totals[phase] += sum(amount for (name, _), amount in buffers.items() if name == phase.label)
        yield f"rank {rank} in {phase.label}", memory.phase_bytes[phase], totals[phase]
    yield f"peak of rank {rank}", memory.peak_bytes, max(totals.values())


def differ(first: float, second: float, tolerance: float) -> bool:
    """Whether two values are not equal to a relative tolerance."""
    return abs(first - second) > tolerance * max(abs(first), abs(second))
