"""First plans and bounds of sets of kinds: from few sets that starts suggest, to sets that hold every plan."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Ints
from planner.options.enumerate import Families
from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.family_sets.branch_kinds import branch_kinds
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.family_set import (
    FamilySet,
    at_home,
    first_plan,
    is_better_begin,
    transferred,
    warm_plan,
)
from planner.orchestration.family_sets.kind_sets import (
    KindSet,
    first_sets,
    kinds_of_options,
    most_first_sets,
    set_of_just,
    without_one,
)
from planner.solver.bounds.chain import Bound, lower_bound
from planner.solver.bounds.crowding import exceed_memory
from planner.solver.evaluate import used_kinds
from planner.solver.machine import return_free_memory
from planner.solver.memo import forget_derived
from planner.solver.problem import Outcome, SolverProblem

#: Sets that are searched before the best of them is searched for long: by tables times ranks, at most so many of them.
_SEARCHED = ((1_500, 6), (8_000, 3))
_FEWEST_SEARCHED = 2
#: Sets whose bound exceeds the least one by this factor are not searched: plans come within 4% of the bound of their
#: set (decision 0072).
_CLOSE_BOUNDS = 1.04
_PROVABLE = 64  # tables times ranks, up to which an exact search often ends
#: Times as long as listing and pricing took, that a bound and the start of a search take at most.
_BOUNDS_LISTED = 3.0
_FIRST_UNTIL = 0.25  # part of what is left of the time limit: deadline of first plans


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaf:
    """One of the sets that hold every plan of a mode."""

    family_set: FamilySet
    kinds: KindSet
    usable: SolverProblem  # the mode
    plans: list[FamilySet]  # first plans that use its kinds, the best one first

    @property
    def seconds(self) -> float:
        """Return the seconds of the best first plan; infinite if there is none."""
        return self.plans[0].seconds if self.plans else np.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class SetsOfKinds:
    """What is known before the long searches."""

    tried: list[FamilySet]  # with first plans
    leaves: list[Leaf]
    is_first_cut: bool  # whether the clock ended first plans
    bounded: Deadline  # of the work on bounds

    @property
    def is_cut_by_clock(self) -> bool:
        """Whether another run may try other sets."""
        return self.is_first_cut or self.bounded.ended_work

    @property
    def family_sets(self) -> list[FamilySet]:
        """Sets that hold every plan of the modes, with bounds."""
        return [leaf.family_set for leaf in self.leaves]

    def worth_searching(self, context: SolveContext, known_seconds: float) -> list[FamilySet]:
        """Return the sets that may hold a plan better than ``known_seconds``, least bound first.

        Sets whose bounds are far above the least one are left out. All plans of a set use the same kinds, so that a
        search knows what they start.
        """
        leaves = [leaf for leaf in self.leaves if leaf.family_set.bound.seconds < known_seconds]
        if not leaves:
            return []
        most = _most_searched(leaves[0].family_set.priced)
        leaves.sort(key=lambda leaf: leaf.family_set.bound.seconds)
        best = min(leaves, key=lambda leaf: leaf.seconds)
        some = [leaf for leaf in leaves if leaf is best or leaf in leaves[:most]]
        found = sorted((_decided(context, leaf, self.bounded) for leaf in some), key=lambda one: one.bound.seconds)
        close_seconds = min(known_seconds, _CLOSE_BOUNDS * found[0].bound.seconds)
        chosen = [one for one in found if one is found[0] or one.bound.seconds < close_seconds][:most]
        warm = [warm_plan(context, one) for one in chosen]
        return [
            known if known is not None and is_better_begin(known, one) else one
            for one, known in zip(chosen, warm, strict=True)
        ]


def sets_of_kinds(
    context: SolveContext,
    of_modes: list[SolverProblem],
    modes: list[FamilySet],
    reporter: IncumbentReporter,
    max_boxes: Callable[[SolverProblem], int],
    bounded: Deadline,
    others: Sequence[FamilySet] = (),
) -> SetsOfKinds:
    """Return first plans and bounds of the sets of kinds of all modes.

    Parameters
    ----------
    of_modes, modes
        The problem of each mode without the kinds that another one replaces, and its first plan.
    max_boxes
        Returns how many boxes bounds of a problem may look at.
    bounded
        Ends the work on bounds.
    others
        Further plans of modes.
    """
    if (move := modes[0].priced.move) is not None:  # what any move costs may be known only now
        of_modes = [_with_any_seconds(one, move.any_seconds) for one in of_modes]
    tried = [*modes, *others]
    # Work is counted; a machine that is too busy for it leaves the rest of the time to searches.
    first = context.deadline.after(_FIRST_UNTIL)
    for usable in of_modes:
        tried += _first_plans(context, usable, _schemes(context.families, usable), reporter, first)
    best = min(tried, key=lambda one: one.seconds)
    close_seconds = best.seconds / (1 + context.limits.ending_gap)
    leaves = []
    for usable, mode in zip(of_modes, modes, strict=True):
        boxes = max(max_boxes(usable) // len(of_modes), 1)
        for one in branch_kinds(
            usable,
            max_boxes=boxes,
            known_seconds=close_seconds,
            deadline=bounded,
            pruned=mode.priced,
            is_enough=context.is_cut_off,
        ):
            leaves.append(_leaf(context, one, usable, tried))
    # Few of these problems are searched, and what bounds derived from each is as large as the problem.
    of_leaves = [priced for leaf in leaves for priced in (leaf.family_set.priced, leaf.kinds.priced)]
    for problem in (*of_modes, *of_leaves):
        forget_derived(problem)
    return_free_memory()
    is_first_cut = first.ended_work or any(one.outcome.limit == "time" for one in tried)
    return SetsOfKinds(tried=tried, leaves=leaves, is_first_cut=is_first_cut, bounded=bounded)


def _with_any_seconds(priced: SolverProblem, any_seconds: float) -> SolverProblem:
    return priced if priced.move is None else replace(priced, move=replace(priced.move, any_seconds=any_seconds))


def _most_searched(priced: SolverProblem) -> int:
    return next((number for most, number in _SEARCHED if _looks(priced) <= most), _FEWEST_SEARCHED)


def _looks(priced: SolverProblem) -> int:
    return priced.num_tables * priced.num_ranks


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
        if exceed_memory(one.priced):  # a repair would spend all its work
            continue
        found = _first_plan(context, one.priced, reporter, deadline)
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
            if exceed_memory(one.priced):
                continue
            found = _first_plan(context, one.priced, reporter, deadline)
            yield found
            if found.seconds < best.seconds:
                best, improves = found, True
                break


def _first_plan(
    context: SolveContext, priced: SolverProblem, reporter: IncumbentReporter, deadline: Deadline
) -> FamilySet:
    """Return a first plan without what it derived from its problem, which is as large as the problem."""
    found = first_plan(context, priced, reporter, deadline)
    forget_derived(found.priced)
    return found


def _leaf(context: SolveContext, kinds: KindSet, usable: SolverProblem, tried: list[FamilySet]) -> Leaf:
    """Return a set with the plans of those tried that use its kinds, the best one first."""
    plans = []
    for one in tried:
        if one.outcome.assignment is None:
            continue
        used = used_kinds(one.priced, one.outcome.assignment)[: len(kinds.allowed)]
        if kinds.holds(used):
            plans.append(one)
    plans.sort(key=lambda one: one.seconds)
    family_set = _with_best(context, kinds.priced, kinds.bound, plans)
    return Leaf(family_set=family_set, kinds=kinds, usable=usable, plans=plans)


def _with_best(context: SolveContext, priced: SolverProblem, bound: Bound, plans: list[FamilySet]) -> FamilySet:
    """Return a set with the first of some plans that it has the families of."""
    if context.previous_state is not None:
        priced, _ = at_home(context, priced)
    found = FamilySet(priced=priced, outcome=Outcome.without_plan("", None), bound=bound)
    for one in plans:
        assert one.outcome.assignment is not None
        assignment = transferred(one.outcome.assignment, one.priced, priced)
        if assignment is not None:
            found.outcome = found.better(replace(one.outcome, assignment=assignment))
            if found.outcome.assignment is not None:
                break
    return found


def _decided(context: SolveContext, leaf: Leaf, bounded: Deadline) -> FamilySet:
    """Return the plans of a leaf that use the kinds of its best plan, or those of the relaxation if these promise more.

    If a leaf leaves kinds open, a search would not know what its plans start. A leaf so small that an exact search
    proves something of all its plans stays unchanged. So does every leaf once too little time is left for its bound.
    """
    family_set, kinds = leaf.family_set, leaf.kinds
    if kinds.is_decided or _looks(family_set.priced) <= _PROVABLE:
        return family_set
    wanted = []
    if leaf.plans and (plan := leaf.plans[0].outcome.assignment) is not None:
        wanted.append(used_kinds(leaf.plans[0].priced, plan))
    if family_set.bound.hint is not None:
        wanted.append(kinds_of_options(kinds.priced, family_set.bound.hint.option))
    if kinds.promising is not None:
        wanted.append(kinds.promising)
    if context.deadline.left_seconds < _BOUNDS_LISTED * context.listed_seconds and bounded.is_over():
        return family_set
    sets: dict[bytes, KindSet] = {}
    for used in wanted:
        just = set_of_just(leaf.usable, kinds.required | used[: len(kinds.required)])
        if just is not None and just.required.tobytes() not in {*sets, *kinds.elsewhere}:
            just.bound = lower_bound(just.priced)
            forget_derived(just.priced)
            sets[just.required.tobytes()] = just
    if not sets:
        return family_set
    best = min(sets.values(), key=lambda one: one.bound.seconds)
    bound = replace(best.bound, seconds=max(best.bound.seconds, family_set.bound.seconds))
    return _with_best(context, best.priced, bound, leaf.plans)


def _schemes(families: Families, priced: SolverProblem) -> Ints:
    """Return the scheme of each kind, (K,)."""
    of_family = np.array([one.scheme for one in families.families], dtype=np.int64)
    schemes = np.zeros(priced.num_kinds, dtype=np.int64)
    schemes[priced.family_kind] = of_family[priced.family_source]
    return schemes
