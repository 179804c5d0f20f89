"""portfolio: the default. greedy first, then cp_sat from the greedy plan; the better one wins."""

import time
from dataclasses import replace

from planner.errors import SolverDefect
from planner.evaluate import objective_seconds, rank_loads
from planner.partitioners.base import OnIncumbent, SolveLimits
from planner.partitioners.cp_sat import CpSat
from planner.partitioners.greedy import Greedy
from planner.priced import Assignment, Outcome, PricedOptions, Reason, Termination

_SHORTEST_RUN_SECONDS = 0.05
_CP_SAT_SHARE = 0.8  # of the limit, in counted work: the rest is for building models and greedy


class Portfolio:
    """Never worse than either member, and never later than the limit."""

    name = "portfolio"

    def solve(
        self,
        priced: PricedOptions,
        limits: SolveLimits,
        *,
        lower_bound_seconds: float = 0.0,
        start: Assignment | None = None,
        on_incumbent: OnIncumbent | None = None,
    ) -> Outcome:
        """Run the members one after the other within one limit."""
        began = time.monotonic()
        first = Greedy().solve(
            priced, limits, lower_bound_seconds=lower_bound_seconds, start=start, on_incumbent=on_incumbent
        )
        value = _value(priced, first)
        if value <= lower_bound_seconds * (1 + limits.relative_gap):
            return first
        left = limits.time_limit_seconds - (time.monotonic() - began)
        if left < _SHORTEST_RUN_SECONDS:
            return replace(first, termination=replace(first.termination, limit="time"))
        work = limits.work_limit_seconds or limits.time_limit_seconds
        second = CpSat().solve(
            priced,
            replace(limits, time_limit_seconds=left, work_limit_seconds=_CP_SAT_SHARE * work),
            lower_bound_seconds=lower_bound_seconds,
            start=first.assignment,
            on_incumbent=on_incumbent,
        )
        return _better(priced, first, second)


def _better(priced: PricedOptions, first: Outcome, second: Outcome) -> Outcome:
    """Keep the better plan and the better bound; say what ended the search."""
    if second.termination.reason is Reason.INFEASIBLE:
        if first.assignment is not None:
            raise SolverDefect(f"{CpSat.name} proved infeasible what {Greedy.name} has solved")
        return second
    bound = max(first.bound_seconds, second.bound_seconds)
    if second.assignment is None:
        detail = "; ".join(part for part in (first.termination.detail, second.termination.detail) if part)
        limit = second.termination.limit or first.termination.limit
        return replace(
            first,
            termination=Termination(reason=first.termination.reason, limit=limit, detail=detail),
            bound_seconds=bound,
        )
    winner = second if _value(priced, second) < _value(priced, first) else first
    return replace(winner, termination=second.termination, bound_seconds=bound)


def _value(priced: PricedOptions, outcome: Outcome) -> float:
    if outcome.assignment is None:
        return float("inf")
    return objective_seconds(priced, rank_loads(priced, outcome.assignment).seconds)
