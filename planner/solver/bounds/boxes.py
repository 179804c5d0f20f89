r"""Branching on the slowest rank's seconds and on choices: the bound that few tables per rank need.

The program may take half of a choice whose largest piece exceeds the room that z[q] leaves on top of what all ranks
carry, since its row (4) counts only half of the piece. No plan can: **either** every choice with a piece larger than b
in phase q is out, **or** the slowest rank takes at least the smallest of these pieces on top of what all ranks carry.
Both are boxes around this room, each has a relaxation of its own, and the smaller of their bounds is a bound. The box
with the smallest bound is split next, at the phase in which its solution breaks the rule most.

The same holds of all pieces of a rank together: **either** they have no more room than b, and rows of
:mod:`planner.solver.bounds.packing` say how many large ones fit, **or** the slowest rank takes b at least.

Where every piece that is taken has room, the program may still mix choices, for averages to come out even. Then
**either** the table does not take such a choice, **or** it takes no other: to the end, this is the program with whole
choices.

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
from planner.solver.bounds.packing import PackingRow, broken_rows, widest_crowded, with_rows
from planner.solver.bounds.relaxation import Relaxation


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Which plans are in a box; arrays of phases (Q,)."""

    low: Floats  # what some rank takes at least, on top of what all ranks carry
    high: Floats  # what every piece takes at most
    room: Floats  # what the pieces of a rank take together at most
    choices: Bools  # (C,) those that are left
    rows: tuple[PackingRow, ...] = ()  # that follow from ``room``


#: Nominal work of one box: a + c (n R)^0.6, by options and ranks; 0.4 to 1.2 times what was measured for 120 options
#: on 8 ranks to 7,200 on 96, and half of it with three and four tiers of memory.
_LEAST_SECONDS, _BOX_SECONDS, _GROWTH = 8e-3, 2e-5, 0.6
_MOST_BOXES = 600

#: Choices in all split boxes before the bound may count as stalled, and the part of itself that it gains at least
#: while the number of splits doubles.
_LEAST_LOOKS, _LEAST_DOUBLING_GAIN = 80_000, 1e-4

_PACKING_ROUNDS = 3  # of a box, at most
_LEAST_GAIN = 1e-4  # of the bound, that a split of a rank's room must bring
_TAKEN = 1e-6  # share of a choice that counts as taken
_LARGER_PART = 1e-9  # of the slowest rank's seconds, that a piece may exceed its room by


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Some of the plans, with the relaxation's answer over them."""

    bound_seconds: float
    part: Part
    choices: Bools  # (C,) those of the part that leave the others room, without a piece larger than ``high``
    relaxed: Relaxed  # over these choices

    def share(self) -> Floats:
        """Return how much of each choice is taken, of all choices, (C,)."""
        share = np.zeros(len(self.choices))
        share[self.choices] = np.minimum(self.relaxed.share, 1.0)
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How a box was split: at the seconds of a phase, or by a choice that its table takes or does not take."""

    phase: int = -1
    at_seconds: float = 0.0
    is_of_rank: bool = False  # whether the seconds are those of all pieces of a rank, else of single ones
    choice: int = -1  # of all choices of the model; -1 where seconds are split


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A box of the tree that a bound stands on."""

    prices: Prices | None  # of its relaxation, those of rows last of bytes; None where it is proven to have no plan
    rows: tuple[PackingRow, ...] = ()  # of its relaxation
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
    root_seconds: float = 0.0  # the bound before anything was split
    is_final: bool = True  # whether more boxes would prove no more


def affordable_boxes(seconds: float, num_options: int, num_ranks: int) -> int:
    """Return how many boxes may be looked at: by size and work, not by the clock, so that bounds repeat."""
    return int(np.clip(seconds / box_seconds(num_options, num_ranks), 1, _MOST_BOXES))


def box_seconds(num_options: int, num_ranks: int) -> float:
    """Return the nominal work of one box."""
    return float(_LEAST_SECONDS + _BOX_SECONDS * float(num_options * num_ranks) ** _GROWTH)


def never() -> bool:
    """Return that no time is over."""
    return False


