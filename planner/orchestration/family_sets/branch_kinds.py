"""Sets of kinds that hold every plan, each with a bound: all sets of few kinds, a tree of sets of many."""

import heapq
from dataclasses import dataclass, replace

import numpy as np

from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.family_sets.kind_sets import (
    MOST_SETS,
    KindSet,
    kind_tree,
    set_of_just,
    whole_set,
    without_replaced_kinds,
)
from planner.orchestration.family_sets.priced_sets import MOST_KINDS, PricedSets
from planner.solver.bounds.boxes import never
from planner.solver.bounds.chain import lower_bound
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.problem import SolverProblem

_PART_OF_BOXES = 0.3  # part of all boxes that goes to splitting a tree
_BOXES_OF_A_SET = 2  # boxes that one relaxation of a set counts as
_FEWEST_BOXES = 4  # fewest that a set is given
_FEWEST_SETS = 4  # sets that are relaxed before few boxes end this: no plan may use the kinds that seemed best
_MORE_BOXES = 4  # factor of boxes each time that a set has the least bound
_BELOW_KNOWN = 1 - 1e-8  # factor of a known plan: a bound above the product leaves no better plan


def branch_kinds(
    priced: SolverProblem, *, max_boxes: int, known_seconds: float, deadline: Deadline | None = None
) -> list[KindSet]:
    """Return sets that hold every plan of a problem in one of them, each with its bound.

    ``relaxed_seconds`` of each bound is that of all plans. Bounds are raised until the least one is final or no set may
    hold a plan better than a known one.
    """
    branched = _branch_all if priced.num_kinds <= MOST_KINDS else _branch_tree
    return branched(priced, max_boxes, known_seconds, deadline or Deadline())


