"""greedy: options by price, then heaviest first onto the site where it hurts least; the first plan of every solve.

No single trade between cheap options and balance is right, so that a fixed list of choices and orders is
tried (see :mod:`planner.solver.partitioners.local_search.starts`). Where none of them fits the memory of every rank,
the one that overflows least is repaired by moving and swapping pieces.
"""

from dataclasses import replace

from planner.solver.partitioners.base import NO_OPTIONS, Effort, SearchOptions, SolveLimits
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import constructions
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.problem import Outcome, SolverProblem

_LEAST_REPAIR_SECONDS = 1.0  # for a plan that was late and does not fit
_REPAIR_FROM = 0.5  # of the limit, where nothing fits
#: Items times ranks of the constructions that a first plan may be the best of: they take five milliseconds.
_FIRST_LOOKS = 4000


class Greedy:
    """Constructs, and searches only for a plan that fits."""

    name = "greedy"

    def __init__(self, *, first_only: bool = False, first_of_few: bool = False, may_fail: bool = False) -> None:
        """With ``first_only`` the first plan that fits is the answer, with ``first_of_few`` the best of a few.

        A search that ``may_fail`` repairs nothing after its limit.
        """
        self._first_only = first_only or first_of_few
        self._may_fail = may_fail
        self._first_looks = _FIRST_LOOKS if first_of_few else 0

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Try every choice and order; the start competes with them."""
        effort = Effort(limits)
        good_seconds = options.good_seconds(limits)
        best = IncumbentTracker(priced, self.name, None if self._first_only else options.on_incumbent)
        best.consider(options.start)
        nearest: Chain | None = None
        view = search_view(priced)
        looks = len(view.data.item_columns) * len(view.data.rank_class)
        tries = (
            ()
            if best.assignment is not None and effort.is_late
            else constructions(view, options.hint, limits.seed, effort)
        )
        for tried, chain in enumerate(tries, start=1):
            best.consider(chain.assignment())
            is_enough = self._first_only and (tried + 1) * looks > self._first_looks
            if best.seconds <= good_seconds or (is_enough and best.assignment is not None):
                break
            if nearest is None or chain.rating < nearest.rating:
                nearest = chain
            if effort.fraction >= (1.0 if best.assignment is not None else _REPAIR_FROM):
                break
        is_wanted = not (self._may_fail and effort.is_late)
        if best.assignment is None and nearest is not None and is_wanted:
            # A late construction leaves no time for its repair, and a problem that has a plan must get one.
            nearest.repair(Effort(_with_time_to_repair(limits)) if effort.is_late else effort)
            best.consider(nearest.assignment())
        if self._first_only:
            # The other plans that were tried are not reported: to check a plan takes longer than to make one.
            first = best.assignment
            best = IncumbentTracker(priced, self.name, options.on_incumbent)
            best.consider(first)
        detail = "" if best.assignment is not None else "no construction fits the memory of every rank"
        is_cut_by_clock = limits.reproducible and effort.limit == "time"
        return best.outcome(effort.limit if is_cut_by_clock or effort.fraction >= 1 else "iterations", detail)


def _with_time_to_repair(limits: SolveLimits) -> SolveLimits:
    """Return the same limits once more, and at least a second."""
    return replace(
        limits,
        time_limit_seconds=max(limits.time_limit_seconds, _LEAST_REPAIR_SECONDS),
        work_limit_seconds=max(limits.work_seconds, _LEAST_REPAIR_SECONDS),
    )
