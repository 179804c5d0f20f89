"""What an analytic model says of a whole placement: limits of the seconds of ranks, and what the seconds rest on."""

import numpy as np

from cost_models.arrays import Floats
from cost_models.hardware.hardware import Limit
from cost_models.intervals.factors import KernelKind, kernel_factors
from cost_models.protocol import IntervalModel, ShardSeconds
from cost_models.vocabulary import Evidence, Phase
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Prediction
from planner.domain.problem.problem import Problem
from planner.pricing.placed_work import PlacedWork
from planner.pricing.step.starts import starts_of_placement

_KINDS_OF_LOOKUPS: dict[Phase, KernelKind] = {
    Phase.FORWARD_COMPUTE: "forward device",
    Phase.BACKWARD_COMPUTE: "backward device",
}


def rank_limits(problem: Problem, placed: PlacedWork, model: IntervalModel) -> tuple[Floats, Floats]:
    """Return the lower and the upper seconds of every rank and phase, (num_ranks, NUM_PHASES) each."""
    launch_lookups = _launch_lookups(problem, placed)
    limits = model.limits(placed.work, problem.cluster.hardware, launch_lookups=launch_lookups)
    return placed.by_rank(problem, limits.lower_seconds), placed.by_rank(problem, limits.upper_seconds)


def start_limits(
    problem: Problem, placement: Placement, placed: PlacedWork, model: IntervalModel
) -> tuple[Floats, Floats]:
    """Return the lower and the upper seconds of starts in every phase, the same on every rank, (NUM_PHASES,) each.

    Starts on hardware at its limit: those of collectives at the limits of empty messages, launches at those of numbers.
    Factors of launches are of kernels and their start together, so that starts of lookups have them, too.
    """
    lower, stated, upper = (
        starts_of_placement(problem, placement, model, problem.cluster.hardware.at_limit(limit)).by_phase.copy()
        for limit in (Limit.FASTEST, Limit.NONE, Limit.SLOWEST)
    )
    launch_lookups = _launch_lookups(problem, placed)
    for phase, kind in _KINDS_OF_LOOKUPS.items():
        factors = kernel_factors(kind, launch_lookups)
        lower[phase] = min(lower[phase], stated[phase] * factors.lower)
        upper[phase] = max(upper[phase], stated[phase] * factors.upper)
    return lower, upper


def _launch_lookups(problem: Problem, placed: PlacedWork) -> float:
    """Return the mean lookups of the ranks that have any."""
    lookups = placed.lookups_by_rank(problem)[0]
    busy = lookups[lookups > 0]
    return float(busy.mean()) if len(busy) else 0.0


def analytic_prediction(
    problem: Problem,
    placed: PlacedWork,
    model: IntervalModel,
    predicted: ShardSeconds,
    *,
    limits: tuple[float, float],
) -> Prediction:
    """Say how well the seconds are known; ``limits`` are those of the objective."""
    total = float(placed.by_rank(problem, predicted.seconds).sum())
    measured_seconds = np.where(predicted.evidence == Evidence.MEASURED, predicted.seconds, 0.0)
    measured = float(placed.by_rank(problem, measured_seconds).sum()) / total if total > 0 else 0.0
    return Prediction(
        coverage=model.coverage,
        lower_seconds=limits[0],
        upper_seconds=limits[1],
        learned_share=0.0,
        measured_share=measured,
        analytic_share=1.0 - measured if total > 0 else 0.0,
        fallbacks=(),
        analytic_phases=(),
    )
