"""Measured next to predicted: order, winner, regret, and what a kind of sharding costs beyond its price."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from benchmarks.prices.real_steps.measured import Measured, tau
from benchmarks.prices.real_steps.plans import OURS, TORCHREC, NamedPlan, Prediction
from cost_models.arrays import Bools, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How the prices of one cost model hold on one model, and how its plan does."""

    cost_model: str
    tau: float  # of predicted and measured seconds over different plans
    busy_tau: float  # the same with processor seconds of the busiest rank
    ratio: float  # predicted over measured seconds, geometric mean
    plan: str  # that the planner made under this cost model
    over_best: float  # measured, over the best of all plans: chosen in one half of the rounds, compared in the other
    over_torchrec: float  # measured, over TorchRec's planner's plan
    picked: str  # the plan with the least predicted seconds
    picked_over_best: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """A model under its plans."""

    model: str
    plans: Sequence[NamedPlan]  # different ones, and twins
    measured: Measured
    predictions: Mapping[str, Sequence[Prediction]]  # by cost model, of each plan

    @property
    def twins(self) -> list[tuple[int, int]]:
        """Pairs of equal plans that were built twice."""
        first: dict[str, int] = {}
        found = []
        for index, plan in enumerate(self.plans):
            other = first.setdefault(plan.digest, index)
            if other != index:
                found.append((other, index))
        return found

    @property
    def different(self) -> list[int]:
        """One plan of each kind of twins."""
        doubles = {second for _, second in self.twins}
        return [index for index in range(len(self.plans)) if index not in doubles]

    @property
    def noise(self) -> float:
        return self.measured.noise(self.twins)

    def verdict(self, cost_model: str) -> Verdict:
        """Judge a cost model, and the plan that was made under it."""
        different = self.different
        predicted = np.array([one.step_seconds for one in self.predictions[cost_model]])
        seconds = self.measured.seconds
        ours = self._of(f"{OURS}{cost_model}")
        picked = different[int(np.argmin(predicted[different]))]
        return Verdict(
            cost_model=cost_model,
            tau=tau(predicted[different], seconds[different]),
            busy_tau=tau(predicted[different], self.measured.busy_seconds[different]),
            ratio=float(np.exp(np.mean(np.log(predicted[different] / seconds[different])))),
            plan=self.plans[ours].name,
            over_best=self._over_best(ours),
            over_torchrec=float(seconds[ours] / seconds[self._of(TORCHREC)]),
            picked=self.plans[picked].name,
            picked_over_best=self._over_best(picked),
        )

    def _of(self, name: str) -> int:
        return next(index for index, plan in enumerate(self.plans) if name in plan.names)

    def _over_best(self, plan: int) -> float:
        """Return measured seconds over those of the best plan, which luck cannot have made the best."""
        different = self.different
        logs = []
        halves = self.measured.halves
        for chosen, compared in (halves, halves[::-1]):
            best = different[int(np.argmin(chosen[different]))]
            logs.append(np.log(compared[plan] / compared[best]))
        return float(np.exp(np.mean(logs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class KindStart:
    """What a step takes longer for using a sharding type at all, however little lies there."""

    kind: str
    seconds: float
    error_seconds: float  # standard error
    busy_seconds: float  # of it, processor time of the busiest rank
    num_plans: int  # that use it


def kind_starts(bare: ModelResult) -> list[KindStart]:
    """Fit the steps of the bare model as a constant and a start of each sharding type that a plan uses, none negative.

    Least squares, each plan weighted by 1 / measured seconds. Errors are those of 200 draws of plans with replacement.
    The constant is what every plan pays; sharding types that all plans use cannot be separated from it.
    """
    kinds = sorted({kind for plan in bare.plans for kind in plan.kinds})
    uses = np.array([[kind in plan.kinds for kind in kinds] for plan in bare.plans])
    rng = np.random.default_rng(5)
    draws = rng.integers(len(uses), size=(200, len(uses)))
    found, busy = _fitted(uses, bare.measured.seconds), _fitted(uses, bare.measured.busy_seconds)
    drawn = np.array([_fitted(uses[take], bare.measured.seconds[take]) for take in draws])
    return [
        KindStart(
            kind=kind,
            seconds=float(found[index]),
            error_seconds=float(drawn[:, index].std()),
            busy_seconds=float(busy[index]),
            num_plans=int(uses[:, index].sum()),
        )
        for index, kind in enumerate(kinds)
    ]


def _fitted(uses: Bools, seconds: Floats) -> Floats:
    """Return the start of each kind, and the constant."""
    found: Floats = nnls(np.column_stack([uses, np.ones(len(uses))]) / seconds[:, np.newaxis], np.ones(len(uses)))[0]
    return found
