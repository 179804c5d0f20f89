r"""What a study of scenarios found: the best plan, its price in every scenario, and a bound that no plan goes below.

A plan is in no scenario faster than the bound of this scenario alone. So what is minimised, which no longer step makes
shorter, is at least what it is of these bounds. Of the worst scenario the search over all gives a bound, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from api.schemas.studies.scenarios import ScenariosSpec
from api.services.studies.kinds.robust.traffic import Scenario
from api.services.studies.rules.base import Outcomes
from api.services.studies.rules.comparison import Compared
from cost_models.arrays import Bools, Floats
from planner.orchestration.scenarios.spread import Spread

MEAN, LARGEST, ROBUST = "mean", "largest", "robust"
_LEAST_SAVED = 1e-3  # of a step: less is no reason to move


def own_key(label: str) -> str:
    """Return the key of the point of a scenario alone."""
    return f"own/{label}"


@dataclass(frozen=True, kw_only=True)
class Evaluations:
    """What is known after some points."""

    request: ScenariosSpec
    scenarios: Sequence[Scenario]
    spread: Spread
    ended: Outcomes
    evaluated: Compared | None  # every plan in every scenario
    again: Compared | None  # the best plan once more, with what moving takes

    @cached_property
    def digests(self) -> dict[str, str]:
        """The plans that there are, by the keys of their points."""
        found = {key: one.plan_digest for key, one in self.ended.items()}
        return {key: digest for key, digest in found.items() if digest is not None}

    @cached_property
    def names(self) -> list[str]:
        """The plans that were evaluated, the most special first: of equal plans the first is chosen."""
        evaluated = {} if self.evaluated is None else self.evaluated.seconds
        return [name for name in (MEAN, ROBUST, LARGEST, *self._own_keys) if name in evaluated and name in self.digests]

    @property
    def _own_keys(self) -> list[str]:
        return [own_key(one.label) for one in self.scenarios]

    def seconds(self, name: str) -> Floats:
        """Return the steps of a plan in every scenario, (S,); infinite where it is none."""
        assert self.evaluated is not None
        steps = self.evaluated.seconds[name]
        return np.array([steps.get(one.label, math.inf) for one in self.scenarios])

    def fits(self, name: str) -> Bools:
        """Return the scenarios that a plan may be used in, (S,)."""
        assert self.evaluated is not None
        issues = self.evaluated.issues.get(name, {})
        return np.array([one.label not in issues for one in self.scenarios])

    @cached_property
    def _own(self) -> list[str | None]:
        """The best plan of each scenario; ``None`` where no plan may be used."""
        found: list[str | None] = []
        for index in range(len(self.scenarios)):
            usable = [name for name in self.names if self.fits(name)[index]]
            found.append(min(usable, key=lambda name: self.seconds(name)[index], default=None))
        return found

    @cached_property
    def own_seconds(self) -> Floats:
        """Step of the best plan of each scenario, (S,); infinite where there is none."""
        found: Floats = np.array(
            [math.inf if name is None else self.seconds(name)[index] for index, name in enumerate(self._own)]
        )
        return found

    @cached_property
    def bound_seconds(self) -> Floats:
        """What no plan of each scenario is shorter than, (S,); 0 where that is not known."""
        outcomes = [self.ended.get(key) for key in self._own_keys]
        bounds = [
            0.0 if one is None or one.lower_bound_seconds is None else one.lower_bound_seconds for one in outcomes
        ]
        least: Floats = np.minimum(np.array(bounds), self.own_seconds)
        return least

    @cached_property
    def _units(self) -> Floats:
        return self.own_seconds if self.request.measure == "ratio_to_own" else np.ones(len(self.scenarios))

    def cost(self, seconds: Floats) -> float:
        """Return what is minimised of steps, (S,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            counted = np.where(np.isfinite(self._units) & (self._units > 0), seconds / self._units, 1.0)
        return self.spread.cost(counted)

    @cached_property
    def chosen(self) -> str | None:
        """The best plan that fits in as much of the weight as it has to."""
        share = self.request.memory_probability
        legal = [name for name in self.names if self.spread.reaches(self.fits(name), share)]
        costs = {
            name: (self.cost(self.seconds(name)), float(self.spread.weights @ self.seconds(name))) for name in legal
        }
        best = min(legal, key=costs.__getitem__, default=None)
        return best if best is not None and math.isfinite(costs[best][0]) else None

    @property
    def bound(self) -> float | None:
        """What no plan's cost is below; ``None`` if plans need not fit everywhere: bounds are of those that do."""
        if self.request.memory_probability < 1 or self.evaluated is None:
            return None
        least = self.cost(self.bound_seconds)
        return max(least, self.evaluated.bound) if self.spread.is_worst else least

    def moves(self) -> dict[str, tuple[str, str]]:
        """Return by scenario the plan that is left and the one that is worth moving to, where one is."""
        assert self.chosen is not None
        steps = self.seconds(self.chosen)
        pairs = zip(self.scenarios, self._own, steps.tolist(), self.own_seconds.tolist(), strict=True)
        return {
            one.label: (self.chosen, own)
            for one, own, step, own_step in pairs
            if own is not None and step - own_step > _LEAST_SAVED * step
        }

    def document(self) -> dict[str, Any]:
        """Return the answer as JSON."""
        request = self.request
        known = {name: self._plan(name) for name in self.names}
        return {
            "objective": "worst" if self.spread.is_worst else {"quantile": request.quantile},
            "measure": request.measure,
            "plan": None if self.chosen is None else known[self.chosen],
            "plan_of_mean": known.get(MEAN),
            "lower_bound": self.bound,
            "relative_gap": self._gap(),
            "scenarios": [self._scenario(index) for index in range(len(self.scenarios))] if self.names else [],
            "plans": sorted(known.values(), key=lambda one: (one["cost"] is None, one["cost"], one["key"])),
            "detail": "" if self.evaluated is None else self.evaluated.detail,
        }

    def _gap(self) -> float | None:
        bound = self.bound
        if self.chosen is None or bound is None or bound <= 0:
            return None
        return max(self.cost(self.seconds(self.chosen)) / bound - 1, 0.0)

    def _plan(self, name: str) -> dict[str, Any]:
        steps = self.seconds(name)
        worst = int(np.argmax(self._ratios(steps)))
        return {
            "key": name,
            "plan_digest": self.digests[name],
            "cost": _finite(self.cost(steps)),
            "most_seconds": _finite(float(steps.max())),
            "mean_seconds": _finite(float(self.spread.weights @ steps / self.spread.weights.sum())),
            "most_ratio_to_own": _finite(float(self._ratios(steps)[worst])),
            "fits_share": self.spread.share(self.fits(name)),
        }

    def _ratios(self, steps: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios: Floats = np.where(steps <= self.own_seconds, 1.0, steps / self.own_seconds)
        return ratios

    def _scenario(self, index: int) -> dict[str, Any]:
        one, own = self.scenarios[index], self._own[index]
        found: dict[str, Any] = {
            "label": one.label,
            "weight": one.weight,
            "own_plan_digest": None if own is None else self.digests[own],
            "own_seconds": _finite(float(self.own_seconds[index])),
            "own_lower_bound_seconds": float(self.bound_seconds[index]) if own is not None else None,
        }
        for name, plan in (("", self.chosen), ("mean_", MEAN if MEAN in self.names else None)):
            steps = None if plan is None else self.seconds(plan)
            found[f"{name}seconds"] = None if steps is None else _finite(float(steps[index]))
            found[f"{name}ratio_to_own"] = None if steps is None else _finite(float(self._ratios(steps)[index]))
        found["issue"] = "" if self.chosen is None or self.evaluated is None else self._issue(self.chosen, one.label)
        found["replan"] = self._replan(one.label, found)
        return found

    def _issue(self, name: str, label: str) -> str:
        assert self.evaluated is not None
        return self.evaluated.issues.get(name, {}).get(label, "")

    def _replan(self, label: str, found: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return what moving to the scenario's own plan saves and takes; ``None`` if it saves next to nothing."""
        move = None if self.again is None else self.again.moves.get(label)
        if move is None:
            return None
        saved = found["seconds"] - found["own_seconds"]
        return {
            "plan_digest": found["own_plan_digest"],
            "saved_seconds_per_step": saved,
            "moved_bytes": move["moved_bytes"],
            "move_seconds": move["seconds"],
            "break_even_steps": None if move["seconds"] is None else math.ceil(move["seconds"] / saved),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
