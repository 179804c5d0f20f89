"""One plan for several scenarios: plans of single scenarios, one search over all, and what robustness costs.

1. Every scenario is planned by itself, and so are the mean and the largest of their traffic.
2. All of these plans are evaluated in every scenario, and a plan of all scenarios is searched for.
3. The plan that was searched for becomes a plan of its own by a solve with all tables pinned.
4. The best of all plans is evaluated again, and moving from it to the best plans of single scenarios is measured.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from api.execution.processes.scenarios import SearchTogether
from api.schemas.studies.scenarios import ScenariosSpec
from api.services.studies.kinds.robust.answer import LARGEST, MEAN, ROBUST, Evaluations, own_key
from api.services.studies.kinds.robust.traffic import mixed, scenarios_of, weighted_mean
from api.services.studies.rules.base import Outcomes, Point
from api.services.studies.rules.comparison import Comparison
from api.services.studies.rules.specs import Impossible, changed, machines_of
from api.specs.input.changes import with_field
from planner.orchestration.scenarios.spread import Spread

_TOGETHER, _CHOSEN = "together", "chosen"


class Robust:
    """Fulfils ``api.services.studies.rules.base.Study``."""

    def __init__(self, request: ScenariosSpec) -> None:
        """Raises ``InvalidProblem`` if a scenario cannot be made, or is of other tables or ranks."""
        self._request = request
        self._scenarios = scenarios_of(request)
        weights = np.array([one.weight for one in self._scenarios])
        self._spread = Spread(weights=weights, quantile=request.quantile)

    def next_points(self, ended: Outcomes) -> Sequence[Point]:
        """Return the points of the first step that has some left."""
        for points in (self._single, self._together, self._robust, self._chosen):
            left = [point for point in points(ended) if point.key not in ended]
            if left:
                return left
        return ()

    def answer(self, ended: Outcomes) -> dict[str, Any]:
        """Return the plan, its step in every scenario, what robustness costs, and where to move to another plan."""
        return self._evaluations(ended).document()

    def _single(self, _ended: Outcomes) -> list[Point]:
        """Return every scenario by itself, the mean and the largest traffic."""
        base = changed(self._request, {})
        specs = {own_key(one.label): one.spec for one in self._scenarios}
        specs[MEAN] = mixed(self._scenarios, base, weighted_mean(self._scenarios))
        specs[LARGEST] = mixed(self._scenarios, base, max)
        return [self._point(key, spec) for key, spec in specs.items()]

    def _together(self, ended: Outcomes) -> list[Point]:
        """Return their plans in every scenario, and the search over all."""
        plans = self._evaluations(ended).digests
        request = self._request
        search = SearchTogether(
            name=ROBUST,
            weights=[one.weight for one in self._scenarios],
            quantile=request.quantile,
            is_relative=request.measure == "ratio_to_own",
            memory_share=request.memory_probability,
            num_rounds=request.num_rounds,
        )
        return [self._compared(_TOGETHER, plans, search=search if request.num_rounds else None)] if plans else []

    def _robust(self, ended: Outcomes) -> list[Point]:
        """Return what the search found as a solve with every table where it is."""
        compared = ended[_TOGETHER].compared if _TOGETHER in ended else None
        if compared is None or compared.pins is None:
            return []
        spec = changed(self._request, {})
        tables = [
            {**table, "constraints": {**(table.get("constraints") or {}), "pinned": compared.pins[table["name"]]}}
            for table in spec["model"]["tables"]
        ]
        return [self._point(ROBUST, with_field(spec, ("model", "tables"), tables))]

    def _chosen(self, ended: Outcomes) -> list[Point]:
        """Return the best plan again, and what moving away from it takes."""
        evaluations = self._evaluations(ended)
        if evaluations.chosen is None:
            return []
        moves = evaluations.moves()
        names = dict.fromkeys([evaluations.chosen, *(name for pair in moves.values() for name in pair)])
        plans = {name: evaluations.digests[name] for name in names}
        return [self._compared(_CHOSEN, plans, moves=moves)]

    def _evaluations(self, ended: Outcomes) -> Evaluations:
        evaluated, chosen = (ended[key].compared if key in ended else None for key in (_TOGETHER, _CHOSEN))
        return Evaluations(
            request=self._request,
            scenarios=self._scenarios,
            spread=self._spread,
            ended=ended,
            evaluated=evaluated,
            again=chosen,
        )

    def _point(self, key: str, spec: Mapping[str, Any]) -> Point:
        try:
            machines = machines_of(spec, self._request.prices)
        except Impossible as error:
            return Point(key=key, labels={"plan": key}, spec=None, machines=None, issue=str(error))
        return Point(key=key, labels={"plan": key}, spec=spec, machines=machines)

    def _compared(
        self,
        key: str,
        plans: Mapping[str, str],
        *,
        search: SearchTogether | None = None,
        moves: Mapping[str, tuple[str, str]] | None = None,
    ) -> Point:
        specs = {one.label: one.spec for one in self._scenarios}
        comparison = Comparison(specs=specs, plans=plans, search=search, moves=moves or {})
        return Point(key=key, labels={"plan": key}, spec=None, machines=None, comparison=comparison)
