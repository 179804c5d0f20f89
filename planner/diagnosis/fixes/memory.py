"""More memory per rank, or less of it reserved."""

import math
from collections.abc import Sequence
from dataclasses import replace

from cost_models.vocabulary import Tier
from planner.diagnosis.constraints import RESERVATION
from planner.diagnosis.fixes.ladder import SLACK, Ladder, Step
from planner.domain.formats.units import format_bytes
from planner.domain.plan.diagnosis import SpecChange
from planner.domain.plan.plan import Shortfall
from planner.domain.problem.problem import Problem

_STEPS = 512
_MOST_TIMES = 8  # what the largest rank has, on top of that
_PERCENT = 100


def memory_ladder(problem: Problem, shortfalls: Sequence[Shortfall]) -> Ladder:
    """Give every rank the same number of bytes more: up to nine times the largest rank's or twice what is short.

    Where no bytes are known to be short, memory may not be what is missing: the largest rank's is doubled at most.
    """
    cluster = problem.cluster
    tier = cluster.device_tier
    have = tuple(cluster.bytes_by_rank()[:, tier].tolist())
    missing, proven = (_missing_bytes(problem, shortfalls, scopes) for scopes in (("cluster", "rank"), ("cluster",)))
    most = max(_MOST_TIMES * max(have), 2 * missing) if missing > 0 else max(have)
    step_bytes = math.ceil(max(most, _STEPS) / _STEPS)

    def step(number: int) -> Step:
        more = number * step_bytes
        sizes = tuple(math.ceil(size) + more for size in have)
        larger, change = _with_bytes(problem, tier, sizes)
        message = f"{format_bytes(more)} more {tier.label} on every rank ({_total(sizes)})"
        return Step(problem=larger, message=message, changes=(change,))

    return Ladder(
        kind="memory",
        num_steps=_STEPS,
        step=step,
        guess=math.ceil(missing * SLACK / step_bytes),
        failing=max(0, math.ceil(proven / step_bytes) - 1),
    )


def reservation_ladder(problem: Problem) -> Ladder:
    """Reserve less of every rank's memory, one hundredth of it after the other."""
    fraction = problem.reservation.hbm_fraction
    steps = math.ceil(fraction * _PERCENT - 1e-9)

    def step(number: int) -> Step:
        lower = (steps - number) / _PERCENT
        return Step(
            problem=replace(problem, reservation=replace(problem.reservation, hbm_fraction=lower)),
            message=f"reserve {lower:.2f} of every rank's memory instead of {fraction:.3g}",
            changes=(SpecChange(pointer=f"/constraints/{RESERVATION}", value=lower),),
        )

    return Ladder(kind="reservation", num_steps=steps, step=step)


def _missing_bytes(problem: Problem, shortfalls: Sequence[Shortfall], scopes: Sequence[str]) -> float:
    """Bytes that each rank lacks, before reservations, by shortfalls of these scopes; 0 where they lack none.

    What the cluster lacks is proven for all cuts; what a rank lacks is for the best of the listed ones.
    """
    missing = 0.0
    for shortfall in shortfalls:
        if shortfall.scope in scopes:
            ranks = problem.world_size if shortfall.scope == "cluster" else 1
            missing = max(missing, (shortfall.required_bytes - shortfall.available_bytes) / ranks)
    return missing / (1 - problem.reservation.hbm_fraction)


def _with_bytes(problem: Problem, tier: Tier, sizes: tuple[int, ...]) -> tuple[Problem, SpecChange]:
    """Return the problem whose ranks have these bytes, and that as a change of the spec."""
    cluster, field, value = problem.cluster, f"{tier.label}_bytes", sizes[0]
    if cluster.hbm_bytes_by_rank is not None:
        cluster = replace(cluster, hbm_bytes_by_rank=tuple(map(float, sizes)))
        change = SpecChange(pointer="/hardware/overrides/hbm_bytes_by_rank", value=sizes)
    else:
        cluster = replace(cluster, hardware=cluster.hardware.with_overrides({field: value}, {field: "bytes"}))
        change = SpecChange(pointer=f"/hardware/overrides/{field}", value=value)
    return replace(problem, cluster=cluster), change


def _total(sizes: tuple[int, ...]) -> str:
    least, most = format_bytes(min(sizes)), format_bytes(max(sizes))
    return f"{least} in all" if least == most else f"{least} to {most} in all"
