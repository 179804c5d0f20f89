"""Search the modes of a problem: a first plan of each, a bound, the search, and the best of all.

A mode is a set of families that one plan may hold together (:mod:`planner.options.compatible_families`).
"""

import functools
import math
import time
from dataclasses import replace

import numpy as np

from planner.domain.plan.plan import PlanResult
from planner.options.compatible_families import compatible_family_sets
from planner.orchestration.answers.conclude import Explored
from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.family_sets.branch_kinds import bound_of_kinds
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.family_set import (
    FamilySet,
    Start,
    first_plan,
    is_better_begin,
    least_seconds,
    started,
    warm_plan,
)
from planner.orchestration.family_sets.kind_sets import without_replaced_kinds
from planner.orchestration.family_sets.sets_of_kinds import SetsOfKinds, sets_of_kinds
from planner.orchestration.limits.shortfalls import no_plan, unsatisfiable_modules
from planner.pricing.price_options import drop_unusable, prune, restrict
from planner.solver.bounds.boxes import affordable_boxes
from planner.solver.bounds.chain import lower_bound, quick_bound
from planner.solver.evaluate import objective_of
from planner.solver.machine import return_free_memory
from planner.solver.memo import forget_derived
from planner.solver.partitioners.base import CUTOFF, Incumbent, Partitioner, SearchOptions, SolveLimits
from planner.solver.problem import Outcome, Reason, SolverProblem

# Parts of the time limit that a reproducible solve spends, counted in work.
_BOUNDED = 0.25  # on the bound
_SEARCHED = 0.5  # on the search, in each of its lanes
_LOOKED_AT = 0.5  # of that, on sets of kinds before the best of them is searched for the rest
_BOUNDED_UNTIL = 0.45  # part of what is left of the time limit: deadline of bounds
#: What it took to finish a plan is kept free for what comes after the search, so many times: another plan may be found
#: at the end.
_FINISHES = 2
_UNSOLVED = 0.5  # of the time limit, at least, for a search that begins without any plan
_LATE = 0.02  # of the time limit: what ends so late may have been cut by the clock


