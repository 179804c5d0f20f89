"""First plans and bounds of sets of kinds: from few sets that starts suggest, to sets that hold every plan."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.options.enumerate import Families
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.family_set import FamilySet, at_home, first_plan, transferred
from planner.orchestration.family_sets.kind_sets import (
    KindSet,
    branch_kinds,
    first_sets,
    most_first_sets,
    without_one,
    without_replaced_kinds,
)
from planner.orchestration.finish_plan import SolveContext
from planner.orchestration.incumbents import IncumbentReporter
from planner.pricing.price_options import drop_unusable, restrict
from planner.solver.bounds.chain import lower_bound
from planner.solver.evaluate import used_kinds
from planner.solver.problem import Outcome, SolverProblem

#: Sets that are searched before the best of them is searched for long: by tables times ranks, at most so many of them.
_SEARCHED = ((1_500, 6), (8_000, 3))
_FEWEST_SEARCHED = 2
_FIRST_UNTIL = 0.25  # part of what is left of the time limit: deadline of first plans


@dataclass(frozen=True, slots=True, kw_only=True)
class SetsOfKinds:
    """What is known before the long searches."""

    tried: list[FamilySet]  # with first plans
    leaves: list[FamilySet]  # that hold every plan of the modes, with bounds
    is_cut_by_clock: bool  # another run may try other sets

    def worth_searching(self, known_seconds: float) -> list[FamilySet]:
        """Return sets that may hold a plan better than ``known_seconds``, of least bound first, and the best one tried.

        That one is searched where no leaf has just its kinds, and bounds have no set of their own for it.
        """
        leaves = [one for one in self.leaves if one.bound.seconds < known_seconds]
        if not leaves:
            return []
        leaves.sort(key=lambda one: (one.bound.seconds, one.seconds))
        best = min(self.tried, key=lambda one: one.seconds)
        alike = [one for one in leaves if np.array_equal(_families_of(one), _families_of(best))]
        first = alike[:1]
        if not first:
            best.bound = lower_bound(best.priced)
            first = [best]
        return [*first, *(one for one in leaves if one not in first)][: _most_searched(best.priced)]


def sets_of_kinds(
    context: SolveContext,
    priced: SolverProblem,
    masks: list[Bools],
    modes: list[FamilySet],
    reporter: IncumbentReporter,
    max_boxes: Callable[[SolverProblem], int],
    bounded: Deadline,
) -> SetsOfKinds:
    """Return first plans and bounds of the sets of kinds of all modes.

    Parameters
    ----------
    priced, masks, modes
        The problem of all families; which of them each mode has, and its first plan.
    max_boxes
        Returns how many boxes bounds of a problem may look at.
    bounded
        Ends the work on bounds.
    """
    if modes[0].priced.move is not None and priced.move is not None:  # what any move costs may be known only now
        priced = replace(priced, move=replace(priced.move, any_seconds=modes[0].priced.move.any_seconds))
    of_modes = [without_replaced_kinds(drop_unusable(restrict(priced, mask))) for mask in masks]
    tried = list(modes)
    # Work is counted; a machine that is too busy for it leaves the rest of the time to searches.
    first = context.deadline.after(_FIRST_UNTIL)
    for usable in of_modes:
        tried += _first_plans(context, usable, _schemes(context.families, usable), reporter, first)
    best = min(tried, key=lambda one: one.seconds)
    close_seconds = best.seconds / (1 + context.limits.ending_gap)
    leaves = []
    for usable in of_modes:
        boxes = max(max_boxes(usable) // len(of_modes), 1)
        for one in branch_kinds(usable, max_boxes=boxes, known_seconds=close_seconds, deadline=bounded):
            leaves.append(_leaf(context, one, tried))
    return SetsOfKinds(tried=tried, leaves=leaves, is_cut_by_clock=first.ended_work or bounded.ended_work)


def _most_searched(priced: SolverProblem) -> int:
    looks = priced.num_tables * priced.num_ranks
    return next((number for most, number in _SEARCHED if looks <= most), _FEWEST_SEARCHED)


def _first_plans(
    context: SolveContext,
    usable: SolverProblem,
    kind_scheme: Ints,
    reporter: IncumbentReporter,
    deadline: Deadline,
) -> Iterator[FamilySet]:
    """Yield plans of few kinds, and of those of the best plan with one kind less, as long as that is better."""
    best: FamilySet | None = None
    most = most_first_sets(usable, context.limits.work_seconds)
    for one in itertools.islice(first_sets(usable, kind_scheme), most):
        if deadline.is_over():
            return
        found = first_plan(context, one.priced, reporter)
        yield found
        best = found if best is None or found.seconds < best.seconds else best
    improves = best is not None
    while improves and best is not None and best.outcome.assignment is not None and most > 0:
        improves = False
        used = used_kinds(best.priced, best.outcome.assignment)[: usable.num_kinds]
        for one in itertools.islice(without_one(usable, used), most):
            if deadline.is_over():
                return
            most -= 1
            found = first_plan(context, one.priced, reporter)
            yield found
            if found.seconds < best.seconds:
                best, improves = found, True
                break


def _leaf(context: SolveContext, one: KindSet, tried: list[FamilySet]) -> FamilySet:
    """Return a set with the best plan of those tried that it holds."""
    priced = one.priced
    if context.previous_state is not None:
        priced, _ = at_home(context, priced)
    leaf = FamilySet(priced=priced, outcome=Outcome.without_plan("", None), bound=one.bound)
    for other in tried:
        if other.outcome.assignment is None:
            continue
        used = used_kinds(other.priced, other.outcome.assignment)[: len(one.allowed)]
        if np.any(used & ~one.allowed) or np.any(one.required & ~used):
            continue
        assignment = transferred(other.outcome.assignment, other.priced, priced)
        if assignment is not None:
            leaf.outcome = leaf.better(replace(other.outcome, assignment=assignment))
    return leaf


def _schemes(families: Families, priced: SolverProblem) -> Ints:
    """Return the scheme of each kind, (K,)."""
    of_family = np.array([one.scheme for one in families.families], dtype=np.int64)
    schemes = np.zeros(priced.num_kinds, dtype=np.int64)
    schemes[priced.family_kind] = of_family[priced.family_source]
    return schemes


def _families_of(one: FamilySet) -> Ints:
    return one.priced.family_source
