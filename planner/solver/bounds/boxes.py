r"""Branching on the slowest rank's seconds and on choices: the bound that few tables per rank need.

The program may take half of a choice whose largest piece is larger than z[q], since its row (4) counts
only half of the piece. No plan can: **either** every choice with a piece larger than b in phase q is out,
**or** the slowest rank takes at least as long as the smallest of these pieces. Both are boxes around z, each
has a relaxation of its own, and the smaller of their bounds is a bound. The box with the smallest
bound is split next, at the phase in which its solution breaks the rule most.

Where every piece that is taken is as large as z at most, the program may still mix choices, for one to lie half on top
of what all ranks carry, or for averages to come out even. Then **either** the table does not take such a choice,
**or** it takes no other: to the end, this is the program with whole choices.

Boxes whose bound exceeds a plan that is known are dropped: no better plan is in them.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats
from planner.solver.bounds.crowding import choices_with_room
from planner.solver.bounds.dual import Prices, average_prices
from planner.solver.bounds.master import Relaxed, solve_relaxation
from planner.solver.bounds.relaxation import Relaxation

Half = tuple[Floats, Floats, Bools]

#: Nominal work of one box: c (n R)^0.6, by options and ranks; 1.3 to 2.9 times what was measured for 400 to
#: 270,000 options on 32 to 2,048 ranks.
_BOX_SECONDS, _GROWTH = 2e-5, 0.6
_MOST_BOXES = 200

_TAKEN = 1e-6  # share of a choice that counts as taken
_LARGER = 1 + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A range of the slowest rank's seconds and some of the choices, with the relaxation's answer inside it."""

    bound_seconds: float
    low: Floats  # (Q,)
    high: Floats  # (Q,)
    choices: Bools  # (C,) those that are left, without a piece larger than ``high``
    relaxed: Relaxed  # over these choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a box was split: at the seconds of a phase, or by a choice that its table takes or does not take."""

    phase: int = -1
    at_seconds: float = 0.0
    choice: int = -1  # of all choices of the model; -1 where seconds are split


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A box of the tree that a bound stands on."""

    prices: Prices | None  # of its relaxation; None where it is proven to have no plan
    split: Split | None = None
    children: tuple[int, int] | None = (
        None  # numbers of the nodes that it was split into: below and above, without and with
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Branched:
    """The bound over all boxes, and the box that it stands on."""

    bound_seconds: float
    #: the box that it stands on; None where every box was dropped: the known plan is optimal. Where the solver gave
    #: up on that box, the last one that was split instead.
    box: Box | None
    nodes: tuple[Node, ...]  # the first one is the root


def affordable_boxes(seconds: float, num_options: int, num_ranks: int) -> int:
    """Return how many boxes may be looked at: by size and work, not by the clock, so that bounds repeat."""
    box_seconds = _BOX_SECONDS * float(num_options * num_ranks) ** _GROWTH
    return int(np.clip(seconds / box_seconds, 1, _MOST_BOXES))


def never() -> bool:
    """Return that no time is over."""
    return False


def branch(
    model: Relaxation,
    *,
    max_boxes: int,
    known_seconds: float = np.inf,
    start: Prices | None = None,
    is_over: Callable[[], bool] = never,
) -> Branched:
    """Split boxes until the bound stands on whole choices that keep the rule, or ``max_boxes`` were looked at.

    ``is_over`` is asked before each split, and ends them.
    """
    phases, choices = model.weight.shape[0], np.ones(len(model.choice_table), dtype=np.bool_)
    prices = average_prices(model) if start is None else start
    root = _box(model, np.zeros(phases), np.full(phases, np.inf), choices, prices, 0.0)
    if root is None:
        return Branched(bound_seconds=0.0, box=None, nodes=(Node(prices=None),))
    nodes = [Node(prices=root.relaxed.prices)]
    heap = [(root.bound_seconds, 0, root)]
    last = root
    while heap:
        bound, number, box = heap[0]
        found = _halves(model, box)
        if found is None or len(nodes) >= max_boxes or is_over():
            reported = box if box.relaxed.is_solved else last
            return Branched(bound_seconds=bound, box=reported, nodes=tuple(nodes))
        heapq.heappop(heap)
        last = box
        split, halves = found
        nodes[number] = replace(nodes[number], split=split, children=(len(nodes), len(nodes) + 1))
        for low, high, left in halves:
            child = _box(model, low, high, left, box.relaxed.prices, bound)
            nodes.append(Node(prices=None if child is None else child.relaxed.prices))
            if child is not None and child.bound_seconds < known_seconds:
                heapq.heappush(heap, (child.bound_seconds, len(nodes) - 1, child))
    return Branched(bound_seconds=known_seconds, box=None, nodes=tuple(nodes))


def _box(
    model: Relaxation, low: Floats, high: Floats, left: Bools, prices: Prices, parent_seconds: float
) -> Box | None:
    """Solve the relaxation inside a box; ``None`` where it is proven to have no plan."""
    choices = choices_with_room(model, left & np.all(model.big <= high, axis=1))
    if choices is None:
        return None
    inside = replace(
        model,
        choice_table=model.choice_table[choices],
        total=model.total[choices],
        big=model.big[choices],
        world=model.world[choices],
        total_bytes=model.total_bytes[choices],
        family=model.family[choices],
        pieces=model.pieces[choices],
    )
    relaxed = solve_relaxation(inside, prices, low)
    if relaxed is None:
        return None
    bound = max(relaxed.value_seconds, parent_seconds)
    return Box(bound_seconds=bound, low=low, high=high, choices=choices, relaxed=relaxed)


def _halves(model: Relaxation, box: Box) -> tuple[Split, list[Half]] | None:
    """Return low, high and choices of the boxes that a box is split into; ``None`` where whole choices keep the rule.

    Nor is a box split whose relaxation the solver gave up on: the bound stands on it.
    """
    if not box.relaxed.is_solved:
        return None
    return _halves_of_seconds(model, box) or _halves_of_choices(model, box)


def _halves_of_seconds(model: Relaxation, box: Box) -> tuple[Split, list[Half]] | None:
    """Split the seconds of the phase in which pieces are taken that exceed z most."""
    slowest, share = box.relaxed.slowest, np.minimum(box.relaxed.share, 1.0)
    big = model.big[box.choices]
    broken = (big > slowest * _LARGER) & (share > _TAKEN)[:, None] & (model.weight > 0)
    excess = np.sum(np.where(broken, (big - slowest) * share[:, None], 0.0), axis=0)
    phase = int(np.argmax(excess))
    if excess[phase] <= 0:
        return None
    at = float(slowest[phase] * _LARGER)
    above = float(np.min(big[:, phase][big[:, phase] > at]))
    below_high, above_low = box.high.copy(), box.low.copy()
    below_high[phase] = at
    above_low[phase] = max(above, box.low[phase])
    halves = [(box.low, below_high, box.choices), (above_low, box.high, box.choices)]
    return Split(phase=phase, at_seconds=at), halves


def _halves_of_choices(model: Relaxation, box: Box) -> tuple[Split, list[Half]] | None:
    """Split the choices of a table that mixes them: whose piece exceeds z most on top of what all ranks carry.

    Where none does, the table that costs most.
    """
    slowest, share = box.relaxed.slowest, np.minimum(box.relaxed.share, 1.0)
    mixed = (share > _TAKEN) & (share < 1 - _TAKEN)
    if not np.any(mixed):
        return None
    on_all_ranks = share @ model.world[box.choices]
    over = np.where(model.weight > 0, model.big[box.choices] + on_all_ranks - slowest * _LARGER, 0.0)
    excess = np.where(mixed, np.max(over, axis=1), 0.0) * share
    costs = np.where(mixed, model.total[box.choices] @ model.weight, 0.0) * np.minimum(share, 1 - share)
    choice = int(np.flatnonzero(box.choices)[np.argmax(excess if np.max(excess) > 0 else costs)])
    without, alone = box.choices.copy(), box.choices.copy()
    without[choice] = False
    alone &= model.choice_table != model.choice_table[choice]
    alone[choice] = True
    return Split(choice=choice), [(box.low, box.high, without), (box.low, box.high, alone)]
