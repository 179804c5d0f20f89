"""Bounds on all sets of kinds at once: what each set costs at least at the prices of a few relaxations.

Prices of a relaxation bound the plans of any set of kinds, not only of the set that they were found for (the dual value
of :mod:`planner.solver.bounds.dual` holds at any prices): every table takes the cheapest of the kinds in the set, and
the starts of these kinds are paid in full. So a few relaxations, each of the set that promises most so far, rank all
sets, and leave out most of them. This is Benders' decomposition with sets of kinds for the integer part.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats
from planner.orchestration.family_sets.kind_sets import kinds_of_tables
from planner.solver.bounds.chain import ROUNDING
from planner.solver.bounds.dual import Prices, reduced_costs
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.problem import Objective, SolverProblem

#: Kinds up to which all sets are looked at: 1,024 of them.
MOST_KINDS = 10


class PricedSets:
    """A bound on the plans of every set of the kinds of a problem; N sets."""

    def __init__(self, priced: SolverProblem) -> None:
        self._priced = priced
        has = kinds_of_tables(priced)
        every: Bools = (np.arange(2**priced.num_kinds)[:, None] >> np.arange(priced.num_kinds)) & 1 == 1
        serves_all = np.all(every @ np.unique(has, axis=0).T, axis=1)
        pinned = priced.family_kind[priced.shape_family[priced.pinned_shape]]
        #: (N, K) those that have a kind for each table, and the kinds of pinned pieces
        self.kinds: Bools = every[
            serves_all & np.all(every[:, pinned], axis=1) & ~np.any(every & ~has.any(axis=0), axis=1)
        ]
        self.bound_seconds: Floats = np.zeros(len(self.kinds))  # (N,)
        self._known: list[list[_Priced]] = [[] for _ in relaxations(priced)]

    def raise_by(self, prices: Sequence[Prices | None]) -> None:
        """Raise the bounds of all sets by the prices of some set's relaxations, in their order."""
        for model, some, known in zip(relaxations(self._priced), prices, self._known, strict=True):
            if some is not None:
                known.append(self._cheapest(model, some))
                self.bound_seconds = np.maximum(self.bound_seconds, self._value(known[-1], self.kinds, self.kinds))

    def best_prices(self, allowed: Bools, required: Bools, way: int) -> tuple[float, Prices]:
        """Return the highest bound on plans that use all ``required`` kinds and none outside ``allowed``, both (K,).

        In seconds, with the prices that prove it; ``way`` is the number of the relaxation, of which prices must be
        known.
        """
        values = [self._value(known, allowed[None], required[None])[0] for known in self._known[way]]
        best = int(np.argmax(values))
        return float(values[best]), self._known[way][best].prices

    def _cheapest(self, model: Relaxation, prices: Prices) -> "_Priced":
        costs = np.full((self._priced.num_kinds, self._priced.num_tables), np.inf)
        of_choice = self._priced.family_kind[model.family], model.choice_table
        np.minimum.at(costs, of_choice, reduced_costs(model, prices))
        return _Priced(model=model, prices=prices, costs=costs)

    def _value(self, known: "_Priced", allowed: Bools, started: Bools) -> Floats:
        """Return the dual value, at known prices, of plans of allowed kinds that pay some starts, both (N, K): (N,)."""
        priced, prices, model = self._priced, known.prices, known.model
        of_tables = np.array([np.sum(np.min(known.costs[kinds], axis=0, initial=np.inf)) for kinds in allowed])
        starts = started @ priced.kind_start_seconds
        if priced.objective is Objective.MAX_RANK_TIME:
            window = -(starts @ priced.phase_weight)[:, None]
        else:
            window = priced.phase_window_seconds - starts
        paid = np.maximum(window, 0.0) @ (prices.average + prices.on_top) - np.maximum(-window, 0.0) @ model.weight
        found: Floats = (of_tables - paid - float(prices.memory @ model.cluster_bytes)) * (1 - ROUNDING)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Priced:
    """Prices, and what the cheapest choice of each kind costs each table at these.

    ``costs`` are seconds, (K, T), infinite if a table has no choice of a kind.
    """

    model: Relaxation
    prices: Prices
    costs: Floats
