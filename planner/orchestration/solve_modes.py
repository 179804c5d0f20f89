"""Search the modes of a problem: a first plan of each, a bound, the search, and the best of all.

A mode is a set of families that one plan may hold together (:mod:`planner.options.compatible_families`).
"""

import functools
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from planner.domain.formats.units import format_bytes
from planner.domain.plan.plan import PlanResult, Shortfall
from planner.options.compatible_families import family_modes
from planner.orchestration.finish_plan import OnResult, Run, Teller, finish, result_of
from planner.orchestration.limits.shortfalls import Dead, stuck_modules, unpackable
from planner.orchestration.previous_plan import (
    begin_with,
    with_homes,
)
from planner.orchestration.refine.tier_promotion import promoted
from planner.pricing.price_options import prune, restrict
from planner.solver.bounds.boxes import affordable_boxes
from planner.solver.bounds.chain import Bound, lower_bound, quick_bound
from planner.solver.evaluate import objective_of
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.base import Partitioner
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.resume import resume
from planner.solver.partitioners.valid_start import may_move
from planner.solver.problem import Outcome, PricedOptions, Reason

BYTES_MOVED = "max_moved_bytes"  # a limit of the user's, and the resource that it leaves short
# Parts of the time limit that a reproducible solve spends, counted in work.
_FIRST = 0.1  # at most, on the first plan
_BOUNDED = 0.25  # on the bound
_SEARCHED = 0.75  # on the search
#: Of the time limit, for what comes after the search; and what it took to finish a plan, so many times: another one may
#: be found at the end.
_SPARE, _FINISHES = 0.01, 2
_LATE = 0.02  # of the time limit: what ends so late may have been cut by the clock


@dataclass(slots=True, kw_only=True)
class _Mode:
    """One mode while it is searched."""

    priced: PricedOptions
    outcome: Outcome  # the best so far
    bound: Bound


