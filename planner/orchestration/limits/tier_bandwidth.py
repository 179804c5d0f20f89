"""Host memory and block storage as a limit of plans: no tier may be busy for longer than a step takes.

Prices of :mod:`cost_models.analytic.roofline` hold the time of every tier, so that its plans keep the limit by
themselves. A model that hides traffic (TorchRec's, of caches that are filled ahead) may find plans that no tier can
serve. How a search finds others: :mod:`planner.orchestration.limits.own_time`.
"""

from collections.abc import Iterator

from cost_models.vocabulary import Tier
from planner.domain.formats.units import format_seconds
from planner.domain.plan.plan import Evaluation, PlanResult, Shortfall
from planner.domain.problem.problem import Problem
from planner.errors import Issue
from planner.orchestration.limits.shortfalls import unmet
from planner.pricing.step.phases import phase_windows

_ROUNDING = 1e-9


def overloaded(evaluation: Evaluation) -> Iterator[Issue]:
    """Yield the tiers that a plan keeps busy for longer than its own step takes."""
    for load in evaluation.tiers:
        if load.utilization > 1 + _ROUNDING:
            step_seconds = load.busy_seconds / load.utilization
            yield Issue(
                code="tier-bandwidth",
                pointer=f"/ranks/{load.busiest_rank}",
                message=(
                    f"rank {load.busiest_rank} keeps {load.tier.label} busy for {format_seconds(load.busy_seconds)} of"
                    f" every step, which takes {format_seconds(step_seconds)}"
                ),
                hint=f"keep more rows in hbm, or give {load.tier.label} more bytes per second",
            )


def shortest_step(problem: Problem, lower_bound_seconds: float) -> float:
    """No plan has a shorter step: its dense part, and what a bound of the objective says is not hidden under that."""
    if problem.checkpoint is not None and problem.checkpoint.balance:
        return problem.dense.window_seconds  # the bound may be of checkpoints, which are no part of a step
    hidden = 0.0 if problem.objective == "step_time" else float(phase_windows(problem).sum())
    return problem.dense.window_seconds + max(lower_bound_seconds - hidden, 0.0)


def tier_too_slow(evaluation: Evaluation, lower_bound_seconds: float) -> PlanResult:
    """Return no plan, and which tier has too few bytes per second for the plan that was found."""
    issue = next(overloaded(evaluation))
    worst = max(evaluation.tiers, key=lambda load: load.utilization)
    moved = worst.read_bytes + worst.written_bytes
    shortfall = Shortfall(
        resource=f"{Tier(worst.tier).label}_bytes_per_second",
        required_bytes=moved,
        available_bytes=moved / worst.utilization,
        scope="rank",
        message=f"{issue.message}; none of the plans found leaves it time",
        hint=issue.hint,
    )
    return unmet(shortfall, "tier_bandwidth", lower_bound_seconds)
