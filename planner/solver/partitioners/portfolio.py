"""portfolio: the default. Search first, then the exact model where it is small; the best plan wins."""

import time
from dataclasses import replace

import numpy as np

from planner.errors import SolverDefect
from planner.solver.evaluate import objective_of
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.partitioners.base import NO_IMPROVEMENT, NO_OPTIONS, Partitioner, SearchOptions, SolveLimits
from planner.solver.partitioners.exact.columns import num_placements
from planner.solver.partitioners.exact.cp_sat import MAX_PLACEMENTS, CpSat
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.problem import Outcome, Reason, SolverProblem

_SHORTEST_RUN_SECONDS = 0.05
_WORK = "deterministic_time"
#: What the exact model is given of the limit: where it lists all cuts, so that its bound holds for every plan, or where
#: tables times ranks are so few that it often proves the best of the listed ones; and elsewhere.
_PROVABLE, _PROVING_SHARE, _EXACT_SHARE = 64, 0.4, 0.1


class Portfolio:
    """Never worse than the start or what a member finds in its share of the limit, and never later than the limit."""

    name = "portfolio"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Run the members one after the other, each from the best plan so far, within one limit."""
        deadline = time.monotonic() + limits.time_limit_seconds
        work = limits.work_seconds
        outcome: Outcome | None = None
        members = _members(priced)
        for number, (partitioner, share) in enumerate(members):
            left = deadline - time.monotonic()
            if outcome is not None and left < _SHORTEST_RUN_SECONDS:
                return replace(outcome, limit="time")
            # By the clock, what one member has left over goes to those after it.
            of_left = share / sum(other for _, other in members[number:])
            found = partitioner.solve(
                priced,
                replace(
                    limits,
                    time_limit_seconds=max(left * (1 if limits.reproducible else of_left), 1e-3),
                    time_share=of_left if limits.reproducible else 1.0,
                    work_limit_seconds=work * share,
                ),
                options if outcome is None else replace(options, start=outcome.assignment),
            )
            outcome = found if outcome is None else _better(priced, outcome, found)
            if _is_done(priced, outcome, options.good_seconds(limits)):
                break
        if outcome is None:
            raise SolverDefect("a portfolio without members")
        return outcome


def _members(priced: SolverProblem) -> list[tuple[Partitioner, float]]:
    """Return the searches that are run, and their shares of the limit."""
    if num_placements(priced) > MAX_PLACEMENTS:
        return [(LocalSearch(), 1.0)]
    proves = priced.num_tables * priced.num_ranks <= _PROVABLE or lists_all_cuts(priced)
    exact = _PROVING_SHARE if proves else _EXACT_SHARE
    return [(LocalSearch(), 1.0 - exact), (CpSat(), exact)]


def _is_done(priced: SolverProblem, outcome: Outcome, good_seconds: float) -> bool:
    if outcome.reason in (Reason.INFEASIBLE, Reason.OPTIMAL):
        return True
    return outcome.assignment is not None and objective_of(priced, outcome.assignment) <= good_seconds


def _better(priced: SolverProblem, first: Outcome, second: Outcome) -> Outcome:
    """Keep the better plan and the better bound; say what ended the search."""
    if second.reason is Reason.INFEASIBLE:
        if first.assignment is not None:
            # What is proven holds over the listed cuts; another cut of the same tables may well fit.
            return replace(first, bound_seconds=0.0)
        return second
    bound = max(first.bound_seconds, second.bound_seconds)
    is_better = _value(priced, second) < _value(priced, first)
    is_proven = second.reason is Reason.OPTIMAL
    if first.limit == NO_IMPROVEMENT and second.limit == _WORK and not is_better and not is_proven:
        return replace(first, bound_seconds=bound)
    if second.assignment is None:
        detail = "; ".join(part for part in (first.detail, second.detail) if part)
        limit = second.limit or first.limit
        return replace(first, limit=limit, detail=detail, bound_seconds=bound)
    limit = first.limit if first.limit == "time" and not is_proven else second.limit
    winner = second if is_better else first
    return replace(winner, reason=second.reason, limit=limit, detail=second.detail, bound_seconds=bound)


def _value(priced: SolverProblem, outcome: Outcome) -> float:
    return np.inf if outcome.assignment is None else objective_of(priced, outcome.assignment)
