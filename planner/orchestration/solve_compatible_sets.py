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
from planner.options.compatible_families import compatible_family_sets
from planner.orchestration.finish_plan import SolveContext, finish, result_of
from planner.orchestration.incumbents import IncumbentReporter, with_nearer_rows
from planner.orchestration.limits.shortfalls import no_plan, unmet, unpackable, unsatisfiable_modules
from planner.orchestration.previous_plan import (
    warm_start_from,
    with_home_sites,
)
from planner.pricing.price_options import prune, restrict
from planner.solver.bounds.boxes import affordable_boxes
from planner.solver.bounds.chain import Bound, lower_bound, quick_bound
from planner.solver.evaluate import objective_of
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.base import Incumbent, OnIncumbent, Partitioner, SearchOptions
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.resume import resume
from planner.solver.partitioners.valid_start import within_move_budget
from planner.solver.problem import Outcome, Reason, SolverProblem

BYTES_MOVED = "max_moved_bytes"  # a limit of the user's, and the resource that it leaves short
# Parts of the time limit that a reproducible solve spends, counted in work.
_FIRST = 0.1  # at most, on the first plan
_BOUNDED = 0.25  # on the bound
_SEARCHED = 0.75  # on the search
#: Of the time limit, for what comes after the search; and what it took to finish a plan, so many times: another one may
#: be found at the end.
_SPARE, _FINISHES = 0.01, 2
_UNSOLVED = 0.5  # of the time limit, at least, for a search that begins without any plan
_LATE = 0.02  # of the time limit: what ends so late may have been cut by the clock


@dataclass(slots=True, kw_only=True)
class _FamilySet:
    """One mode while it is searched."""

    priced: SolverProblem
    outcome: Outcome  # the best so far
    bound: Bound


