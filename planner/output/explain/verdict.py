"""How good a plan is at first glance: against others, how near the best, what its step waits for, how sure prices are.

All of it is read from the plan document, so that every reader comes to the same verdict.
"""

from dataclasses import dataclass

from planner.domain.plan.baseline import LEGAL, NOT_MADE, PREVIOUS_PLAN, TABLE_WISE_BY_SIZE, TORCHREC_GREEDY
from planner.output.documents.compact_plan import CompactPlanDocument
from planner.output.explain.shard_groups import rank_loads

_STEP_TIME = "step_time"
LARGEST_GAP_SHOWN = 100.0  # beyond it the bound says nothing, and its digits fill the line


@dataclass(frozen=True, slots=True, kw_only=True)
class LongestPhase:
    """The phase that the objective has most of."""

    name: str
    share: float  # of the objective's phases
    slowest_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceErrors:
    """How well the prices of a plan are known."""

    measured_share: float  # of the seconds of all ranks: learned, or from measured numbers alone
    lower_fraction: float  # of the objective, by which the plan may be faster
    upper_fraction: float  # of the objective, by which the plan may be slower


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Another plan, and how its objective compares."""

    name: str  # of the baseline
    state: str  # of the baseline
    ratio: float | None  # its seconds over those of the plan; None if they say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a person wants to know of a plan first."""

    comparisons: tuple[Comparison, ...]  # with the default, and with the plan that runs now
    most_above_best: float | None  # fraction of the bound; None if the bound says nothing
    longest_phase: LongestPhase | None  # None of a plan without counted seconds
    prices: PriceErrors | None  # None if the cost model says nothing of its errors


def verdict_of(plan: CompactPlanDocument) -> Verdict:
    """Return the verdict on a plan document; plans of earlier versions may lack parts."""
    gap = plan["objective"]["relative_gap"]
    return Verdict(
        comparisons=_comparisons(plan),
        most_above_best=None if gap is None or gap >= LARGEST_GAP_SHOWN else gap,
        longest_phase=_longest_phase(plan),
        prices=_prices(plan),
    )


def _comparisons(plan: CompactPlanDocument) -> tuple[Comparison, ...]:
    """Return the comparison with TorchRec's plan, else with whole tables if a job can train so, and with the last plan.

    A default that no job can train with is a comparison, too: to have a plan at all is what the plan is better by.
    """
    found = {
        one["name"]: Comparison(name=one["name"], state=one["state"], ratio=one["ratio"])
        for one in plan.get("baselines") or ()
        if one["state"] != NOT_MADE
    }
    defaults = [found[name] for name in (TORCHREC_GREEDY, TABLE_WISE_BY_SIZE) if name in found]
    trainable = [one for one in defaults if one.state == LEGAL]
    return (*(trainable or defaults)[:1], *(one for one in found.values() if one.name == PREVIOUS_PLAN))


def _longest_phase(plan: CompactPlanDocument) -> LongestPhase | None:
    """Return the longest phase: each by its own slowest rank in a step, else all by the rank that takes longest."""
    phases = [phase for phase in plan["phases"] if phase.get("counted", True)]
    if plan["objective"]["name"] == _STEP_TIME:
        seconds = {phase["name"]: phase["seconds"] - phase.get("hidden_seconds", 0.0) for phase in phases}
        slowest = {phase["name"]: phase["slowest_rank"] for phase in phases}
    else:
        loads = {
            rank["rank"]: {phase["name"]: rank["seconds"].get(phase["name"], 0.0) for phase in phases}
            for rank in rank_loads(plan)
        }
        busiest = max(loads, key=lambda rank: sum(loads[rank].values()), default=0)
        seconds = loads.get(busiest, {})
        slowest = dict.fromkeys(seconds, busiest)
    total = sum(seconds.values())
    if total <= 0:
        return None
    name = max(seconds, key=lambda one: seconds[one])
    return LongestPhase(name=name, share=seconds[name] / total, slowest_rank=slowest[name])


def _prices(plan: CompactPlanDocument) -> PriceErrors | None:
    prediction, seconds = plan.get("prediction"), plan["objective"]["seconds"]
    if prediction is None or seconds <= 0:
        return None
    shares = prediction["shares"]
    return PriceErrors(
        measured_share=shares["learned"] + shares["measured"],
        lower_fraction=1 - prediction["lower_seconds"] / seconds,
        upper_fraction=prediction["upper_seconds"] / seconds - 1,
    )
