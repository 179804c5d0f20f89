"""Moves that leave every table's cut as it is: a piece to another site, two pieces exchanged."""

from planner.partitioners.compiled import compiled
from planner.partitioners.search.growth import keeps, tangent
from planner.partitioners.search.picks import pick_rank, pick_slot
from planner.partitioners.search.pieces import delist, enlist
from planner.partitioners.search.randomness import random_below
from planner.partitioners.search.shifts import begin, exchange, shift, undo
from planner.partitioners.search.sites import may_move
from planner.partitioners.search.state import OVER, RANK, State
from planner.partitioners.view import Data

_PAIRS = 12  # of pieces that a swap of two ranks looks at


@compiled
def move_piece(data: Data, state: State, before: float, bar: float) -> bool:
    """Move one piece from its rank to another."""
    slot = pick_slot(data, state)
    if slot < 0:
        return False
    source = state.slot_site[slot]
    target = pick_rank(data, state, False) if random_below(state, 2) else random_below(state, state.loads.shape[0])
    if data.family_same_host[state.family[data.slot_item[slot]]] and state.num_pieces[data.slot_item[slot]] > 1:
        local = state.loads.shape[0] // data.host_allowed.shape[1]
        target = source // local * local + random_below(state, local)
    if target == source or not may_move(data, state, slot, target):
        return False
    shape = state.slot_shape[slot]
    if (
        state.number[OVER] == 0
        and tangent(data, state, source, shape, -1) + tangent(data, state, target, -1, shape) > bar
    ):
        return False
    begin(state)
    shift(data, state, RANK, shape, source, -1.0)
    shift(data, state, RANK, shape, target, 1.0)
    if keeps(data, state, before, bar):
        delist(state, slot, RANK, source)
        enlist(state, slot, RANK, target)
        state.slot_site[slot] = target
        return True
    undo(data, state)
    return False


@compiled
def swap_pieces(data: Data, state: State, before: float, bar: float) -> bool:
    """Exchange the ranks of two pieces: a few pairs of two ranks are looked at."""
    here = pick_rank(data, state, True) if random_below(state, 2) else random_below(state, state.loads.shape[0])
    there = random_below(state, state.loads.shape[0])
    if here == there or state.site_count[here] == 0 or state.site_count[there] == 0:
        return False
    for _ in range(_PAIRS):
        one = state.site_slots[here, random_below(state, state.site_count[here])]
        other = state.site_slots[there, random_below(state, state.site_count[there])]
        out, into = state.slot_shape[one], state.slot_shape[other]
        if (
            state.number[OVER] == 0
            and tangent(data, state, here, out, into) + tangent(data, state, there, into, out) > bar
        ):
            continue
        if data.slot_item[one] == data.slot_item[other]:
            continue
        if not may_move(data, state, one, there) or not may_move(data, state, other, here):
            continue
        begin(state)
        exchange(data, state, here, out, into)
        exchange(data, state, there, into, out)
        if keeps(data, state, before, bar):
            delist(state, one, RANK, here)
            delist(state, other, RANK, there)
            enlist(state, one, RANK, there)
            enlist(state, other, RANK, here)
            state.slot_site[one], state.slot_site[other] = there, here
            return True
        undo(data, state)
        return False
    return False
