"""What a job saw that ran a plan: its times next to a prediction, and as rows that models are fitted to.

A job times phases of ranks, not kernels. One rank's lookups are one fused launch with the work of all its shards;
one collective of a phase has the bytes that its ranks held. Where that is not what ran, no row is made, and it is said:
a rank whose shards have other kernels than ``fused`` launches more than one, and a phase with two kinds of
collectives has one time for both.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cost_models.analytic.sizes import output_rows
from cost_models.arrays import Floats, Ints
from cost_models.collectives.collective_bytes import buffers, exchanges_of
from cost_models.learned.reach.ranges import other_code
from cost_models.measurements.schema import Measurements, joined, measurements
from cost_models.protocol import AssignmentModel, CostModel, ShardWork
from cost_models.vocabulary import STEP_PHASES, Phase
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.output.job_feedback.uncovered_times import uncovered_times, unmeasured_parts
from planner.pricing.placed_work import PlacedWork
from planner.pricing.predictions.learned_prediction import PlacedShards, rank_seconds
from planner.verification.evaluate_placement import score

#: Below this probability of as many times outside their intervals, chance is no explanation.
DRIFT_PROBABILITY = 0.001
_ROUNDING = 1e-9
#: Columns of rows of lookups that are columns of the shards' work.
_COLUMNS_OF_WORK = (
    *("shard_rows", "shard_columns", "element_bytes", "output_element_bytes"),
    *("optimizer_element_bytes", "optimizer_row_bytes", "lookups", "distinct_rows"),
)
_COMPUTE = (Phase.FORWARD_COMPUTE, Phase.BACKWARD_COMPUTE)
_EXCHANGES = (Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Seconds of ranks by phase, of the steps of one job."""

    seconds: Floats  # (num_ranks, NUM_PHASES); NaN where nothing was timed
    steps: int
    task: str  # keeps rows of one job together where they are split
    device: str
    library: str
    implementation: str  # of lookups
    communication: str  # of collectives


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPhase:
    """One phase and its prediction."""

    phase: Phase
    observed_seconds: float  # of the slowest rank that was timed
    predicted_seconds: float  # of the slowest of the same ranks
    num_ranks: int
    num_with_interval: int
    num_outside: int  # of these
    is_inside: bool | None  # the slowest rank; None where it has no interval
    uncovered_times: tuple[str, ...]  # of a model with intervals: ranks whose time has none, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Whether more times lie outside their intervals than chance explains."""

    num_compared: int
    num_outside: int
    coverage: float

    @property
    def probability(self) -> float:
        """Of as many outside or more, if each lay outside by itself with ``1 - coverage`` (binomial)."""
        return binomial_tail(self.num_compared, self.num_outside, 1 - self.coverage)

    @property
    def drifted(self) -> bool:
        """Whether chance is no explanation."""
        return self.probability < DRIFT_PROBABILITY


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An observation and the prediction of one cost model."""

    cost_model: str
    phases: tuple[ObservedPhase, ...]
    drift: Drift | None  # None of a model without intervals


def compared(problem: Problem, placement: Placement, model: CostModel, observed: Floats) -> Comparison:
    """Put observed seconds, shape (num_ranks, NUM_PHASES) with NaN where nothing was timed, next to a prediction."""
    evaluation = score(problem, placement, model)
    predicted = np.zeros_like(observed)
    for rank in evaluation.ranks:
        for phase, seconds in rank.seconds.items():
            predicted[rank.rank, phase] = seconds
    lower = upper = predicted
    phases = [phase for phase in STEP_PHASES if not np.all(np.isnan(observed[:, phase]))]
    why: dict[Phase, list[str]] = {}
    if isinstance(model, AssignmentModel):
        slowdown = problem.cluster.phase_slowdown()
        placed = PlacedWork.of(problem, placement).shards()
        together = rank_seconds(placed, model, problem.cluster.hardware)
        # Limits of analytic seconds are an assumption, of which no coverage is known.
        is_learned = together.learned_seconds >= together.seconds * (1 - _ROUNDING)
        lower, upper = (
            np.where(is_learned, limit * slowdown, predicted)
            for limit in (together.lower_seconds, together.upper_seconds)
        )
        bare = ~np.isnan(observed) & ~(lower < upper)  # what an analytic model priced has no interval
        why = {
            phase: uncovered_times(problem, placed, model, phase, np.flatnonzero(bare[:, phase])) for phase in phases
        }
    compared_phases = tuple(_phase(phase, observed, predicted, lower, upper, why.get(phase, ())) for phase in phases)
    drift = None
    if isinstance(model, AssignmentModel):
        drift = Drift(
            num_compared=sum(one.num_with_interval for one in compared_phases),
            num_outside=sum(one.num_outside for one in compared_phases),
            coverage=model.coverage,
        )
    return Comparison(cost_model=evaluation.cost_model, phases=compared_phases, drift=drift)


def binomial_tail(number: int, least: int, probability: float) -> float:
    """Return the probability of ``least`` or more of ``number`` independent events of this probability."""
    if least <= 0:
        return 1.0
    ways = math.lgamma(number + 1)
    logarithms = (
        ways
        - math.lgamma(k + 1)
        - math.lgamma(number - k + 1)
        + k * math.log(probability)
        + (number - k) * math.log1p(-probability)
        for k in range(least, number + 1)
    )
    return min(1.0, math.fsum(map(math.exp, logarithms)))


def rows_of(problem: Problem, placement: Placement, observation: Observation) -> tuple[Measurements, tuple[str, ...]]:
    """Return rows of the schema of measurements, and what none could be made of."""
    placed = PlacedWork.of(problem, placement).shards()
    work = placed.work.take(placed.kind)
    left_out: list[str] = []
    lookups = list(_lookups(problem, placed, work, observation, left_out))
    exchanges = list(_exchanges(work, placed.rank, observation, left_out))
    return joined([*lookups, *exchanges]), tuple(left_out)


def _phase(
    phase: Phase, observed: Floats, predicted: Floats, lower: Floats, upper: Floats, why: Sequence[str]
) -> ObservedPhase:
    ranks = np.flatnonzero(~np.isnan(observed[:, phase]))
    seconds = observed[ranks, phase]
    low, high = lower[ranks, phase], upper[ranks, phase]
    has_interval = low < high
    outside = has_interval & ((seconds < low) | (seconds > high))
    slowest = int(np.argmax(seconds))
    return ObservedPhase(
        phase=phase,
        observed_seconds=float(seconds[slowest]),
        predicted_seconds=float(predicted[ranks, phase].max()),
        num_ranks=len(ranks),
        num_with_interval=int(has_interval.sum()),
        num_outside=int(outside.sum()),
        is_inside=bool(~outside[slowest]) if has_interval[slowest] else None,
        uncovered_times=tuple(why),
    )


def _lookups(
    problem: Problem, placed: PlacedShards, work: ShardWork, seen: Observation, left_out: list[str]
) -> Iterator[Measurements]:
    """Yield the fused launch of each rank that was timed in both directions."""
    forward, backward = (seen.seconds[:, phase] for phase in _COMPUTE)
    timed = ~np.isnan(forward) & ~np.isnan(backward)
    if not np.all(timed):
        left_out.append(
            f"lookups: {np.count_nonzero(~timed)} of {len(timed)} ranks were not timed both forward and backward"
        )
    with_other, is_other = [], other_code(work)
    table = placed.table[placed.kind]
    outputs = output_rows(work)
    took_time = timed & (forward > 0) & (backward > 0)
    if np.any(idle := timed & ~took_time & (forward + backward > 0)):
        left_out.append(f"lookups: {np.count_nonzero(idle)} of {len(timed)} ranks took no time in one direction")
    for rank in np.flatnonzero(took_time).tolist():
        here = np.flatnonzero(placed.rank == rank)
        if len(here) == 0:
            continue
        if np.any(is_other[here]):
            with_other.append(rank)
            continue
        number = len(here)
        columns: dict[str, NDArray[np.generic]] = {
            **_constant(seen, number, "lookup", work, implementation=seen.implementation),
            "table": np.array([f"{problem.tables[table[i]].name[:60]}#{n}" for n, i in enumerate(here.tolist())]),
            **{name: getattr(work, name)[here] for name in _COLUMNS_OF_WORK},
            "outputs": outputs[here],
            "forward_seconds": np.full(number, forward[rank]),
            "backward_seconds": np.full(number, backward[rank]),
            "seconds": np.full(number, forward[rank] + backward[rank]),
        }
        yield measurements(columns, number)
    for words in unmeasured_parts(problem, placed, np.array(with_other, dtype=np.int64)):
        left_out.append(f"lookups: no rows, for a time is not that of fused lookups alone, of {words}")


def _exchanges(work: ShardWork, rank: Ints, seen: Observation, left_out: list[str]) -> Iterator[Measurements]:
    """Yield the collective of each phase that all ranks timed."""
    number, exchanges = work.num_ranks, list(exchanges_of(work))
    for phase in _EXCHANGES:
        found = [one for one in exchanges if one.phase is phase]
        seconds = seen.seconds[:, phase]
        if np.all(np.isnan(seconds)):
            continue
        if np.any(np.isnan(seconds)):
            left_out.append(f"{phase.label}: not all ranks were timed")
        elif not np.all(seconds > 0):
            left_out.append(f"{phase.label}: ranks that took no time")
        elif len(found) != 1 or found[0].group != "all" or found[0].operation == "all_reduce":
            left_out.append(f"{phase.label}: not one collective of all ranks, whose time could be measured")
        else:
            sent, received = buffers(found[0], found[0].rank_bytes(rank, number), number)
            columns: dict[str, NDArray[np.generic]] = {
                **_constant(seen, number, "collective", work, implementation=seen.communication),
                "operation": np.full(number, found[0].operation),
                "direction": np.full(number, found[0].direction),
                "rank": np.arange(number),
                "sent_bytes": sent,
                "received_bytes": received,
                "seconds": seconds,
            }
            yield measurements(columns, number)


def _constant(
    seen: Observation, number: int, kind: str, work: ShardWork, *, implementation: str
) -> dict[str, NDArray[np.generic]]:
    """Return the columns that all rows of a launch share."""
    values: dict[str, str | int] = {
        "kind": kind,
        "launch": 0,
        "task": seen.task,
        "device": seen.device,
        "library": seen.library,
        "implementation": implementation,
        "num_ranks": work.num_ranks,
        "ranks_per_host": work.ranks_per_host,
        "repeats": seen.steps,
    }
    return {name: np.full(number, value) for name, value in values.items()}