def branch(
    model: Relaxation,
    *,
    max_boxes: int,
    known_seconds: float = np.inf,
    start: Prices | None = None,
    choices: Bools | None = None,
    is_over: Callable[[], bool] = never,
) -> Branched:
    """Split boxes until the bound stands on whole choices that keep the rule, or ``max_boxes`` were looked at.

    In large models splits also end if twice as many hardly raised the bound. Plans take some of the ``choices`` alone,
    shape (C,), where these are given. ``is_over`` is asked before each split, and ends them.
    """
    phases = model.weight.shape[0]
    choices = np.ones(len(model.choice_table), dtype=np.bool_) if choices is None else choices
    prices = average_prices(model) if start is None else start
    nothing, endless = np.zeros(phases), np.full(phases, np.inf)
    whole = Part(low=nothing, high=endless, room=endless, choices=choices)
    root, whole = _box(model, whole, prices, 0.0)
    if root is None:
        no_better = known_seconds if np.isfinite(known_seconds) else 0.0
        return Branched(bound_seconds=no_better, box=None, nodes=(_node(whole, None),))
    nodes = [_node(whole, root)]
    heap = [(root.bound_seconds, 0, root)]
    last = root
    splits, next_look, bound_at_look = 0, -(-_LEAST_LOOKS // len(choices)), 0.0
    while heap:
        bound, number, box = heap[0]
        is_stalled = False
        if splits == next_look:
            is_stalled = bound < bound_at_look * (1 + _LEAST_DOUBLING_GAIN)
            next_look, bound_at_look = 2 * splits, bound
        found = _halves(model, box)
        if found is None or is_stalled or len(nodes) >= max_boxes or is_over():
            reported = box if box.relaxed.is_solved else last
            return Branched(
                bound_seconds=bound,
                box=reported,
                nodes=tuple(nodes),
                root_seconds=root.bound_seconds,
                is_final=found is None,
            )
        heapq.heappop(heap)
        last = box
        splits += 1
        split, halves = found
        nodes[number] = replace(nodes[number], split=split, children=(len(nodes), len(nodes) + 1))
        for half in halves:
            child, part = _box(model, half, box.relaxed.prices, bound)
            nodes.append(_node(part, child))
            if child is not None and child.bound_seconds < known_seconds:
                heapq.heappush(heap, (child.bound_seconds, len(nodes) - 1, child))
    return Branched(bound_seconds=known_seconds, box=None, nodes=tuple(nodes), root_seconds=root.bound_seconds)


def _node(part: Part, box: Box | None) -> Node:
    return Node(prices=None, rows=part.rows) if box is None else Node(prices=box.relaxed.prices, rows=box.part.rows)


def _box(model: Relaxation, part: Part, prices: Prices, parent_seconds: float) -> tuple[Box | None, Part]:
    """Solve the relaxation inside a box, and add rows; there is no box where it is proven to have no plan."""
    choices = choices_with_room(model, part.choices & np.all(model.big <= part.high, axis=1))
    if choices is None:
        return None, part
    box: Box | None = None
    for _ in range(_PACKING_ROUNDS):
        packed = with_rows(model, part.rows)
        inside = replace(
            packed,
            choice_table=packed.choice_table[choices],
            total=packed.total[choices],
            big=packed.big[choices],
            world=packed.world[choices],
            total_bytes=packed.total_bytes[choices],
            family=packed.family[choices],
            pieces=packed.pieces[choices],
        )
        more = np.zeros(len(packed.cluster_bytes) - len(prices.memory))
        prices = replace(prices, memory=np.append(prices.memory, more))
        relaxed = solve_relaxation(inside, prices, part.low)
        if relaxed is None:
            return None, part
        bound = max(relaxed.value_seconds, parent_seconds)
        box = Box(bound_seconds=bound, part=part, choices=choices, relaxed=relaxed)
        rows = broken_rows(model, box.share(), part.room, part.rows) if relaxed.is_solved else []
        if not rows:
            break
        prices, parent_seconds = relaxed.prices, bound
        part = replace(part, rows=(*part.rows, *rows))
    return box, part


def _halves(model: Relaxation, box: Box) -> tuple[Split, list[Part]] | None:
    """Return the parts that a box is split into; ``None`` where whole choices keep the rules.

    Nor is a box split whose relaxation the solver gave up on: the bound stands on it.
    """
    if not box.relaxed.is_solved:
        return None
    share = box.share()
    seconds = [found for found in (_halves_of_pieces(model, box, share), _halves_of_room(model, box, share)) if found]
    if seconds:
        return max(seconds, key=lambda found: found[0])[1]
    return _halves_of_choices(model, box, share)


def _halves_of_pieces(model: Relaxation, box: Box, share: Floats) -> tuple[float, tuple[Split, list[Part]]] | None:
    """Split the seconds of the phase in which pieces are taken that exceed their room most.

    With it comes what the objective gains in the upper part, seconds.
    """
    room = box.relaxed.room + _LARGER_PART * box.relaxed.slowest
    broken = (model.big > room) & (share > _TAKEN)[:, None] & (model.weight > 0)
    excess = np.sum(np.where(broken, (model.big - room) * share[:, None], 0.0), axis=0)
    phase = int(np.argmax(excess))
    if excess[phase] <= 0:
        return None
    at, of_phase = float(room[phase]), model.big[box.choices, phase]
    above = float(np.min(of_phase[of_phase > at]))
    below = replace(box.part, high=_with(box.part.high, phase, at))
    upper = replace(box.part, low=_with(box.part.low, phase, max(above, float(box.part.low[phase]))))
    return float(model.weight[phase]) * (above - at), (Split(phase=phase, at_seconds=at), [below, upper])


def _halves_of_room(model: Relaxation, box: Box, share: Floats) -> tuple[float, tuple[Split, list[Part]]] | None:
    """Split the seconds of the pieces of a rank at the widest room in which the solution has too many large ones."""
    if model.of_pieces is None:
        return None
    part = box.part
    found = widest_crowded(model, share, box.relaxed.room, part.room)
    if found is None or found.gain_seconds <= _LEAST_GAIN * box.bound_seconds:
        return None
    phase, at = found.phase, found.room_seconds
    below = replace(part, room=_with(part.room, phase, at), high=_with(part.high, phase, min(at, part.high[phase])))
    upper = replace(part, low=_with(part.low, phase, max(at, float(part.low[phase]))))
    below = replace(below, rows=(*part.rows, *broken_rows(model, share, below.room, part.rows)))
    return found.gain_seconds, (Split(phase=phase, at_seconds=at, is_of_rank=True), [below, upper])


def _with(values: Floats, phase: int, seconds: float) -> Floats:
    changed = values.copy()
    changed[phase] = seconds
    return changed


def _halves_of_choices(model: Relaxation, box: Box, share: Floats) -> tuple[Split, list[Part]] | None:
    """Split the choices of the table that mixes them and costs most."""
    mixed = (share > _TAKEN) & (share < 1 - _TAKEN)
    if not np.any(mixed):
        return None
    costs = np.where(mixed, model.total @ model.weight, 0.0) * np.minimum(share, 1 - share)
    choice = int(np.argmax(costs))
    without, alone = box.choices.copy(), box.choices.copy()
    without[choice] = False
    alone &= model.choice_table != model.choice_table[choice]
    alone[choice] = True
    return Split(choice=choice), [replace(box.part, choices=without), replace(box.part, choices=alone)]
