"""Drive a piece off a pressed rank, and spread what that adds elsewhere over many ranks.

A rank may be the slowest by a piece that is smaller than any other, while all ranks besides are even: no rank has room
for it, and no exchange of two or three ranks makes any. Ten ranks have, each by a little: the rank that
takes the piece hands the excess on, in exchanges of pieces that differ by less and less (an ejection chain).
"""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.exchange_delta import gained
from planner.solver.partitioners.kernels.cost.site_choice import has_room, has_room_for_swap, may_move
from planner.solver.partitioners.kernels.cost.smooth_cost import keeps, sum_of_weights, sum_weights
from planner.solver.partitioners.kernels.moves.sampling import pick_rank, slot_on
from planner.solver.partitioners.kernels.state.pieces import relist
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.state import MOST_SWAPS, RANK, State
from planner.solver.partitioners.kernels.state.undo_log import begin, change, undo
from planner.solver.partitioners.local_search.search_data import Data

_ATTEMPTS = 40  # pairs of ranks that are looked at
_PAIRS = 12  # of their pieces
_MOST = 300.0  # exponents are clipped


@compiled
def slowest_touched(data: Data, state: State) -> int:
    """Return the rank of this proposal whose weights cost most."""
    slowest, most = -1, -1.0
    for i in range(state.counters[0].num_touched):
        rank, total = state.touched[i], 0.0
        for q in range(state.tau.shape[0]):
            total += state.weight_price[q] * state.weights[rank, q]
        if total > most:
            slowest, most = rank, total
    return slowest


@compiled
def swap_growth(data: Data, state: State, here: int, there: int, out: int, into: int, most: float) -> float:
    """Return what the weights of two ranks cost more once a shape is exchanged for another, or for none (-1).

    Ranks are alike. Where slopes alone, which are never too high, say more than ``most``, they are the answer. Prices
    are those of the chain so far (``State.weight_price``), where ``least_growth`` has those of the last plan that was
    kept.
    """
    kind, slope, total = data.rank_class[here], 0.0, 0.0
    for q in range(state.tau.shape[0]):
        step = gained(data, kind, into, out, q)
        slope += state.weight_price[q] * (state.weights[there, q] - state.weights[here, q]) * step / state.tau[q]
    if slope >= most:
        return slope
    for q in range(state.tau.shape[0]):
        step = min(max(gained(data, kind, into, out, q) / state.tau[q], -_MOST), _MOST)
        grown = state.weights[here, q] * np.expm1(-step) + state.weights[there, q] * np.expm1(step)
        total += state.weight_price[q] * grown
    return total


@compiled
def best_swap(data: Data, state: State, here: int, there: int, fixed_item: int) -> tuple[int, int]:
    """Return the slots of the best of a few exchanges of two ranks: what leaves the first, and what comes, or -1.

    Nothing leaves (-1) where no exchange is cheaper; the piece in the slot ``fixed_item`` does not.
    """
    best_out, best_into, least = -1, -1, 0.0
    for _ in range(_PAIRS):
        out = slot_on(state, RANK, here)
        pick = random_below(state, state.site_count[there] + 1)
        into = state.site_slots[there, pick - 1] if pick > 0 else -1
        if out < 0 or out == fixed_item or (into >= 0 and data.slot_item[out] == data.slot_item[into]):
            continue
        shape, back = state.slot_shape[out], state.slot_shape[into] if into >= 0 else -1
        growth = swap_growth(data, state, here, there, shape, back, least)
        if growth >= least or not may_move(data, state, out, there):
            continue
        if into >= 0 and not may_move(data, state, into, here):
            continue
        if not has_room_for_swap(data, state, here, shape, back):
            continue
        if not has_room_for_swap(data, state, there, back, shape):
            continue
        best_out, best_into, least = out, into, growth
    return best_out, best_into


@compiled
def forward_excess(data: Data, state: State, ejected: int, origin: int, before: float, bar: float) -> bool:
    """Exchange pieces of the slowest ranks of a proposal with others until it adds at most the bar to the cost.

    The slot that was driven off a rank does not go straight back. ``False`` where it does not come to that; slots are
    then on the lists where they were, and the caller undoes the rest.
    """
    slots, sources = np.empty(2 * MOST_SWAPS, dtype=np.int64), np.empty(2 * MOST_SWAPS, dtype=np.int64)
    count = 0
    for _ in range(_ATTEMPTS):
        for q in range(state.tau.shape[0]):
            state.weight_price[q] = data.weight[q] * state.tau[q] / sum_of_weights(state, q)
        here, there = slowest_touched(data, state), random_below(state, state.loads.shape[0])
        if here == there or data.rank_class[here] != data.rank_class[there]:
            continue
        out, into = best_swap(data, state, here, there, ejected if there == origin else -1)
        if out < 0:
            continue
        shape, back = state.slot_shape[out], state.slot_shape[into] if into >= 0 else -1
        change(data, state, RANK, here, shape, back)
        change(data, state, RANK, there, back, shape)
        sum_weights(state)
        relist(state, out, RANK, here, there)
        slots[count], sources[count] = out, here
        count += 1
        if into >= 0:
            relist(state, into, RANK, there, here)
            slots[count], sources[count] = into, there
            count += 1
        if keeps(data, state, before, bar):
            return True
        if count + 2 > slots.shape[0]:
            break
    for i in range(count - 1, -1, -1):
        relist(state, slots[i], RANK, state.slot_site[slots[i]], sources[i])
    return False


@compiled
def start_ejection_chain(data: Data, state: State, before: float, bar: float) -> bool:
    """Move a piece off a pressed rank to any other with room for it, which hands on what it has too much of then."""
    here, there = pick_rank(data, state, True), random_below(state, state.loads.shape[0])
    slot = slot_on(state, RANK, here)
    if slot < 0 or here == there or not may_move(data, state, slot, there):
        return False
    shape = state.slot_shape[slot]
    if not has_room(data, state, there, shape):
        return False
    begin(state)
    change(data, state, RANK, here, shape, -1)
    change(data, state, RANK, there, -1, shape)
    sum_weights(state)
    relist(state, slot, RANK, here, there)
    if keeps(data, state, before, bar) or forward_excess(data, state, slot, here, before, bar):
        return True
    relist(state, slot, RANK, there, here)
    undo(data, state)
    return False
