"""Sets of kinds that hold every plan, each with a bound: some that were relaxed, and one of all other plans."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import sharing_arrays
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.kind_sets import KindSet, set_of_just, whole_set, without_replaced_kinds
from planner.orchestration.family_sets.priced_sets import PricedSets, Promising
from planner.solver.bounds.boxes import box_seconds, never
from planner.solver.bounds.chain import Bound, lower_bound
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.memo import forget_derived
from planner.solver.problem import SolverProblem

#: Nominal work of one relaxation of a set, seconds per table, and how many boxes it counts as at least. With 300 tables
#: and more 0.07 to 0.26 ms were measured.
_SET_SECONDS, _LEAST_BOXES_OF_A_SET = 2e-4, 2
_FEWEST_BOXES = 4  # fewest that a set is given
_FEWEST_SETS = 4  # sets that are relaxed before few boxes end this: no plan may use the kinds that seemed best
_MORE_BOXES = 4  # factor of boxes each time that a set has the least bound
_BELOW_KNOWN = 1 - 1e-8  # factor of a known plan: a bound above the product leaves no better plan


def _never_enough(_: float) -> bool:
    return False


@dataclass(eq=False, slots=True, kw_only=True)
class RelaxedSet:
    """A set that was relaxed."""

    kinds: KindSet
    boxes: int  # most of its bound
    bound_seconds: float  # on its plans, infinite if it has none
    is_done: bool = False  # whether more boxes prove no more

    @property
    def key(self) -> bytes:
        """Return the bytes of its kinds, by which it is known."""
        return self.kinds.required.tobytes()

    def learn(self, bound: Bound) -> None:
        """Take over what a relaxation proved."""
        has_plan = any(prices is not None for prices in bound.prices)
        self.kinds.bound = bound
        self.bound_seconds = max(self.bound_seconds, bound.seconds) if has_plan else np.inf
        self.is_done = bound.is_final or not has_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSets:
    """All sets of kinds, and those that were relaxed, by the bytes of their kinds."""

    sets: PricedSets
    whole: KindSet  # of all plans
    relaxed: dict[bytes, RelaxedSet]
    others: Promising | None  # the set that promises most of all others, if there is one

    @property
    def bound_seconds(self) -> float:
        """A bound on all plans."""
        of_sets = [one.bound_seconds for one in self.relaxed.values()]
        of_others = [] if self.others is None else [self.others.bound_seconds]
        return max(min([*of_sets, *of_others], default=0.0), self.whole.bound.seconds)


def branch_kinds(
    priced: SolverProblem,
    *,
    max_boxes: int,
    known_seconds: float,
    deadline: Deadline | None = None,
    pruned: SolverProblem | None = None,
    is_enough: Callable[[float], bool] = _never_enough,
) -> list[KindSet]:
    """Return sets that hold every plan of a problem in one of them, each with its bound.

    ``relaxed_seconds`` of each bound is that of all plans. Bounds are raised until the least one is final, no set may
    hold a plan better than a known one, or the bound on all plans ``is_enough``. Of all plans, a set shares the arrays
    that it has in common with ``pruned``.
    """
    ranked = rank_sets(
        priced,
        max_boxes=max_boxes,
        known_seconds=known_seconds,
        deadline=deadline,
        pruned=pruned,
        is_enough=is_enough,
    )
    if ranked is None:
        return []
    rest, others = ranked.whole, ranked.others
    of_all = rest.bound
    no_better_seconds = known_seconds if np.isfinite(known_seconds) else of_all.seconds  # of sets without a plan
    for one in ranked.relaxed.values():
        seconds = max(one.bound_seconds, of_all.seconds) if np.isfinite(one.bound_seconds) else no_better_seconds
        one.kinds.bound = replace(one.kinds.bound, seconds=seconds, relaxed_seconds=of_all.relaxed_seconds)
    found = [one.kinds for one in ranked.relaxed.values()]
    if others is None:
        return found or [rest]
    rest.bound = replace(of_all, seconds=max(others.bound_seconds, of_all.seconds))
    rest.promising = others.kinds
    rest.elsewhere = frozenset(ranked.relaxed)
    return [rest, *found]


def bound_of_kinds(
    priced: SolverProblem,
    *,
    max_boxes: int,
    known_seconds: float,
    deadline: Deadline | None = None,
    is_enough: Callable[[float], bool] = _never_enough,
) -> float:
    """Return a bound on all plans of a problem, whatever kinds they use."""
    usable = without_replaced_kinds(priced)
    leaves = branch_kinds(
        usable, max_boxes=max_boxes, known_seconds=known_seconds, deadline=deadline, is_enough=is_enough
    )
    return min((one.bound.seconds for one in leaves), default=0.0)


def rank_sets(
    priced: SolverProblem,
    *,
    max_boxes: int,
    known_seconds: float,
    deadline: Deadline | None = None,
    pruned: SolverProblem | None = None,
    is_enough: Callable[[float], bool] = _never_enough,
) -> RankedSets | None:
    """Relax the set with the least bound again and again, until its bound is final or no better than a known plan.

    The first time its prices raise the bounds of all sets, later it gets more boxes. ``None`` where a table has no
    family.
    """
    whole = whole_set(priced)
    if whole is None:
        return None
    if pruned is not None:
        whole.priced = sharing_arrays(whole.priced, pruned)
    whole.bound = lower_bound(whole.priced, known_seconds=known_seconds)
    forget_derived(whole.priced)  # prices of it say the rest
    sets = PricedSets(priced)
    sets.raise_by(whole.bound.prices)
    relaxed: dict[bytes, RelaxedSet] = {}
    if all(prices is None for prices in whole.bound.prices):  # there is no plan
        return RankedSets(sets=sets, whole=whole, relaxed=relaxed, others=None)
    others = sets.most_promising(relaxed)
    of_a_set = _boxes_of_a_set(priced)
    boxes_left, enough_seconds = max_boxes - of_a_set, known_seconds * _BELOW_KNOWN
    is_over = never if deadline is None else deadline.is_over
    while boxes_left >= _FEWEST_BOXES or len(relaxed) < _FEWEST_SETS:
        if is_enough(RankedSets(sets=sets, whole=whole, relaxed=relaxed, others=others).bound_seconds):
            break
        one = min((some for some in relaxed.values() if not some.is_done), key=_bound_of, default=None)
        new = None
        if others is not None and (one is None or others.bound_seconds <= one.bound_seconds):
            one = new = _unrelaxed(priced, others)
        if one is None or one.bound_seconds >= enough_seconds or (new is None and boxes_left < _FEWEST_BOXES):
            break
        if (new is not None and new.key in relaxed) or is_over():
            break
        if new is not None:
            relaxed[new.key] = new
            boxes_left -= of_a_set
        else:
            one.boxes = min(max(_MORE_BOXES * one.boxes, _FEWEST_BOXES), boxes_left)
            boxes_left -= one.boxes
        found = lower_bound(one.kinds.priced, max_boxes=one.boxes, known_seconds=known_seconds, is_over=is_over)
        one.learn(found)
        if boxes_left < _FEWEST_BOXES:  # it is not relaxed again
            forget_derived(one.kinds.priced)
        if new is not None:
            sets.raise_by(found.prices)
            for some in relaxed.values():
                some.bound_seconds = max(some.bound_seconds, sets.bound_of(some.kinds.required))
            others = sets.most_promising(relaxed)
        if found.is_final and np.isfinite(one.bound_seconds) and not lists_all_cuts(one.kinds.priced):
            # All sets together prove no more than this. (Where all cuts are listed, an exact search may.)
            enough_seconds = min(enough_seconds, one.bound_seconds)
    return RankedSets(sets=sets, whole=whole, relaxed=relaxed, others=others)


def _boxes_of_a_set(priced: SolverProblem) -> int:
    """Return how many boxes one relaxation of a set counts as."""
    boxes = _SET_SECONDS * priced.num_tables / box_seconds(priced.num_options, priced.num_ranks)
    return max(round(boxes), _LEAST_BOXES_OF_A_SET)


def _bound_of(one: RelaxedSet) -> float:
    return one.bound_seconds


def _unrelaxed(priced: SolverProblem, others: Promising) -> RelaxedSet:
    just = set_of_just(priced, others.kinds)
    assert just is not None, "every set serves all tables"
    return RelaxedSet(kinds=just, boxes=1, bound_seconds=others.bound_seconds)