def bound_of_kinds(
    priced: SolverProblem, *, max_boxes: int, known_seconds: float, deadline: Deadline | None = None
) -> float:
    """Return a bound on all plans of a problem, whatever kinds they use."""
    usable = without_replaced_kinds(priced)
    leaves = branch_kinds(usable, max_boxes=max_boxes, known_seconds=known_seconds, deadline=deadline)
    return min((one.bound.seconds for one in leaves), default=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedSets:
    """All sets of kinds, and those that were relaxed, by their numbers."""

    sets: PricedSets
    whole: KindSet  # of all plans
    relaxed: dict[int, KindSet]
    boxes: dict[int, int]  # most boxes of the bound of each relaxed set


def rank_sets(
    priced: SolverProblem, *, max_boxes: int, known_seconds: float, deadline: Deadline | None = None
) -> RankedSets | None:
    """Relax the set with the least bound again and again, until its bound is final or no better than a known plan.

    The first time its prices raise the bounds of all sets, later it gets more boxes. ``None`` where a table has no
    family.
    """
    whole = whole_set(priced)
    if whole is None:
        return None
    whole.bound = lower_bound(whole.priced, known_seconds=known_seconds)
    sets = PricedSets(priced)
    sets.raise_by(whole.bound.prices)
    relaxed: dict[int, KindSet] = {}
    boxes: dict[int, int] = {}
    is_done = np.zeros(len(sets.kinds), dtype=np.bool_)
    boxes_left, enough_seconds = max_boxes - _BOXES_OF_A_SET, known_seconds * _BELOW_KNOWN
    while boxes_left >= _FEWEST_BOXES or len(relaxed) < _FEWEST_SETS:
        number = int(np.argmin(np.where(is_done, np.inf, sets.bound_seconds)))
        if is_done[number] or sets.bound_seconds[number] >= enough_seconds:
            break
        if (number in relaxed and boxes_left < _FEWEST_BOXES) or (deadline is not None and deadline.is_over()):
            break
        if number in relaxed:
            boxes[number] = min(max(_MORE_BOXES * boxes[number], _FEWEST_BOXES), boxes_left)
            boxes_left -= boxes[number]
        else:
            just = set_of_just(priced, sets.kinds[number])
            assert just is not None, "every listed set serves all tables"
            relaxed[number], boxes[number] = just, 1
            boxes_left -= _BOXES_OF_A_SET
        bound = lower_bound(
            relaxed[number].priced,
            max_boxes=boxes[number],
            known_seconds=known_seconds,
            is_over=never if deadline is None else deadline.is_over,
        )
        if boxes[number] == 1:
            sets.raise_by(bound.prices)
        relaxed[number].bound = bound
        if all(prices is None for prices in bound.prices):  # it has no plan
            sets.bound_seconds[number] = np.inf
            continue
        sets.bound_seconds[number] = max(sets.bound_seconds[number], bound.seconds)
        is_done[number] = bound.is_final
        if bound.is_final and not lists_all_cuts(relaxed[number].priced):
            # All sets together prove no more than this. (Where all cuts are listed, an exact search may.)
            enough_seconds = min(enough_seconds, float(sets.bound_seconds[number]))
    return RankedSets(sets=sets, whole=whole, relaxed=relaxed, boxes=boxes)


def _branch_all(priced: SolverProblem, max_boxes: int, known_seconds: float, deadline: Deadline) -> list[KindSet]:
    """Return the sets of kinds that were relaxed, and one of all other plans."""
    ranked = rank_sets(priced, max_boxes=max_boxes, known_seconds=known_seconds, deadline=deadline)
    if ranked is None:
        return []
    sets, rest = ranked.sets, ranked.whole
    bound_seconds = np.maximum(sets.bound_seconds, rest.bound.seconds)
    no_better_seconds = known_seconds if np.isfinite(known_seconds) else rest.bound.seconds  # of sets without a plan
    bound_seconds[np.isinf(bound_seconds)] = no_better_seconds
    for number, one in ranked.relaxed.items():
        relaxed_seconds = rest.bound.relaxed_seconds
        one.bound = replace(one.bound, seconds=float(bound_seconds[number]), relaxed_seconds=relaxed_seconds)
    others = ~np.isin(np.arange(len(bound_seconds)), list(ranked.relaxed))
    if not np.any(others):
        return list(ranked.relaxed.values())
    best = int(np.argmin(np.where(others, bound_seconds, np.inf)))
    rest.bound = replace(rest.bound, seconds=float(bound_seconds[best]))
    rest.promising = sets.kinds[best]
    rest.elsewhere = frozenset(sets.kinds[number].tobytes() for number in ranked.relaxed)
    return [rest, *ranked.relaxed.values()]


def _branch_tree(priced: SolverProblem, max_boxes: int, known_seconds: float, deadline: Deadline) -> list[KindSet]:
    """Return the leaves of a tree of sets.

    Part of the boxes of bounds is spent on sets, the others on the set with the least bound, more of them each time.
    """
    most = int(np.clip(_PART_OF_BOXES * max_boxes, 1, MOST_SETS))
    nodes = kind_tree(priced, max_sets=most, known_seconds=known_seconds, deadline=deadline)
    leaves = [node.kinds for node in nodes if node.children is None]
    relaxed = nodes[0].kinds.bound.relaxed_seconds if nodes else 0.0
    for one in leaves:
        one.bound = replace(one.bound, relaxed_seconds=relaxed)
    left = max_boxes - _BOXES_OF_A_SET * len(nodes)
    heap = [(one.bound.seconds, number, _FEWEST_BOXES) for number, one in enumerate(leaves)]
    heapq.heapify(heap)
    known = known_seconds * _BELOW_KNOWN
    while heap and heap[0][0] < known and left >= _FEWEST_BOXES and not deadline.is_over():
        bound, number, wanted = heapq.heappop(heap)
        boxes, one = min(wanted, left), leaves[number]
        left -= boxes
        found = lower_bound(one.priced, max_boxes=boxes, known_seconds=known_seconds, is_over=deadline.is_over)
        one.bound = replace(found, seconds=max(found.seconds, bound), relaxed_seconds=relaxed)
        if found.is_final:
            known = min(known, one.bound.seconds)  # all sets together prove no more than this
        else:
            heapq.heappush(heap, (one.bound.seconds, number, wanted * _MORE_BOXES))
    return leaves
