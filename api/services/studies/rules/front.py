"""The Pareto front of points, and which points are off it whatever plan they may have.

A point is on the front if no other point's plan is at least as good in every figure and better in one. What is off the
front is *dominated* if even the best that its bound allows is; else the front is *undecided* about the point.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from api.services.studies.rules.base import PointOutcome
from api.services.studies.rules.figures import MORE_IS_BETTER, Figures, with_step
from cost_models.arrays import Bools, Floats

FRONT, DOMINATED, UNDECIDED = "front", "dominated", "undecided"
#: Figures that do not depend on the plan of a point, and those that a step's seconds decide.
OF_MACHINES = frozenset({"num_hosts", "num_ranks", "global_batch_size", "price_per_hour", "watts"})
OF_STEP = frozenset({"step_seconds", "samples_per_second", "price_per_billion_samples", "joules_per_thousand_samples"})
_BEYOND = 1 + 1e-6  # equal plans do not dominate one another


def costs_of(figures: Figures, names: Sequence[str]) -> list[float] | None:
    """Return figures as costs, of which less is better; ``None`` where one is not known."""
    values = [figures.value(name) for name in names]
    if any(value is None for value in values):
        return None
    return [
        -float(value or 0) if name in MORE_IS_BETTER else float(value or 0)
        for name, value in zip(names, values, strict=True)
    ]


def standings(
    outcomes: Mapping[str, PointOutcome], names: Sequence[str], unplanned: Sequence[Figures] = ()
) -> list[dict[str, object]]:
    """Return where each point with a plan stands, those of the front first, in the order of the first figure.

    ``unplanned`` are the figures of machines of points that may have plans and of which none is known: such a plan may
    be as good as can be in all other figures.
    """
    keys: list[str] = []
    found: list[list[float]] = []
    at_best: list[list[float]] = []
    for key, outcome in outcomes.items():
        known = None if outcome.figures is None else costs_of(outcome.figures, names)
        if known is None:
            continue
        least = None if outcome.at_best is None else costs_of(outcome.at_best, names)
        keys.append(key)
        found.append(known)
        unknown = [-np.inf] * len(names)
        at_best.append(unknown if least is None else np.minimum(least, known).tolist())
    if not keys:
        return []
    costs, best = np.array(found), np.array(at_best)
    dominates = _dominates(costs, costs)  # [i, j]: plan i dominates plan j
    by_bound = _dominates(costs, best)  # plan i dominates whatever plan j may have
    reaches = _dominates(best, costs)  # the best that i may have dominates plan j
    np.fill_diagonal(reaches, val=False)
    if unplanned:
        reaches = np.vstack([reaches, _dominates(np.array([_least(one, names) for one in unplanned]), costs)])
    standing = np.where(dominates.any(axis=0), np.where(by_bound.any(axis=0), DOMINATED, UNDECIDED), FRONT)
    order = sorted(range(len(keys)), key=lambda j: (standing[j] != FRONT, costs[j].tolist(), keys[j]))
    return [
        {
            "key": keys[j],
            "standing": str(standing[j]),
            "dominated_by": _first(keys, by_bound[:, j] if standing[j] == DOMINATED else dominates[:, j]),
            "is_proven": bool(standing[j] == DOMINATED or (standing[j] == FRONT and not reaches[:, j].any())),
        }
        for j in order
    ]


def _least(machines: Figures, names: Sequence[str]) -> list[float]:
    """Return the costs that no plan of a point is below of which only the machines are known."""
    known = [costs_of(machines, [name]) if name in OF_MACHINES else None for name in names]
    return [-np.inf if one is None else one[0] for one in known]


def _dominates(better: Floats, worse: Floats) -> Bools:
    """Return whether a row of the first is at least as good as one of the second everywhere, and better somewhere."""
    at_least = np.all(better[:, None, :] <= worse[None, :, :], axis=2)
    somewhere: Bools = at_least & np.any(better[:, None, :] < worse[None, :, :], axis=2)
    return somewhere


def _first(keys: Sequence[str], those: Bools) -> str | None:
    return keys[int(np.argmax(those))] if those.any() else None


def longest_useful_step(machines: Figures, known: Sequence[Figures], names: Sequence[str]) -> float | None:
    """Return the seconds from which on a step leaves a point dominated by a known plan; ``None`` if none does.

    ``machines`` are the figures of the point without a plan. Known are those of plans of other points.
    """
    if not OF_STEP.intersection(names) or not OF_STEP.union(OF_MACHINES).issuperset(names):
        return None
    at_one_second = with_step(machines, 1.0, is_whole_step=True)
    limits = [limit for one in known if (limit := _step_dominated_by(one, at_one_second, names)) is not None]
    return min(limits) * _BEYOND if limits else None


def _step_dominated_by(plan: Figures, at_one_second: Figures, names: Sequence[str]) -> float | None:
    seconds = 0.0
    for name in names:
        theirs, mine = plan.value(name), at_one_second.value(name)
        if theirs is None or mine is None or (name in OF_STEP and min(theirs, mine) <= 0):
            return None
        if name in OF_STEP:
            seconds = max(seconds, mine / theirs if name in MORE_IS_BETTER else theirs / mine)
        elif (theirs < mine) if name in MORE_IS_BETTER else (theirs > mine):
            return None
    return seconds
