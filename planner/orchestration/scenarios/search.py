r"""Search for one plan that does well in all scenarios of traffic.

The worst scenario is minimised by a game: weights of scenarios rise where the plan so far is slow, and a plan of the
weighted sum of steps is searched for, a few rounds long [1]_. The problem of a round is an ordinary one
(:mod:`planner.orchestration.scenarios.joined`), with the options, the searches and the bounds of any other; its bound
is a bound on the worst scenario of every plan. Each round begins with the best plan so far.

The best plan need not be best for any weights. So every other round has targets in their place: it starts from the best
plan and searches for one that is in no scenario longer than the target, between the bound and the best plan so far.

Of a quantile, scenarios beyond it lose weight: they are those that a plan may be slow in. Bounds of rounds are none on
quantiles.

References
----------
.. [1] Y. Freund and R. E. Schapire, "Adaptive game playing using multiplicative weights", Games and Economic
   Behavior 29 (1999).
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats
from cost_models.protocol import AssignmentModel, CostModel
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families, enumerate_families
from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.explore import explore
from planner.orchestration.family_sets.family_set import transferred
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.orchestration.placement.to_placement import to_placement
from planner.orchestration.placement.warm_start import locate_warm_start
from planner.orchestration.scenarios.joined import NotAdditive, joined, target_of
from planner.orchestration.scenarios.spread import Spread
from planner.pricing.price_options import price
from planner.solver.evaluate import step_seconds_of, violations
from planner.solver.partitioners.base import Incumbent, Partitioner, SolveLimits
from planner.solver.problem import Assignment, SolverProblem

#: How strongly weights rise: a scenario a tenth below the worst keeps ``exp(-_RATE / 10)`` of its weight in a round.
_RATE, _MOST = 10.0, 0.15  # scenarios further below are treated as if they were so far below: else weights swing
#: Weights below this part of the largest are left out of a round, whose work grows with its scenarios.
_LEAST_WEIGHT = 0.02
#: Of a round with targets: what is longer counts once, and the weighted sum so much, for plans that keep all targets.
_SUM = 0.05
#: Where a target lies between the bound and the best plan, and how far below the best plan at most.
_TARGET, _MOST_BELOW = 0.5, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What a search over all scenarios has come to."""

    placement: Placement | None
    #: no plan's worst scenario is shorter, in the units of steps; 0 where that is not known
    bound: float = 0.0
    detail: str = ""  # why there is no placement


def plan_together(
    scenarios: Sequence[Problem],
    *,
    spread: Spread,
    unit_seconds: Floats,
    memory_share: float,
    known: Sequence[Placement] = (),
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    num_rounds: int,
) -> Together:
    """Search for a plan of all scenarios, which must have the tables and ranks of the first.

    Parameters
    ----------
    scenarios
        Problems that differ in traffic alone. Options are those of the first.
    spread
        What is minimised.
    unit_seconds
        What each scenario's steps are counted in, (S,): ones, or the step of each scenario's own best plan.
    memory_share
        Share of the weight of scenarios that the plan must fit in; those that need most memory may be left out.
    known
        Plans that searches may begin with, such as the best of each scenario.
    limits
        Of one round.
    """
    first = scenarios[0]
    if isinstance(cost_model, AssignmentModel):
        return Together(placement=None, detail="the prices of a learned model of whole ranks do not add up")
    if first.replica_groups is not None and not first.replica_groups.is_decided:
        return Together(placement=None, detail="the size of sharding groups is not decided: name one size")
    listed = list_and_price(first, cost_model)
    if isinstance(listed, Infeasibility):
        return Together(placement=None, detail="some table has no option that fits")
    families, of_first = listed
    priced = [of_first, *(price(one, families, cost_model) for one in scenarios[1:])]
    must_fit = _must_fit(priced, spread, memory_share)
    lists_all = bool(must_fit.all()) and all(_lists_same(one, families) for one in scenarios[1:])
    game = _Game(first, families, priced, spread, unit_seconds, must_fit, cost_model)
    for placement in known:
        game.know(placement)
    limits = replace(limits, cutoff_seconds=None)  # of another objective
    try:
        for number in range(num_rounds):
            game.play(partitioner, limits, has_targets=number % 2 == 1)
    except NotAdditive as error:
        return Together(placement=None, detail=str(error))
    return game.result(has_bound=lists_all and spread.is_worst)


def _must_fit(priced: Sequence[SolverProblem], spread: Spread, share: float) -> Bools:
    """Return the scenarios whose memory is a limit, (S,); those with the largest pieces are left out if they may be."""
    must = np.ones(len(priced), dtype=np.bool_)
    needed = np.array([one.shape_total_bytes.sum() - one.capacity_bytes.sum() for one in priced])
    for index in np.argsort(-needed, kind="stable").tolist():
        without = must.copy()
        without[index] = False
        if not spread.reaches(without, share):
            break
        must = without
    return must


def _lists_same(problem: Problem, families: Families) -> bool:
    """Whether a scenario by itself has the same options."""
    own = enumerate_families(problem).families
    kinds, others = (
        [(one.table, one.scheme, one.storage, one.geometry, one.widths.columns.tolist()) for one in listed]
        for listed in (own, families.families)
    )
    return kinds == others


