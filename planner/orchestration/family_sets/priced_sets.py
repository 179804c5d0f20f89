"""Bounds on all sets of kinds at once: what each set costs at least at the prices of a few relaxations.

Prices of a relaxation bound the plans of any set of kinds, not only of the set that they were found for (the dual value
of :mod:`planner.solver.bounds.dual` holds at any prices): every table takes the cheapest of the kinds in the set, and
the starts of these kinds are paid in full. So a few relaxations, each of the set that promises most so far, rank all
sets, and leave out most of them. This is Benders' decomposition with sets of kinds for the integer part.
"""

from collections.abc import Sequence

import numpy as np

from cost_models.arrays import Bools, Floats
from planner.solver.bounds.chain import ROUNDING
from planner.solver.bounds.dual import Prices, reduced_costs
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.problem import Objective, SolverProblem

#: Kinds up to which all sets are looked at: 1,024 of them.
MOST_KINDS = 10


class PricedSets:
    """The least seconds of every set of the kinds of a problem; N sets."""

    def __init__(self, priced: SolverProblem) -> None:
        self._priced = priced
        has = np.zeros((priced.num_tables, priced.num_kinds), dtype=np.bool_)
        has[priced.family_table, priced.family_kind] = True
        every: Bools = (np.arange(2**priced.num_kinds)[:, None] >> np.arange(priced.num_kinds)) & 1 == 1
        serves_all = np.all(every @ np.unique(has, axis=0).T, axis=1)
        pinned = priced.family_kind[priced.shape_family[priced.pinned_shape]]
        #: (N, K) those that have a kind for each table, and the kinds of pinned pieces
        self.kinds: Bools = every[
            serves_all & np.all(every[:, pinned], axis=1) & ~np.any(every & ~has.any(axis=0), axis=1)
        ]
        self.least_seconds: Floats = np.zeros(len(self.kinds))  # (N,)

    def raise_by(self, prices: Sequence[Prices | None]) -> None:
        """Raise the least seconds of all sets by the prices of some set's relaxations, in their order."""
        for model, some in zip(relaxations(self._priced), prices, strict=True):
            if some is not None:
                self.least_seconds = np.maximum(self.least_seconds, self._value(model, some) * (1 - ROUNDING))

    def _value(self, model: Relaxation, prices: Prices) -> Floats:
        """Return the dual value of every set at some prices, (N,)."""
        priced = self._priced
        costs = np.full((priced.num_kinds, priced.num_tables), np.inf)
        np.minimum.at(costs, (priced.family_kind[model.family], model.choice_table), reduced_costs(model, prices))
        of_tables = np.array([np.sum(np.min(costs[kinds], axis=0)) for kinds in self.kinds])
        started = self.kinds @ priced.kind_start_seconds
        if priced.objective is Objective.MAX_RANK_TIME:
            window = -(started @ priced.phase_weight)[:, None]
        else:
            window = priced.phase_window_seconds - started
        paid = np.maximum(window, 0.0) @ (prices.average + prices.on_top) - np.maximum(-window, 0.0) @ model.weight
        return of_tables - paid - float(prices.memory @ model.cluster_bytes)
