"""Bounds on all sets of kinds at once: what each set costs at least at the prices of a few relaxations.

Prices of a relaxation bound the plans of any set of kinds, not only of the set that they were found for (the dual value
of :mod:`planner.solver.bounds.dual` holds at any prices): every table takes the cheapest of the kinds in the set, and
the starts of these kinds are paid in full. So a few relaxations, each of the set that promises most so far, rank all
sets, and leave out most of them. This is Benders' decomposition with sets of kinds for the integer part.

Kinds that tables join, directly or by way of others, are a group, such as the kinds of a module. A set has some kinds
of every group, and costs the sum of what these cost. So sets of many modules need not be listed: group by group, the
part of a set that promises most is continued. Starts that are partly hidden do not add up, but what they cost is
convex: the tangent where all sets start less gives a bound that does.
"""

import heapq
import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.orchestration.family_sets.kind_sets import groups_of_kinds, kinds_of_tables
from planner.solver.bounds.chain import ROUNDING
from planner.solver.bounds.dual import Prices, reduced_costs
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.problem import Objective, SolverProblem

_MOST_PARTS = 2_000  # parts of sets that are continued; then the least bound of all parts counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Promising:
    """The set that promises most of some, and a bound on the plans of all of these, seconds."""

    bound_seconds: float
    kinds: Bools  # (K,)


