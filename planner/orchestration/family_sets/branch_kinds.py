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
from planner.solver.problem import SolverProblem

_PART_OF_BOXES = 0.3  # that bounds spend on sets of a tree
_BOXES_OF_A_SET = 2  # that a set costs with what is left out of it
_FEWEST_BOXES = 4  # that are worth the relaxation of a set
_MORE_BOXES = 4  # times as many, each time that a set has the least bound
_BELOW_KNOWN = 1 - 1e-8  # of a known plan: a bound up to it is no better than that plan


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
    """All sets of kinds, and those that were looked at, by their numbers."""

    sets: PricedSets
    whole: KindSet  # of all plans
    found: dict[int, KindSet]
    boxes: dict[int, int]  # that the bounds of these stand on, at most


def rank_sets(
    priced: SolverProblem, *, max_boxes: int, known_seconds: float, deadline: Deadline | None = None
) -> RankedSets | None:
    """Look at the set with the least seconds: its relaxation first, whose prices raise all others, and then its boxes.

    ``None`` where a table has no family.
    """
    whole = whole_set(priced)
    if whole is None:
        return None
    whole.bound = lower_bound(whole.priced, known_seconds=known_seconds)
    sets = PricedSets(priced)
    sets.raise_by(whole.bound.prices)
    found: dict[int, KindSet] = {}
    boxes: dict[int, int] = {}
    left, known = max_boxes - _BOXES_OF_A_SET, known_seconds * _BELOW_KNOWN
    while left >= _FEWEST_BOXES and not (deadline is not None and deadline.is_over()):
        number = int(np.argmin(sets.least_seconds))
        if sets.least_seconds[number] >= known:
            break
        if number in found:
            one, boxes[number] = found[number], min(max(_MORE_BOXES * boxes[number], _FEWEST_BOXES), left)
            left -= boxes[number]
            is_over = never if deadline is None else deadline.is_over
            bound = lower_bound(one.priced, max_boxes=boxes[number], known_seconds=known_seconds, is_over=is_over)
        else:
            left -= _BOXES_OF_A_SET
            some = set_of_just(priced, sets.kinds[number])
            if some is None:
                sets.least_seconds[number] = np.inf
                continue
            one, found[number], boxes[number] = some, some, 1
            bound = lower_bound(one.priced, known_seconds=known_seconds)
            sets.raise_by(bound.prices)
        sets.least_seconds[number] = max(sets.least_seconds[number], bound.seconds)
        one.bound = bound
        if bound.is_final:
            known = min(known, float(sets.least_seconds[number]))  # all sets together prove no more than this
    return RankedSets(sets=sets, whole=whole, found=found, boxes=boxes)


def _branch_all(priced: SolverProblem, max_boxes: int, known_seconds: float, deadline: Deadline) -> list[KindSet]:
    """Return the sets of kinds that were looked at, and one of all other plans."""
    ranked = rank_sets(priced, max_boxes=max_boxes, known_seconds=known_seconds, deadline=deadline)
    if ranked is None:
        return []
    sets, rest, found = ranked.sets, ranked.whole, ranked.found
    least = np.maximum(sets.least_seconds, rest.bound.seconds)
    for number, one in found.items():
        relaxed = rest.bound.relaxed_seconds
        one.bound = replace(one.bound, seconds=float(least[number]), relaxed_seconds=relaxed)
    others = np.isfinite(least) & ~np.isin(np.arange(len(least)), list(found))
    if not np.any(others):
        return list(found.values())
    best = int(np.argmin(np.where(others, least, np.inf)))
    rest.bound = replace(rest.bound, seconds=float(least[best]))
    rest.promising = sets.kinds[best]
    rest.elsewhere = frozenset(sets.kinds[number].tobytes() for number in found)
    return [rest, *found.values()]


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