class _Game:
    """The weights of scenarios, the best plan so far, and the best bound."""

    def __init__(
        self,
        problem: Problem,
        families: Families,
        priced: list[SolverProblem],
        spread: Spread,
        unit_seconds: Floats,
        must_fit: Bools,
        cost_model: CostModel,
    ) -> None:
        self._problem, self._families, self._priced = problem, families, priced
        self._spread, self._units, self._must_fit = spread, unit_seconds, must_fit
        self._cost_model = cost_model
        self._weights = np.full(len(priced), 1.0 / len(priced))
        self._best: Assignment | None = None  # of the shapes of ``priced``
        self._known: list[tuple[Assignment, Floats]] = []  # plans with their steps, (S,), to begin with
        self._best_cost = (np.inf, np.inf)
        self._bound = 0.0

    def know(self, placement: Placement) -> None:
        """Take a plan to begin with, if all its tables are placed as the problem lists options, and it fits."""
        found = locate_warm_start(self._problem, self._families, placement).in_place(self._priced[0])
        has_all = len(np.unique(self._priced[0].shape_table[found.piece_shape])) == self._priced[0].num_tables
        if has_all and not violations(joined(self._priced, np.ones(len(self._priced)), self._must_fit), found):
            self._keep(found)

    def _keep(self, assignment: Assignment) -> Floats:
        """Keep a plan to begin with, and if it is the best so far."""
        steps = self._steps(assignment)
        self._known.append((assignment, steps))
        cost = (self._spread.cost(steps), float(self._spread.weights @ steps))
        if cost < self._best_cost:
            self._best, self._best_cost = assignment, cost
        return steps

    def _least(self, weights: Floats) -> Assignment | None:
        """Return the plan whose weighted sum is the least of those that are known."""
        return min(self._known, key=lambda one: float(weights @ one[1]), default=(None, None))[0]

    def play(self, partitioner: Partitioner, limits: SolveLimits, *, has_targets: bool) -> None:
        """Search for a plan of the weighted sum, or of targets below the best plan, and learn from it."""
        context = SolveContext(
            problem=self._problem,
            families=self._families,
            cost_model=self._cost_model,
            limits=limits,
            assumptions=(),
            began_seconds=time.monotonic(),
            previous_state=None,
        )
        has_targets = has_targets and self._best is not None
        weights = np.where(self._weights >= _LEAST_WEIGHT * self._weights.max(), self._weights, 0.0)
        weights /= weights.sum()
        reporter = _Listener(context, self)
        problem = self._with_targets() if has_targets else joined(self._priced, weights / self._units, self._must_fit)
        begin = self._best if has_targets else self._least(weights)
        start = None if begin is None else (self._priced[0], begin)
        explored = explore(context, problem, partitioner, reporter, start)
        if isinstance(explored, PlanResult):
            return
        found = [one for one in explored.searched if one.outcome.assignment is not None]
        best = min(found, key=lambda one: one.seconds, default=None)
        steps = None
        if best is not None and best.outcome.assignment is not None:
            steps = self.hear(best.priced, best.outcome.assignment)
        if has_targets:
            return
        self._bound = max(self._bound, explored.bound(reporter.bound))
        if steps is not None:
            self._learn(steps)

    def _learn(self, steps: Floats) -> None:
        """Raise the weights of scenarios where a plan is slow."""
        cost = self._spread.cost(steps)
        below = np.where(steps <= cost, 1.0 - steps / cost, _MOST)
        self._weights = self._weights * np.exp(-_RATE * np.minimum(below, _MOST))
        self._weights /= self._weights.sum()

    def _with_targets(self) -> SolverProblem:
        """Return the problem of a plan that is in no scenario longer than a target below the best cost so far."""
        assert self._best is not None
        best = self._best_cost[0]
        target = max(self._bound + _TARGET * (best - self._bound), best * (1 - _MOST_BELOW))
        steps = self._steps(self._best)
        targets = [
            target_of(self._priced, scenario, self._best, seconds=target * unit, weight=1.0 / unit)
            for scenario, unit in enumerate(self._units.tolist())
            if steps[scenario] <= best  # of a quantile, the others may be longer
        ]
        return joined(self._priced, _SUM * self._weights / self._units, self._must_fit, targets)

    def hear(self, family_set: SolverProblem, assignment: Assignment) -> Floats:
        """Return the steps of a plan of a round in every scenario, (S,); keep it."""
        own = transferred(assignment, family_set, self._priced[0])
        assert own is not None  # the problem of every round has some of these shapes
        return self._keep(own)

    def _steps(self, assignment: Assignment) -> Floats:
        steps: Floats = np.array([step_seconds_of(one, assignment) for one in self._priced]) / self._units
        return steps

    def result(self, *, has_bound: bool) -> Together:
        """Return the best plan of all rounds."""
        bound = self._bound if has_bound else 0.0
        if self._best is None:
            return Together(placement=None, bound=bound, detail="no plan was found that fits in every scenario")
        placement = to_placement(self._problem, self._families, self._priced[0], self._best)
        return Together(placement=placement, bound=bound)


class _Listener(IncumbentReporter):
    """Has the game hear of every plan that a round's search improves on."""

    def __init__(self, context: SolveContext, game: _Game) -> None:
        super().__init__(context, None)
        self._game = game

    def report(self, family_set: SolverProblem, found: Incumbent) -> None:
        super().report(family_set, found)
        self._game.hear(family_set, found.assignment)