def search_modes(run: Run, priced: PricedOptions, partitioner: Partitioner, on_result: OnResult | None) -> PlanResult:
    """Find a first plan of every mode, bound them, and search those that may hold a better plan."""
    found = family_modes(run.problem, run.families)
    if found.stuck_modules:
        return no_plan(stuck_modules(run.problem, found.stuck_modules))
    pruned = prune(priced)
    legal = [pruned if np.all(mask) else prune(restrict(priced, mask)) for mask in found.masks]
    legal = [mode for mode in legal if len(np.unique(mode.family_table)) == mode.num_tables]
    teller = Teller(run, quick_bound(pruned) if legal else 0.0, on_result)
    modes = _hesitant(run, [_first(run, mode, teller) for mode in legal])
    known = min((_value(mode) for mode in modes), default=np.inf)
    for mode in modes:
        boxes = max(_max_boxes(run, mode.priced) // len(modes), 1)
        mode.bound = lower_bound(mode.priced, max_boxes=boxes, known_seconds=known)
    teller.raise_bound(_bound_of_all(run, pruned, modes, exhaustive=found.exhaustive))
    open_modes = [mode for mode in modes if mode.bound.seconds * (1 + run.limits.ending_gap) < known]
    for index, mode in enumerate(open_modes):
        searched_seconds = run.limits.time_limit_seconds * (1 - _SPARE) - _FINISHES * teller.finish_seconds
        teller.until_seconds = run.began_seconds + searched_seconds
        left = searched_seconds - (time.monotonic() - run.began_seconds)
        limits = replace(
            run.limits,
            time_limit_seconds=max(left / (len(open_modes) - index), 1e-3),
            work_limit_seconds=_SEARCHED * _work_seconds(run) / len(open_modes),
        )
        mode.outcome = _told_by_the_clock(
            teller.until_seconds - _LATE * run.limits.time_limit_seconds,
            mode,
            partitioner.solve(
                mode.priced,
                limits,
                lower_bound_seconds=max(mode.bound.seconds, teller.bound),
                start=mode.outcome.assignment,
                guide=mode.bound.guide,
                on_incumbent=functools.partial(teller.tell, mode.priced),
            ),
        )
    return _conclude(run, priced, modes, teller.bound, exhaustive=found.exhaustive)


def _first(run: Run, priced: PricedOptions, teller: Teller) -> _Mode:
    """Construct a plan of a mode before anything that takes time: from the plan that runs already, where one does."""
    limits = replace(run.limits, work_limit_seconds=_FIRST * _work_seconds(run))
    tell = functools.partial(teller.tell, priced)
    outcome = None
    if run.stay is not None:
        before = begin_with(priced, run.stay)
        priced = with_homes(priced, before)
        outcome = resume(priced, before, limits, on_incumbent=tell)
    if outcome is None or outcome.assignment is None:
        outcome = Greedy(first_of_few=True).solve(priced, limits, on_incumbent=tell)
    return _Mode(priced=priced, outcome=outcome, bound=Bound(seconds=0.0, guide=None))


def _hesitant(run: Run, modes: list[_Mode]) -> list[_Mode]:
    """Charge whatever moves at all, where the previous plan had to be completed and still moves nothing."""
    if run.stay is None or run.stay.seconds is not None:
        return modes
    moves = [_moved_bytes(mode) for mode in modes]
    least = min((_value(mode) for mode, moved in zip(modes, moves, strict=True) if moved == 0), default=0.0)
    for mode in modes:
        assert mode.priced.move is not None
        move = replace(mode.priced.move, any_seconds=run.stay.previous.min_relative_gain * least)
        mode.priced = replace(mode.priced, move=move)
    return modes


def _moved_bytes(mode: _Mode) -> float:
    return np.inf if mode.outcome.assignment is None else moved_bytes(mode.priced, mode.outcome.assignment)


def _told_by_the_clock(late_from_seconds: float, mode: _Mode, found: Outcome) -> Outcome:
    """Keep the better plan, and say so where the clock may have cut the search: it may not come out again."""
    best = _better(mode, found)
    proven = best.termination.reason in (Reason.OPTIMAL, Reason.INFEASIBLE)
    if proven or time.monotonic() < late_from_seconds or best.termination.limit == "cancelled":
        return best
    return replace(best, termination=replace(best.termination, limit="time"))


def _better(mode: _Mode, found: Outcome) -> Outcome:
    """Keep the first plan where a search has none or a worse one."""
    if found.assignment is not None and not may_move(mode.priced, found.assignment):
        found = replace(found, assignment=None, termination=replace(found.termination, reason=Reason.NO_SOLUTION_FOUND))
    if found.assignment is None and mode.outcome.assignment is not None:
        return replace(mode.outcome, termination=replace(mode.outcome.termination, limit=found.termination.limit))
    return found


def _work_seconds(run: Run) -> float:
    """Return what a reproducible solve may spend."""
    return run.limits.work_limit_seconds or run.limits.time_limit_seconds


def _max_boxes(run: Run, priced: PricedOptions) -> int:
    """Return how many boxes the bound may look at: by size and work, not by the clock, so that plans repeat."""
    return affordable_boxes(_BOUNDED * _work_seconds(run), priced.num_options, priced.num_ranks)


def _bound_of_all(run: Run, pruned: PricedOptions, modes: list[_Mode], *, exhaustive: bool) -> float:
    """Return a bound on all plans: where modes leave some out, one over all families at once."""
    if exhaustive or not modes:
        return min((mode.bound.seconds for mode in modes), default=0.0)
    return lower_bound(pruned, max_boxes=_max_boxes(run, pruned)).seconds


def _conclude(run: Run, priced: PricedOptions, modes: list[_Mode], bound: float, *, exhaustive: bool) -> PlanResult:
    """Pick the best outcome over the modes; what a search proved holds only if every mode has it and lists all cuts."""
    solved = [mode for mode in modes if mode.outcome.assignment is not None]
    complete = exhaustive and all(lists_all_cuts(mode.priced) for mode in modes)
    if complete:
        feasible = [mode for mode in modes if mode.outcome.termination.reason is not Reason.INFEASIBLE]
        proven = min((max(mode.bound.seconds, mode.outcome.bound_seconds) for mode in feasible), default=0.0)
        bound = max(bound, proven)
    if not solved:
        outcomes = [mode.outcome for mode in modes]
        if all(found.termination.reason is Reason.INFEASIBLE for found in outcomes):
            return no_plan(unpackable(run.problem, priced, proven=exhaustive))
        if (over := _over_budget(run, modes, bound)) is not None:
            return over
        detail = "; ".join(sorted({found.termination.detail for found in outcomes} - {""}))
        limit = next((found.termination.limit for found in outcomes if found.termination.limit), None)
        return PlanResult(
            plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit, detail=detail, lower_bound_seconds=bound
        )
    best = min(solved, key=_value)
    assert best.outcome.assignment is not None
    outcome = replace(best.outcome, assignment=promoted(best.priced, best.outcome.assignment))
    return result_of(finish(run, best.priced, outcome, bound))


def _over_budget(run: Run, modes: list[_Mode], bound: float) -> PlanResult | None:
    """Say how many bytes a plan moves that was found without the limit, where more move than may."""
    most = None if run.stay is None else run.stay.previous.max_moved_bytes
    least = np.inf
    for mode in modes:
        if run.stay is not None and mode.priced.move is not None:
            free = replace(mode.priced, move=replace(mode.priced.move, max_bytes=np.inf))
            found = resume(free, begin_with(free, run.stay), run.limits).assignment
            least = min(least, np.inf if found is None else moved_bytes(free, found))
    if most is None or not most < least < np.inf:
        return None
    message = f"{format_bytes(least)} move to the plan found that moves least, and at most {format_bytes(most)} may"
    shortfall = Shortfall(
        resource=BYTES_MOVED,
        required_bytes=least,
        available_bytes=most,
        scope="cluster",
        message=message,
        hint=f"raise previous_plan.max_moved_bytes to {math.ceil(least)}, or leave it out",
    )
    return PlanResult(
        plan=None,
        reason=Reason.NO_SOLUTION_FOUND,
        limit=BYTES_MOVED,
        detail=message,
        lower_bound_seconds=bound,
        shortfalls=(shortfall,),
    )


def _value(mode: _Mode) -> float:
    if mode.outcome.assignment is None:
        return float("inf")
    return objective_of(mode.priced, mode.outcome.assignment)


def no_plan(dead: Dead) -> PlanResult:
    """INFEASIBLE where it is proven; else nothing was found among the cuts that were listed."""
    unproven = "" if dead.proven else "; other column widths than the listed ones were not tried"
    return PlanResult(
        plan=None,
        reason=Reason.INFEASIBLE if dead.proven else Reason.NO_SOLUTION_FOUND,
        limit=None if dead.proven else "listed_cuts",
        detail=dead.shortfalls[0].message + unproven,
        lower_bound_seconds=0.0,
        shortfalls=dead.shortfalls,
    )
