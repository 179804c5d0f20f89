"""What a learned model says of a whole placement: seconds of ranks, their limits, and what it does not know."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Ints
from cost_models.hardware.hardware import Hardware
from cost_models.protocol import AssignmentModel, RankSeconds, ShardWork
from cost_models.vocabulary import Evidence
from planner.domain.plan.plan import AnalyticPhase, Fallback, Prediction
from planner.domain.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedShards:
    """Shards of a placement, each with the work of its kind, on its rank."""

    work: ShardWork  # of each kind
    table: Ints  # (num_kinds,) positions in problem.tables
    kind: Ints  # (num_shards,)
    rank: Ints  # (num_shards,)


def rank_seconds(placed: PlacedShards, model: AssignmentModel, hardware: Hardware) -> RankSeconds:
    """Return the seconds of every rank and phase."""
    return model.predict_ranks(placed.work.take(placed.kind), placed.rank, hardware)


def prediction(
    problem: Problem,
    placed: PlacedShards,
    model: AssignmentModel,
    ranks: RankSeconds,
    *,
    limits: tuple[float, float],
    hardware: Hardware,
) -> Prediction:
    """Say how well the seconds are known; ``limits`` are those of the objective."""
    total = float(ranks.seconds.sum())
    analytic = ranks.seconds - ranks.learned_seconds
    measured = float(analytic[ranks.evidence == Evidence.MEASURED].sum())
    learned = float(ranks.learned_seconds.sum())

    def share(seconds: float) -> float:
        return seconds / total if total > 0 else 0.0

    return Prediction(
        coverage=model.coverage,
        lower_seconds=limits[0],
        upper_seconds=limits[1],
        learned_share=share(learned),
        measured_share=share(measured),
        analytic_share=1.0 - share(learned) - share(measured) if total > 0 else 0.0,
        fallbacks=_fallbacks(problem, placed, model.unknown(placed.work, hardware)),
        analytic_phases=tuple(
            AnalyticPhase(phase=phase, reason=reason)
            for phase, reason in model.unmeasured_collectives(placed.work.take(np.unique(placed.kind)))
        ),
    )


def _fallbacks(problem: Problem, placed: PlacedShards, reasons: tuple[str, ...]) -> tuple[Fallback, ...]:
    """Return what is outside the measured range, by table and reason, in the order of tables."""
    counts = np.bincount(placed.kind, minlength=placed.work.num_shards)
    found: dict[tuple[int, str], int] = {}
    for kind, reason in enumerate(reasons):
        if reason and counts[kind] and placed.work.lookups[kind] > 0:  # what is never looked up takes no time
            key = (int(placed.table[kind]), reason)
            found[key] = found.get(key, 0) + int(counts[kind])
    return tuple(
        Fallback(table=problem.tables[table].name, num_shards=number, reason=reason)
        for (table, reason), number in sorted(found.items())
    )
