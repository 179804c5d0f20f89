"""Between which limits the difference of two plans' objectives lies, where the errors of both have much in common.

Two plans for one machine are priced by the same laws. A law that is 10% too fast is so for both plans, so that the
limits of two objectives say little of their difference. The rule, phase by phase:

- Both plans use the same sharding types (phases of communication) or the same kernels (phases of computation): the
  phase is off by one factor in both. It cancels in what both spend, and what one spends more is off by that factor,
  which lies between the limits of the phase, the wider ones of the two plans.
- Otherwise other laws price the phase: each plan's seconds lie anywhere between their own limits.

The limits of phases add up, every phase at its own limit at once. A difference whose limits have zero between them
says nothing of which plan is faster.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cost_models.vocabulary import Phase
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Evaluation

#: Phases whose laws follow from the kernels of a plan; the others follow from its sharding types.
_OF_KERNELS = frozenset(one.label for one in (Phase.PREFETCH, Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE))


@dataclass(frozen=True, slots=True)
class PricedPhase:
    """What a phase adds to an objective, and between which factors of that measured seconds lie."""

    seconds: float
    lower: float  # 0 <= lower <= 1
    upper: float  # >= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPlan:
    """An objective of a plan, phase by phase, and which laws priced it."""

    phases: Mapping[str, PricedPhase]
    sharding_types: frozenset[str]
    kernels: frozenset[str]

    def has_laws_of(self, other: "PricedPlan", phase: str) -> bool:
        """Whether the same laws price a phase of both plans."""
        if phase in _OF_KERNELS:
            return self.kernels == other.kernels
        return self.sharding_types == other.sharding_types


def change_limits(before: PricedPlan, after: PricedPlan) -> tuple[float, float]:
    """Return the least and the largest seconds by which the objective grows from one plan to another."""
    nothing = PricedPhase(0.0, 1.0, 1.0)
    least = most = 0.0
    for phase in {**before.phases, **after.phases}:
        one, other = before.phases.get(phase, nothing), after.phases.get(phase, nothing)
        if before.has_laws_of(after, phase):
            more = other.seconds - one.seconds
            ends = (more * min(one.lower, other.lower), more * max(one.upper, other.upper))
        else:
            ends = (
                other.seconds * other.lower - one.seconds * one.upper,
                other.seconds * other.upper - one.seconds * one.lower,
            )
        least, most = least + min(ends), most + max(ends)
    return least, most


def phase_factors(seconds: float, lower: float | None, upper: float | None) -> tuple[float, float] | None:
    """Return the limits of a phase as shares of its seconds; ``None`` where none are known."""
    if lower is None or upper is None:
        return None
    return (lower / seconds, upper / seconds) if seconds > 0 else (1.0, 1.0)


def priced_plan(evaluation: Evaluation, placement: Placement) -> PricedPlan | None:
    """Return the phases of a scored placement in its objective; ``None`` where the cost model knows no limits."""
    phases = {}
    slowest = max(evaluation.ranks, key=lambda rank: sum(rank.seconds[p.phase] for p in evaluation.phases if p.counted))
    for load in evaluation.phases:
        factors = phase_factors(load.seconds, load.lower_seconds, load.upper_seconds)
        if factors is None:
            return None
        is_step = evaluation.objective == "step_time"
        seconds = load.seconds - load.hidden_seconds if is_step else slowest.seconds[load.phase]
        if load.counted:
            phases[load.phase.label] = PricedPhase(seconds, *factors)
    return PricedPlan(
        phases=phases,
        sharding_types=frozenset(table.sharding_type.label for table in placement.tables),
        kernels=frozenset(table.compute_kernel.label for table in placement.tables),
    )
