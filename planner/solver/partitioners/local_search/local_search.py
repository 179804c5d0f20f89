"""local_search: runs of simulated annealing, one after the other, of which the best plan counts.

A run (:mod:`planner.solver.partitioners.local_search.annealing_run`) ends in one of several good plans, and which one
depends on chance. So few tables on few ranks get several runs, that know nothing of each other; many tables, with which
a run takes all the effort to come near its end, get one.
"""

import itertools

import numpy as np

from planner.solver.partitioners.base import NO_IMPROVEMENT, NO_OPTIONS, Effort, SearchOptions, SolveLimits
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search.annealing_run import IDLE_GAIN, IDLE_ROUNDS, AnnealingRun
from planner.solver.partitioners.local_search.proposal_mix import proposals_per_item
from planner.solver.partitioners.local_search.search_data import View, search_view
from planner.solver.partitioners.valid_start import valid_or_none
from planner.solver.problem import Outcome, SolverProblem

#: Proposals per item and thread that make a run, and the most runs that share the effort.
_PER_RUN, _MOST_RUNS = 30_000, 6
_IDLE_RUNS = 3  # in a row, after which no other follows
_NOTHING_LEFT = 1e-9  # of the effort
_IDLE = (
    f"{_IDLE_RUNS} runs of the search in a row found no better plan: in each {IDLE_ROUNDS} rounds in a row improved its"
    f" plan by less than {IDLE_GAIN:.3%} each, and the lower bound does not change while a search runs"
)


class LocalSearch:
    """Simulated annealing on a smooth stand-in for the objective."""

    name = "local_search"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Search from the constructions, and from the start if there is one."""
        effort = Effort(limits)
        best = IncumbentTracker(priced, self.name, options.on_incumbent)
        start = valid_or_none(priced, options.start)
        best.consider(start)
        good_seconds = options.good_seconds(limits)
        view, seeds = search_view(priced), itertools.count(limits.seed)
        planned, idle = _planned_runs(view, effort), 0
        for number in range(planned + _IDLE_RUNS):
            of_left, before_seconds = effort.fork(1 / max(planned - number, 1)), best.seconds
            run = AnnealingRun(view, seeds, of_left, best, good_seconds)
            # A plan that runs already costs something to leave, so that each run begins with it.
            run.settle(
                options.hint,
                start if number == 0 or priced.move is not None else None,
                is_warm=options.is_start_warm and number == 0,
            )
            run.reheat()
            run.refine()
            effort.join([of_left])
            gains = best.seconds < before_seconds * (1 - IDLE_GAIN)
            idle = idle + 1 if run.is_idle and not gains else 0
            if effort.fraction >= 1 - _NOTHING_LEFT or idle == _IDLE_RUNS:
                break
        if best.seconds <= good_seconds:
            return best.outcome("time" if limits.reproducible and effort.limit == "time" else "gap")
        detail = "" if best.assignment is not None else "no plan that fits the memory of every rank was found"
        if idle == _IDLE_RUNS and not (limits.reproducible and effort.limit == "time"):
            return best.outcome(NO_IMPROVEMENT, _IDLE)
        return best.outcome(effort.limit, detail)


def _planned_runs(view: View, effort: Effort) -> int:
    """Return how many runs share the effort; others follow while runs end early."""
    proposals = proposals_per_item(effort.total_seconds, len(view.data.item_columns))
    return int(np.clip(proposals / _PER_RUN, 1, _MOST_RUNS))