class PricedSets:
    """Bounds on the plans of every set of the kinds of a problem."""

    def __init__(self, priced: SolverProblem) -> None:
        self._priced = priced
        is_step = priced.objective is Objective.STEP_TIME
        starts = priced.kind_start_seconds
        self._starts: Floats = starts if is_step else (starts @ priced.phase_weight)[:, None]  # (K, Q)
        self._window: Floats = priced.phase_window_seconds if is_step else np.zeros(1)  # (Q,)
        self._groups = _groups_of(priced)
        self._known: list[list[_Priced]] = [[] for _ in relaxations(priced)]

    @property
    def num_sets(self) -> int:
        """How many sets there are."""
        return math.prod(len(group.subsets) for group in self._groups)

    def raise_by(self, prices: Sequence[Prices | None]) -> None:
        """Raise the bounds of all sets by the prices of some set's relaxations, in their order."""
        for model, some, known in zip(relaxations(self._priced), prices, self._known, strict=True):
            if some is not None:
                known.append(self._of_groups(model, some))

    def bound_of(self, kinds: Bools) -> float:
        """Return the highest bound on plans that use just some kinds, (K,), in seconds."""
        ways = [way for way, known in enumerate(self._known) if known]
        return max((self.best_prices(kinds, kinds, way)[0] for way in ways), default=0.0)

    def best_prices(self, allowed: Bools, required: Bools, way: int) -> tuple[float, Prices]:
        """Return the highest bound on plans that use all ``required`` kinds and none outside ``allowed``, both (K,).

        In seconds, with the prices that prove it; ``way`` is the number of the relaxation, of which prices must be
        known.
        """
        some = [group.within(allowed, required) for group in self._groups]
        values = []
        for known in self._known[way]:
            costs, rest = self._costs(known, required)
            least = [float(np.min(cost[one], initial=np.inf)) for cost, one in zip(costs, some, strict=True)]
            values.append((sum(least) + rest) * (1 - ROUNDING))
        best = int(np.argmax(values))
        return values[best], self._known[way][best].prices

    def has_sets(self, allowed: Bools, required: Bools) -> bool:
        """Whether some set has all required kinds, (K,), and none outside the allowed ones, (K,)."""
        return all(bool(np.any(group.within(allowed, required))) for group in self._groups)

    def only_set(self, allowed: Bools, required: Bools) -> Bools | None:
        """Return the one set, (K,), that has all required kinds and none outside the allowed ones, if there is one."""
        some = [group.subsets[group.within(allowed, required)] for group in self._groups]
        return np.any([one[0] for one in some], axis=0) if all(len(one) == 1 for one in some) else None

    def most_promising(self, without: Collection[bytes]) -> Promising | None:
        """Return the set with the least bound of all but some, given as bytes; ``None`` where there is no other.

        If too many parts of sets promise as much, the bound is that of the parts, and the set may be any.
        """
        always: Bools = np.any([group.subsets.all(axis=0) for group in self._groups], axis=0)
        priced = [self._costs(known, always) for some in self._known for known in some]
        # (prices, N_g) what the subsets of each group cost, and (groups, prices) the least of all groups after it
        costs = [np.array(of_group) for of_group in zip(*(costs for costs, _ in priced), strict=True)]
        least = np.array([np.min(cost, axis=1) for cost in costs])
        after = np.cumsum(least[::-1], axis=0)[::-1] - least
        order = itertools.count()
        # Parts of sets: their bound, the subsets of the first groups, and what these cost at each price.
        heap: list[tuple[float, int, tuple[int, ...], Floats]] = []
        heapq.heappush(heap, (-np.inf, next(order), (), np.array([rest for _, rest in priced])))
        for _ in range(_MOST_PARTS):
            if not heap:
                return None
            bound, _, chosen, taken = heapq.heappop(heap)
            if len(chosen) < len(costs):
                found = taken[:, None] + costs[len(chosen)]
                bounds = np.max(found + after[len(chosen)][:, None], axis=0)
                for subset, seconds in enumerate(bounds.tolist()):
                    heapq.heappush(heap, (seconds, next(order), (*chosen, subset), found[:, subset]))
                continue
            kinds = self._completed(chosen, costs)
            if kinds.tobytes() in without:
                continue
            exact = self.bound_of(kinds)
            if not heap or exact <= max(bound, heap[0][0]):
                return Promising(bound_seconds=exact, kinds=kinds)
            heapq.heappush(heap, (exact, next(order), chosen, taken))
        if not heap:
            return None
        bound, _, chosen, _ = heap[0]
        return Promising(bound_seconds=bound * (1 - ROUNDING), kinds=self._completed(chosen, costs))

    def _completed(self, chosen: tuple[int, ...], costs: list[Floats]) -> Bools:
        """Return the kinds of a part of a set, with those of the other groups that cost least at the first prices."""
        others = [int(np.argmin(cost[0])) for cost in costs[len(chosen) :]]
        some = [group.subsets[one] for group, one in zip(self._groups, (*chosen, *others), strict=True)]
        kinds: Bools = np.any(some, axis=0)
        return kinds

    def _of_groups(self, model: Relaxation, prices: Prices) -> "_Priced":
        costs = np.full((self._priced.num_kinds, self._priced.num_tables), np.inf)
        of_choice = self._priced.family_kind[model.family], model.choice_table
        np.minimum.at(costs, of_choice, reduced_costs(model, prices))
        of_groups = [
            np.array([np.sum(np.min(costs[subset][:, group.tables], axis=0)) for subset in group.subsets])
            for group in self._groups
        ]
        return _Priced(model=model, prices=prices, costs=of_groups)

    def _costs(self, known: "_Priced", paid: Bools) -> tuple[list[Floats], float]:
        """Return what subsets of each group cost, (N_g,) each, with all starts but those that are ``paid``, (K,).

        The sum over groups and the second number, in which paid starts are, is a bound on a set that has all of these
        kinds; it is exact if the set has no other kinds.
        """
        prices, model = known.prices, known.model
        charged = np.minimum(prices.average + prices.on_top, model.weight)
        window = self._window - paid @ self._starts
        slope = np.where(window > 0, charged, model.weight)
        hidden = np.maximum(window, 0.0) @ charged - np.maximum(-window, 0.0) @ model.weight
        of_kinds = self._starts @ slope * ~paid
        costs = [cost + group.subsets @ of_kinds for cost, group in zip(known.costs, self._groups, strict=True)]
        return costs, -float(hidden) - float(prices.memory @ model.cluster_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Kinds that tables join, the tables, and all subsets of the kinds that serve these."""

    kinds: Bools  # (K,)
    tables: Ints
    subsets: Bools  # (N_g, K)

    def within(self, allowed: Bools, required: Bools) -> Bools:
        """Return the subsets that have all required kinds of the group, and none outside the allowed ones, (N_g,)."""
        found: Bools = np.all(self.subsets <= allowed, axis=1) & np.all(self.subsets >= required & self.kinds, axis=1)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Priced:
    """Prices, and what the tables of each group cost at these in each subset of its kinds, (N_g,) seconds each."""

    model: Relaxation
    prices: Prices
    costs: list[Floats]


def _groups_of(priced: SolverProblem) -> list[_Group]:
    """Return the groups of the kinds that tables have: for each module as many kinds as there are sharding types."""
    has = kinds_of_tables(priced)
    group_of_kind, pinned = groups_of_kinds(has), priced.family_kind[priced.shape_family[priced.pinned_shape]]
    groups = []
    for number in np.unique(group_of_kind[has.any(axis=0)]).tolist():
        kinds: Bools = (group_of_kind == number) & has.any(axis=0)
        tables, mine = np.flatnonzero(has[:, kinds].any(axis=1)), np.flatnonzero(kinds)
        subsets = np.zeros((2 ** len(mine), priced.num_kinds), dtype=np.bool_)
        subsets[:, mine] = (np.arange(2 ** len(mine))[:, None] >> np.arange(len(mine))) & 1 == 1
        serves = np.all(subsets @ np.unique(has[tables], axis=0).T, axis=1)
        keeps = np.all(subsets[:, np.intersect1d(pinned, mine)], axis=1)
        groups.append(_Group(kinds=kinds, tables=tables, subsets=subsets[serves & keeps]))
    return groups