def explore(
    context: SolveContext,
    priced: SolverProblem,
    partitioner: Partitioner,
    reporter: IncumbentReporter,
    start: Start | None = None,
) -> Explored | PlanResult:
    """Find a first plan of every mode, bound them, and search those that may hold a better plan.

    Returns a result without a plan if the rules of a module leave none.
    :func:`planner.orchestration.answers.conclude.conclude` makes the answer of what this returns.

    With a ``start``, modes that hold it begin there. Where plans pay starts, modes are divided into sets of kinds, and
    ``priced`` goes as soon as the caller gives it up.
    """
    found = compatible_family_sets(context.problem, context.families)
    if found.unsatisfiable_modules:
        return no_plan(unsatisfiable_modules(context.problem, found.unsatisfiable_modules))
    pruned = prune(priced)
    modes = [(mask, pruned if np.all(mask) else prune(restrict(priced, mask))) for mask in found.masks]
    modes = [(mask, mode) for mask, mode in modes if len(np.unique(mode.family_table)) == mode.num_tables]
    return_free_memory()
    reporter.until_seconds = math.inf
    if modes and reporter.is_streaming:  # for first plans; bounds that follow are no lower
        reporter.raise_bound(quick_bound(pruned))
        if priced.num_kinds:  # bounds that follow are of other problems
            forget_derived(pruned)
    family_sets = [_begun(context, mode, reporter, start) for _, mode in modes]
    others: list[FamilySet] = []
    if context.warm_start is not None and start is None:
        family_sets, others = _warmed(context, family_sets, reporter)
    _charge_any_move(context, family_sets, reporter)
    if context.limits.cutoff_seconds is not None and modes:
        reporter.raise_bound(quick_bound(pruned))
    tried = [*family_sets, *others]
    if _ends_at_cutoff(context, tried, reporter):
        return Explored(pruned=pruned, holding_all=family_sets, searched=tried, is_exhaustive=found.exhaustive)
    search = _Search(context, partitioner, reporter)
    # Work on bounds is counted; a machine that is too busy for it leaves the rest of the time to searches.
    bounded = context.deadline.after(_BOUNDED_UNTIL)
    if priced.num_kinds and np.isfinite(least_seconds(family_sets)):
        for problem in (pruned, *(mode for _, mode in modes), *(one.priced for one in family_sets)):
            forget_derived(problem)  # sets of kinds are other problems, as large as these
        return_free_memory()
        usable = [drop_unusable(restrict(priced, mask)) for mask, _ in modes]
        of_all = None if found.exhaustive else (drop_unusable(priced), _max_boxes(context, pruned))
        del priced  # the largest of these problems: the others have all that sets of kinds need
        return_free_memory()
        of_modes = [without_replaced_kinds(usable.pop(0)) for _ in modes]
        leaves, searched = search.of_kinds(of_modes, family_sets, others, of_all, bounded)
        return Explored(pruned=pruned, holding_all=leaves, searched=searched, is_exhaustive=found.exhaustive)
    known = least_seconds(tried)
    for family_set in family_sets:
        most = max(_max_boxes(context, family_set.priced) // len(family_sets), 1)
        family_set.bound = lower_bound(family_set.priced, max_boxes=most, known_seconds=known, is_over=bounded.is_over)
    if found.exhaustive or not family_sets:
        bound = min((family_set.bound.seconds for family_set in family_sets), default=0.0)
    else:  # modes leave some plans out
        bound = lower_bound(pruned, max_boxes=_max_boxes(context, pruned), is_over=bounded.is_over).seconds
    reporter.raise_bound(bound)
    if not _ends_at_cutoff(context, tried, reporter):
        search.each([one for one in family_sets if one.bound.seconds * (1 + context.limits.ending_gap) < known], 1.0)
    if bounded.ended_work:  # a proof holds, but with other bounds another plan within the gap may come out
        for one in family_sets:
            one.outcome = _cut_by_clock(one.outcome)
    return Explored(pruned=priced, holding_all=family_sets, searched=tried, is_exhaustive=found.exhaustive)


def _begun(context: SolveContext, priced: SolverProblem, reporter: IncumbentReporter, start: Start | None) -> FamilySet:
    """Return a mode with its first plan: the start, or a construction."""
    found = None if start is None else started(context, priced, *start)
    return found or first_plan(context, priced, reporter)


def _warmed(
    context: SolveContext, cold: list[FamilySet], reporter: IncumbentReporter
) -> tuple[list[FamilySet], list[FamilySet]]:
    """Return modes that begin with the warm start of the solve where searches had better, and the other plans."""
    begun, others = [], []
    for one in cold:
        warm = warm_plan(context, one)
        if warm is None:
            begun.append(one)
            continue
        first, second = (warm, one) if is_better_begin(warm, one) else (one, warm)
        begun.append(first)
        others.append(second)
        assert warm.outcome.assignment is not None
        found = Incumbent(
            assignment=warm.outcome.assignment, objective_seconds=warm.seconds, partitioner=warm.outcome.partitioner
        )
        reporter.report(warm.priced, found)
    return begun, others


class _Search:
    """The long searches of one solve, within its limits."""

    def __init__(self, context: SolveContext, partitioner: Partitioner, reporter: IncumbentReporter) -> None:
        self._context, self._partitioner, self._reporter = context, partitioner, reporter

    def of_kinds(
        self,
        of_modes: list[SolverProblem],
        modes: list[FamilySet],
        others: list[FamilySet],
        of_all: tuple[SolverProblem, int] | None,
        bounded: Deadline,
    ) -> tuple[list[FamilySet], list[FamilySet]]:
        """Bound and search the sets of kinds of modes; return those that hold every plan, and all that have a plan.

        ``others`` are further plans of modes. ``of_all`` is the problem of plans that no mode holds, and the most
        boxes of its bound.
        """
        context, reporter = self._context, self._reporter
        most_boxes = functools.partial(_max_boxes, context)
        sets = sets_of_kinds(context, of_modes, modes, reporter, most_boxes, bounded, others)
        bound = min((one.bound.seconds for one in sets.family_sets), default=0.0)
        if of_all is not None:
            usable, most = of_all
            known = least_seconds(sets.tried)
            bound = bound_of_kinds(
                usable, max_boxes=most, known_seconds=known, deadline=bounded, is_enough=context.is_cut_off
            )
        reporter.raise_bound(bound)
        found = [*sets.tried, *sets.family_sets]
        if _ends_at_cutoff(context, found, reporter):
            return sets.family_sets, found
        return sets.family_sets, self.best_of(sets)

    def best_of(self, sets: SetsOfKinds) -> list[FamilySet]:
        """Search sets of kinds, each for a while, and then the best of them; return all that have a plan."""
        gap = 1 + self._context.limits.ending_gap
        some = sets.worth_searching(self._context, least_seconds(sets.tried) / gap)
        spent = self.each(some, _LOOKED_AT, is_last=False) if len(some) > 1 else 0.0
        found = [*sets.tried, *sets.family_sets, *some]
        known = least_seconds(found)
        left = sorted((one for one in some if one.bound.seconds * gap < known), key=lambda one: one.seconds)
        self.each(left[:1], 1.0 - spent)
        if sets.is_cut_by_clock:  # a proof holds, but with other sets another plan within the gap may come out
            for one in found:
                one.outcome = _cut_by_clock(one.outcome)
        return found

    def each(self, family_sets: list[FamilySet], part: float, *, is_last: bool = True) -> float:
        """Search sets one after the other with equal parts of some work; return the part of all work that they took.

        They take all the time that is left if they are the last ones, else the same part of it. Sets that hold no plan
        better than those that were found before are left out.
        """
        context, reporter = self._context, self._reporter
        is_unsolved = not np.isfinite(min(least_seconds(family_sets), reporter.best_seconds))
        reserved_seconds: float | None = 0.0 if is_last else None  # of the limit, for other sets
        spent_fraction = 0.0
        for index, family_set in enumerate(family_sets):
            if family_set.bound.seconds * (1 + context.limits.ending_gap) >= least_seconds(family_sets):
                continue
            fraction = (part - spent_fraction) / (len(family_sets) - index)
            spent_fraction += fraction
            reporter.until_seconds = min(
                context.deadline.until_seconds, context.end.until_seconds - _FINISHES * reporter.finish_seconds
            )
            left_seconds = reporter.until_seconds - time.monotonic()
            if left_seconds <= 0 and not is_unsolved:
                family_set.outcome = _cut_by_clock(family_set.outcome)
                continue
            if reserved_seconds is None:
                reserved_seconds = (1 - part) * max(left_seconds, 0.0)
            if is_unsolved:  # what came before was late, and found nothing that could be the answer
                left_seconds = max(left_seconds, _UNSOLVED * context.limits.time_limit_seconds)
            limits = replace(
                context.limits,
                time_limit_seconds=max((left_seconds - reserved_seconds) / (len(family_sets) - index), 1e-3),
                work_limit_seconds=fraction * _SEARCHED * context.limits.work_seconds,
            )
            family_set.outcome = self._marked_if_cut_by_clock(family_set, self._found(family_set, limits))
        return spent_fraction

    def _found(self, family_set: FamilySet, limits: SolveLimits) -> Outcome:
        priced, bound = family_set.priced, family_set.bound.seconds
        if not _leaves_starts_out(priced):
            bound = max(bound, self._reporter.bound)
        found = self._partitioner.solve(
            priced,
            limits,
            SearchOptions(
                lower_bound_seconds=bound,
                start=family_set.outcome.assignment,
                is_start_warm=family_set.is_warm,
                hint=family_set.bound.hint,
                on_incumbent=functools.partial(self._reporter.report, priced),
            ),
        )
        return replace(found, bound_seconds=max(found.bound_seconds, family_set.outcome.bound_seconds))

    def _marked_if_cut_by_clock(self, family_set: FamilySet, found: Outcome) -> Outcome:
        """Keep the better plan, and say so where the clock may have cut the search: it may not come out again."""
        late_from_seconds = self._reporter.until_seconds - _LATE * self._context.limits.time_limit_seconds
        best = family_set.better(found)
        is_proven = best.reason in (Reason.OPTIMAL, Reason.INFEASIBLE)
        return best if is_proven or time.monotonic() < late_from_seconds else _cut_by_clock(best)


def _ends_at_cutoff(context: SolveContext, family_sets: list[FamilySet], reporter: IncumbentReporter) -> bool:
    """Whether a plan is known and no plan is below the cutoff; the sets then say so."""
    if not np.isfinite(least_seconds(family_sets)) or not context.is_cut_off(reporter.bound):
        return False
    detail = (
        f"the lower bound proves that no plan is below cutoff_seconds {context.limits.cutoff_seconds:g}; the plan was"
        " found before any long search"
    )
    for one in family_sets:
        one.outcome = replace(one.outcome, limit=CUTOFF, detail=detail)
    return True


def _cut_by_clock(outcome: Outcome) -> Outcome:
    """Say that the clock ended work, but for a solve that was cancelled."""
    return outcome if outcome.limit == "cancelled" else replace(outcome, limit="time")


def _leaves_starts_out(priced: SolverProblem) -> bool:
    """Whether plans may cost more than the search of a set believes: a bound on plans is then none on its seconds."""
    used = np.unique(priced.family_kind)
    return bool(priced.num_kinds) and not np.all(priced.charged_kinds[used])


def _charge_any_move(context: SolveContext, family_sets: list[FamilySet], reporter: IncumbentReporter) -> None:
    """Charge whatever moves at all, if the previous plan had to be completed and still moves nothing.

    Only then first plans are reported: their price was not known before.
    """
    if context.previous_state is None or context.previous_state.seconds is not None:
        return
    least = min((family_set.seconds for family_set in family_sets if family_set.moved_bytes == 0), default=0.0)
    for family_set in family_sets:
        assert family_set.priced.move is not None
        move = replace(family_set.priced.move, any_seconds=context.previous_state.previous.min_relative_gain * least)
        family_set.priced = replace(family_set.priced, move=move)
        first = family_set.outcome
        if first.assignment is not None:
            seconds = objective_of(family_set.priced, first.assignment)
            found = Incumbent(assignment=first.assignment, objective_seconds=seconds, partitioner=first.partitioner)
            reporter.report(family_set.priced, found)


def _max_boxes(context: SolveContext, priced: SolverProblem) -> int:
    """Return how many boxes the bound may look at: by size and work, not by the clock, so that plans repeat."""
    return affordable_boxes(_BOUNDED * context.limits.work_seconds, priced.num_options, priced.num_ranks)
