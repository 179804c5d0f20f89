"""Changes of a state that can be undone: each notes the rows it touches before it changes them.

A proposal that is refused is undone bit by bit, so that what rounds does not add up.
"""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.smooth_cost import count_overflow, move_overflow, rank_overflow
from planner.solver.partitioners.kernels.state.sites_index import place_of, ranks_of_site
from planner.solver.partitioners.kernels.state.state import (
    WORLD,
    State,
)
from planner.solver.partitioners.local_search.search_data import Data

#: A weight so many times the sum that is left without it: that sum is what rounding left. It is marked, and stays so
#: until weights are counted again or the proposal is undone.
_LOSES = 1e9
_MOST = 500.0  # exponents are clipped: the weights of all ranks then add up to a number


@compiled
def begin(state: State) -> None:
    """Begin a proposal: note what is global, forget which ranks were noted."""
    state.counters[0].proposal += 1
    state.counters[0].num_touched = 0
    state.counters[0].world_changed = False
    state.old_sums[:] = state.sums
    state.old_world[:] = state.world_loads
    state.old_world_bytes[:] = state.world_bytes
    state.counters[0].old_overflow = state.counters[0].overflow
    state.counters[0].old_moved_bytes = state.counters[0].moved_bytes
    state.counters[0].num_movements = 0


@compiled
def note(state: State, r: int) -> None:
    """Note a rank's row before its first change in this proposal."""
    if state.stamp[r] != state.counters[0].proposal:
        state.stamp[r] = state.counters[0].proposal
        state.touched[state.counters[0].num_touched] = r
        state.counters[0].num_touched += 1
        for q in range(state.tau.shape[0]):
            state.old_loads[r, q] = state.loads[r, q]
            state.old_weights[r, q] = state.weights[r, q]
        for m in range(state.world_bytes.shape[0]):
            state.old_bytes[r, m] = state.bytes[r, m]
        state.old_over[r] = state.over[r]


@compiled
def undo(data: Data, state: State) -> None:
    """Put the rows back that this proposal changed."""
    for i in range(state.counters[0].num_touched):
        r = state.touched[i]
        for q in range(state.tau.shape[0]):
            state.loads[r, q] = state.old_loads[r, q]
            state.weights[r, q] = state.old_weights[r, q]
        for m in range(state.world_bytes.shape[0]):
            state.bytes[r, m] = state.old_bytes[r, m]
        state.over[r] = state.old_over[r]
    state.sums[:] = state.old_sums
    state.world_loads[:] = state.old_world
    state.world_bytes[:] = state.old_world_bytes
    for i in range(state.counters[0].num_movements):
        movement = state.movements[i]
        state.columns_here[movement.item, movement.place] -= movement.columns
    state.counters[0].num_movements = 0
    state.counters[0].moved_bytes = state.counters[0].old_moved_bytes
    if state.counters[0].world_changed:
        count_overflow(data, state)
    state.counters[0].overflow = state.counters[0].old_overflow


@compiled
def moved_by(data: Data, state: State, place: int, shape: int, sign: float) -> float:
    """Return how many bytes more move with a piece on a place, or without it."""
    item, columns = data.shape_item[shape], np.int64(sign) * data.shape_columns[shape]
    before, here = data.columns_before[item, place], state.columns_here[item, place]
    found = min(before, here + columns) - min(before, here)
    return sign * data.shape_moved[shape] - found * data.column_bytes[item, place]


@compiled
def carry(data: Data, state: State, scope: int, shape: int, site: int, sign: float) -> None:
    """Count the bytes that move with a piece that is placed, or taken off."""
    if data.columns_before.shape[0] == 0:
        return
    before = move_overflow(data, state)
    if scope == WORLD:
        state.counters[0].moved_bytes += sign * data.shape_moved[shape]
    else:
        place = place_of(state, scope, site)
        item, columns = data.shape_item[shape], np.int64(sign) * data.shape_columns[shape]
        state.counters[0].moved_bytes += moved_by(data, state, place, shape, sign)
        state.columns_here[item, place] += columns
        movement = state.movements[state.counters[0].num_movements]
        movement.item, movement.place, movement.columns = item, place, columns
        state.counters[0].num_movements += 1
    state.counters[0].overflow += move_overflow(data, state) - before


@compiled
def set_load(state: State, r: int, q: int, load: float) -> None:
    """Set a rank's load in a phase, and its weight; mark the sum of weights where it lost its digits."""
    state.loads[r, q] = load
    weight = np.exp(min((load - state.reference[q]) / state.tau[q], _MOST))
    before = state.weights[r, q]
    state.sums[q] += weight - before
    if before > _LOSES * state.sums[q]:
        state.sums[q] = -np.inf
    state.weights[r, q] = weight


@compiled
def change_on_rank(data: Data, state: State, r: int, off: int, on: int) -> None:
    """Take a piece off a rank's load and add another; -1 stands for none."""
    note(state, r)
    kind = data.rank_class[r]
    for q in range(state.tau.shape[0]):
        load = state.loads[r, q]
        if off >= 0:
            load -= data.shape_seconds[kind, off, q]
        if on >= 0:
            load += data.shape_seconds[kind, on, q]
        set_load(state, r, q, load)
    for m in range(state.world_bytes.shape[0]):
        more = data.shape_bytes[on, m] if on >= 0 else 0.0
        more -= data.shape_bytes[off, m] if off >= 0 else 0.0
        state.bytes[r, m] += more
    over = rank_overflow(data, state, r)
    state.counters[0].overflow += over - state.over[r]
    state.over[r] = over


@compiled
def change_on_all_ranks(data: Data, state: State, shape: int, sign: float) -> None:
    """Add a piece to the load of all ranks, or take it off."""
    carry(data, state, WORLD, shape, 0, sign)
    if data.shape_seconds.shape[0] > 1:  # ranks of unequal speed
        for r in range(state.loads.shape[0]):
            change_on_rank(data, state, r, shape if sign < 0 else -1, shape if sign > 0 else -1)
        return
    for q in range(state.tau.shape[0]):
        state.world_loads[q] += sign * data.shape_seconds[0, shape, q]
    for m in range(state.world_bytes.shape[0]):
        state.world_bytes[m] += sign * data.shape_bytes[shape, m]
    state.counters[0].world_changed = True
    count_overflow(data, state)


@compiled
def change(data: Data, state: State, scope: int, site: int, off: int, on: int) -> None:
    """Take a piece off all ranks of its site and add another, cheaper than one after the other; -1 stands for none."""
    if scope == WORLD:
        if off >= 0:
            change_on_all_ranks(data, state, off, -1.0)
        if on >= 0:
            change_on_all_ranks(data, state, on, 1.0)
        return
    if off >= 0:
        carry(data, state, scope, off, site, -1.0)
    if on >= 0:
        carry(data, state, scope, on, site, 1.0)
    local = ranks_of_site(data, scope)
    for r in range(site * local, (site + 1) * local):
        change_on_rank(data, state, r, off, on)