def solve_compatible_sets(
    context: SolveContext, priced: SolverProblem, partitioner: Partitioner, reporter: IncumbentReporter
) -> PlanResult:
    """Find a first plan of every mode, bound them, and search those that may hold a better plan."""
    found = compatible_family_sets(context.problem, context.families)
    if found.unsatisfiable_modules:
        return no_plan(unsatisfiable_modules(context.problem, found.unsatisfiable_modules))
    pruned = prune(priced)
    legal = [pruned if np.all(mask) else prune(restrict(priced, mask)) for mask in found.masks]
    legal = [family_set for family_set in legal if len(np.unique(family_set.family_table)) == family_set.num_tables]
    reporter.until_seconds = math.inf
    if legal:
        reporter.raise_bound(quick_bound(pruned))
    family_sets = [_first(context, family_set, reporter) for family_set in legal]
    _charge_any_move(context, family_sets, reporter)
    known = min((_value(family_set) for family_set in family_sets), default=np.inf)
    for family_set in family_sets:
        boxes = max(_max_boxes(context, family_set.priced) // len(family_sets), 1)
        family_set.bound = lower_bound(family_set.priced, max_boxes=boxes, known_seconds=known)
    reporter.raise_bound(_bound_of_all(context, pruned, family_sets, exhaustive=found.exhaustive))
    open_sets = [
        family_set for family_set in family_sets if family_set.bound.seconds * (1 + context.limits.ending_gap) < known
    ]
    for index, family_set in enumerate(open_sets):
        searched_seconds = context.limits.time_limit_seconds * (1 - _SPARE) - _FINISHES * reporter.finish_seconds
        reporter.until_seconds = context.began_seconds + searched_seconds
        left = searched_seconds - (time.monotonic() - context.began_seconds)
        if not np.isfinite(known):  # what came before was late, and found nothing that could be the answer
            left = max(left, _UNSOLVED * context.limits.time_limit_seconds)
        limits = replace(
            context.limits,
            time_limit_seconds=max(left / (len(open_sets) - index), 1e-3),
            work_limit_seconds=_SEARCHED * context.limits.work_seconds / len(open_sets),
        )
        family_set.outcome = _marked_if_cut_by_clock(
            reporter.until_seconds - _LATE * context.limits.time_limit_seconds,
            family_set,
            partitioner.solve(
                family_set.priced,
                limits,
                SearchOptions(
                    lower_bound_seconds=max(family_set.bound.seconds, reporter.bound),
                    start=family_set.outcome.assignment,
                    hint=family_set.bound.hint,
                    on_incumbent=functools.partial(reporter.report, family_set.priced),
                ),
            ),
        )
    return _conclude(context, priced, family_sets, reporter.bound, exhaustive=found.exhaustive)


def _first(context: SolveContext, priced: SolverProblem, reporter: IncumbentReporter) -> _FamilySet:
    """Construct a plan of a mode before anything that takes time: from the plan that runs already, where one does."""
    limits = replace(context.limits, work_limit_seconds=_FIRST * context.limits.work_seconds)
    report: OnIncumbent | None = functools.partial(reporter.report, priced)
    outcome = None
    if context.previous_state is not None:
        if context.previous_state.seconds is None:
            report = None  # what moving costs is not known yet
        before = warm_start_from(priced, context.previous_state)
        priced = with_home_sites(priced, before)
        outcome = resume(priced, before, limits, on_incumbent=report)
    if outcome is None or outcome.assignment is None:
        outcome = Greedy(first_of_few=True).solve(priced, limits, SearchOptions(on_incumbent=report))
    return _FamilySet(priced=priced, outcome=outcome, bound=Bound(seconds=0.0, hint=None))


def _charge_any_move(context: SolveContext, family_sets: list[_FamilySet], reporter: IncumbentReporter) -> None:
    """Charge whatever moves at all, if the previous plan had to be completed and still moves nothing.

    Only then first plans are reported: their price was not known before.
    """
    if context.previous_state is None or context.previous_state.seconds is not None:
        return
    moves = [_moved_bytes(family_set) for family_set in family_sets]
    least = min(
        (_value(family_set) for family_set, moved in zip(family_sets, moves, strict=True) if moved == 0), default=0.0
    )
    for family_set in family_sets:
        assert family_set.priced.move is not None
        move = replace(family_set.priced.move, any_seconds=context.previous_state.previous.min_relative_gain * least)
        family_set.priced = replace(family_set.priced, move=move)
        first = family_set.outcome
        if first.assignment is not None:
            seconds = objective_of(family_set.priced, first.assignment)
            found = Incumbent(assignment=first.assignment, objective_seconds=seconds, partitioner=first.partitioner)
            reporter.report(family_set.priced, found)


def _moved_bytes(family_set: _FamilySet) -> float:
    return (
        np.inf
        if family_set.outcome.assignment is None
        else moved_bytes(family_set.priced, family_set.outcome.assignment)
    )


def _marked_if_cut_by_clock(late_from_seconds: float, family_set: _FamilySet, found: Outcome) -> Outcome:
    """Keep the better plan, and say so where the clock may have cut the search: it may not come out again."""
    best = _better(family_set, found)
    proven = best.reason in (Reason.OPTIMAL, Reason.INFEASIBLE)
    if proven or time.monotonic() < late_from_seconds or best.limit == "cancelled":
        return best
    return replace(best, limit="time")


def _better(family_set: _FamilySet, found: Outcome) -> Outcome:
    """Keep the first plan where a search has none or a worse one; an equal one was found when the first was."""
    if found.assignment is not None and not within_move_budget(family_set.priced, found.assignment):
        found = replace(found, assignment=None, reason=Reason.NO_SOLUTION_FOUND)
    if found.assignment is None and family_set.outcome.assignment is not None:
        return replace(family_set.outcome, limit=found.limit)
    if found.assignment is not None and objective_of(family_set.priced, found.assignment) >= _value(family_set):
        return replace(found, found_at_seconds=family_set.outcome.found_at_seconds)
    return found


def _max_boxes(context: SolveContext, priced: SolverProblem) -> int:
    """Return how many boxes the bound may look at: by size and work, not by the clock, so that plans repeat."""
    return affordable_boxes(_BOUNDED * context.limits.work_seconds, priced.num_options, priced.num_ranks)


def _bound_of_all(
    context: SolveContext, pruned: SolverProblem, family_sets: list[_FamilySet], *, exhaustive: bool
) -> float:
    """Return a bound on all plans: where modes leave some out, one over all families at once."""
    if exhaustive or not family_sets:
        return min((family_set.bound.seconds for family_set in family_sets), default=0.0)
    return lower_bound(pruned, max_boxes=_max_boxes(context, pruned)).seconds


def _conclude(
    context: SolveContext, priced: SolverProblem, family_sets: list[_FamilySet], bound: float, *, exhaustive: bool
) -> PlanResult:
    """Pick the best outcome over the modes; what a search proved holds only if every mode has it and lists all cuts."""
    solved = [family_set for family_set in family_sets if family_set.outcome.assignment is not None]
    complete = exhaustive and all(lists_all_cuts(family_set.priced) for family_set in family_sets)
    if complete:
        feasible = [family_set for family_set in family_sets if family_set.outcome.reason is not Reason.INFEASIBLE]
        proven = min(
            (max(family_set.bound.seconds, family_set.outcome.bound_seconds) for family_set in feasible), default=0.0
        )
        bound = max(bound, proven)
    if not solved:
        outcomes = [family_set.outcome for family_set in family_sets]
        if all(found.reason is Reason.INFEASIBLE for found in outcomes):
            return no_plan(unpackable(context.problem, priced, proven=exhaustive))
        if (over := _over_budget(context, family_sets, bound)) is not None:
            return over
        detail = "; ".join(sorted({found.detail for found in outcomes} - {""}))
        limit = next((found.limit for found in outcomes if found.limit), None)
        return PlanResult(
            plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit, detail=detail, lower_bound_seconds=bound
        )
    best = min(solved, key=_value)
    assert best.outcome.assignment is not None
    outcome = replace(best.outcome, assignment=with_nearer_rows(context, best.priced, best.outcome.assignment))
    return result_of(finish(context, best.priced, outcome, bound))


def _over_budget(context: SolveContext, family_sets: list[_FamilySet], bound: float) -> PlanResult | None:
    """Say how many bytes a plan moves that was found without the limit, where more move than may."""
    most = None if context.previous_state is None else context.previous_state.previous.max_moved_bytes
    least = np.inf
    for family_set in family_sets:
        if context.previous_state is not None and family_set.priced.move is not None:
            free = replace(family_set.priced, move=replace(family_set.priced.move, max_bytes=np.inf))
            found = resume(free, warm_start_from(free, context.previous_state), context.limits).assignment
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
    return unmet(shortfall, BYTES_MOVED, bound)


def _value(family_set: _FamilySet) -> float:
    if family_set.outcome.assignment is None:
        return float("inf")
    return objective_of(family_set.priced, family_set.outcome.assignment)
