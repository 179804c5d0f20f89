"""lns: exact search on one neighbourhood of a plan after the other, each by CP-SAT with all other tables pinned.

Neighbourhoods of ranks and of tables take turns (:mod:`planner.solver.partitioners.exact.neighbourhoods`). Each kind
has a size of its own: it grows where the share of work that one neighbourhood gets was enough for a proof, and shrinks
where it was not. Tables may be cut in ways that no list has, near the plan's own
(:mod:`planner.solver.partitioners.exact.nearby_cuts`).

Most neighbourhoods hold nothing better. So that the search does not end there, phases weigh a little more or less than
they should in each of them (Charon and Hudry's noising method), and the search goes on from what comes out unless it
is clearly worse than the best plan.

References
----------
I. Charon and O. Hudry, The noising method: a new method for combinatorial optimization, Operations Research Letters
14 (1993).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import Effort, OnIncumbent, SolveLimits
from planner.solver.partitioners.exact.columns import num_placements
from planner.solver.partitioners.exact.cp_sat import MAX_PLACEMENTS, CpSat
from planner.solver.partitioners.exact.nearby_cuts import with_nearby_cuts
from planner.solver.partitioners.exact.neighbourhoods import around_ranks, around_tables
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.problem import Assignment, Outcome, Reason, RelaxationHint, SolverProblem

_FIRST_RANKS_SIZE, _FIRST_TABLES_SIZE, _LEAST_SIZE = 12.0, 6.0, 2.0  # tables
_GROWTH, _SHRINKAGE = 1.15, 0.8
#: What one neighbourhood may take: enough for proofs of 12 to 20 tables on 16 ranks.
_ONE_SECONDS, _ONE_SHARE = 0.5, 0.1  # the latter of the limit
_PROVEN_SHARE = 0.4  # of that, about what it takes where it ends with a proof
_PLACEMENT_SECONDS = 2e-4  # nominal work of writing the model, per placement variable
_START_SHARE = 0.2  # of the limit, for a first plan where there is none
_NOISE = 0.1  # most that the weight of a phase is off, relative
_WORSE = 0.02  # relative to the best plan: what the search still goes on from
_NEARBY_CUTS = 4  # cuts that no list has, per table and neighbourhood
_GAP = 1e-4  # relative: a neighbourhood is done where nothing is left that is better by more than this
_SHORTEST_RUN_SECONDS = 1e-3


class Lns:
    """Large neighbourhood search."""

    name = "lns"

    def solve(
        self,
        priced: SolverProblem,
        limits: SolveLimits,
        *,
        lower_bound_seconds: float = 0.0,
        start: Assignment | None = None,
        hint: RelaxationHint | None = None,
        on_incumbent: OnIncumbent | None = None,
    ) -> Outcome:
        """Improve ``start``, or what local search finds in a part of the effort."""
        effort = Effort(limits)
        search = _Search(priced, limits, effort, IncumbentTracker(priced, self.name, on_incumbent), lower_bound_seconds)
        search.begin(start, hint)
        while not search.done:
            search.step()
        if search.best.seconds <= search.good_seconds:
            return search.best.outcome("gap")
        detail = "" if search.best.assignment is not None else "there is no plan to begin with"
        return search.best.outcome(effort.limit if effort.fraction >= 1 else "iterations", detail)


@dataclass(slots=True)
class _Kind:
    """How neighbourhoods of one kind are made, and how many tables the next one frees."""

    make: Callable[[SolverProblem, Assignment, int, np.random.Generator], SolverProblem]
    size: float


class _Search:
    """The best plan so far, and the kinds of neighbourhoods that take turns."""

    def __init__(
        self, priced: SolverProblem, limits: SolveLimits, effort: Effort, best: IncumbentTracker, bound_seconds: float
    ) -> None:
        self._priced, self._limits, self._effort, self._bound_seconds = priced, limits, effort, bound_seconds
        self._deadline = time.monotonic() + limits.time_limit_seconds
        self._one_seconds = min(_ONE_SECONDS, _ONE_SHARE * effort.total_seconds)
        self._rng = np.random.default_rng(limits.seed)
        self._free_tables = int(np.count_nonzero(~priced.table_is_pinned))
        self._kinds = [_Kind(around_ranks, _FIRST_RANKS_SIZE), _Kind(around_tables, _FIRST_TABLES_SIZE)]
        self._plan: Assignment | None = None  # from which the search goes on
        self.best = best
        self.good_seconds = bound_seconds * (1 + limits.ending_gap)

    @property
    def done(self) -> bool:
        """Whether nothing is left to spend or to find."""
        spent = self._effort.fraction >= 1 or not self._kinds
        return spent or self.best.assignment is None or self.best.seconds <= self.good_seconds

    def begin(self, start: Assignment | None, hint: RelaxationHint | None) -> None:
        """Take the start, or find one."""
        self.best.consider(start)
        if self.best.assignment is None:
            share = _START_SHARE * self._effort.total_seconds
            found = LocalSearch().solve(
                self._priced, self._within(share), lower_bound_seconds=self._bound_seconds, start=start, hint=hint
            )
            self._effort.spend(share)
            self.best.consider(found.assignment)
        self._plan = self.best.assignment

    def step(self) -> None:
        """Solve one neighbourhood, and learn from it how large the next of its kind may be."""
        plan = self._plan
        if plan is None or self._free_tables == 0:
            self._kinds.clear()
            return
        kind = self._kinds.pop(0)
        size = min(int(kind.size), self._free_tables)
        part = with_nearby_cuts(kind.make(self._priced, plan, size, self._rng), plan, _NEARBY_CUTS, self._rng)
        placements = num_placements(part)
        self._effort.spend(_PLACEMENT_SECONDS * min(placements, MAX_PLACEMENTS))
        if placements > MAX_PLACEMENTS:
            if size > _LEAST_SIZE:
                self._kinds.append(replace(kind, size=max(_LEAST_SIZE, kind.size * _SHRINKAGE)))
            return
        within = replace(self._within(self._one_seconds), relative_gap=_GAP)
        noise = _NOISE if size < self._free_tables else 0.0
        weight = part.phase_weight * (1 + noise * self._rng.uniform(-1, 1, part.num_phases))
        found = CpSat(proves_finely=False).solve(
            replace(part, phase_weight=weight),
            within,
            lower_bound_seconds=self._bound_seconds * (1 - noise),
            start=plan,
        )
        self._go_on(found.assignment)
        proven = found.termination.reason is Reason.OPTIMAL
        self._effort.spend(self._one_seconds * (_PROVEN_SHARE if proven else 1.0))
        if proven and size == self._free_tables:
            if kind.make is around_tables:  # every table was free to go anywhere: no listed cuts are better
                self._kinds.clear()
            return
        size_now = kind.size * (_GROWTH if proven else _SHRINKAGE)
        self._kinds.append(replace(kind, size=max(_LEAST_SIZE, size_now)))

    def _go_on(self, plan: Assignment | None) -> None:
        """Take over a plan that is hardly worse than the best, or better."""
        self.best.consider(plan)
        if plan is not None and objective_of(self._priced, plan) <= self.best.seconds * (1 + _WORSE):
            self._plan = plan

    def _within(self, work_seconds: float) -> SolveLimits:
        """Return the limits of a search that may take this much of the effort."""
        left_seconds = max(self._deadline - time.monotonic(), _SHORTEST_RUN_SECONDS)
        if self._limits.reproducible:
            return replace(self._limits, time_limit_seconds=left_seconds, work_limit_seconds=work_seconds)
        return replace(self._limits, time_limit_seconds=min(work_seconds, left_seconds))
