"""Changes of a state that can be undone: each notes the rows it touches before it changes them.

A proposal that is refused is undone bit by bit, so that what rounds does not add up.
"""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.smooth_cost import count_overflow, move_overflow, rank_overflow
from planner.solver.partitioners.kernels.state.sites_index import place_of, ranks_of_site
from planner.solver.partitioners.kernels.state.state import (
    HOST,
    RANK,
    WORLD,
    State,
)
from planner.solver.partitioners.local_search.search_data import Data

#: A weight so many times the sum that is left without it: that sum is what rounding left. It is marked, and stays so
#: until weights are counted anew or the proposal is undone.
_LOSES = 1e9
_MOST = 500.0  # exponents are clipped: e^500 is far worse than anything a search keeps


@compiled
def begin(state: State) -> None:
    """Begin a proposal: note what is global, forget which ranks were noted."""
    state.counters[0].proposal += 1.0
    state.counters[0].num_touched = 0.0
    state.counters[0].world_changed = 0.0
    state.old_sums[:] = state.sums
    state.old_world[:] = state.world_loads
    state.old_world_bytes[:] = state.world_bytes
    state.old_counters[0].overflow = state.counters[0].overflow
    state.old_counters[0].moved_bytes = state.counters[0].moved_bytes
    state.counters[0].num_movements = 0.0


@compiled
def note(state: State, r: int) -> None:
    """Note a rank's row before its first change in this proposal."""
    if state.stamp[r] != np.int64(state.counters[0].proposal):
        state.stamp[r] = np.int64(state.counters[0].proposal)
        state.touched[np.int64(state.counters[0].num_touched)] = r
        state.counters[0].num_touched += 1.0
        for q in range(state.tau.shape[0]):
            state.old_loads[r, q] = state.loads[r, q]
            state.old_weights[r, q] = state.weights[r, q]
        for m in range(state.world_bytes.shape[0]):
            state.old_bytes[r, m] = state.bytes[r, m]
        state.old_over[r] = state.over[r]


@compiled
def undo(data: Data, state: State) -> None:
    """Put the rows back that this proposal changed."""
    for i in range(np.int64(state.counters[0].num_touched)):
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
    for i in range(np.int64(state.counters[0].num_movements)):
        state.columns_here[state.movements[i, 0], state.movements[i, 1]] -= state.movements[i, 2]
    state.counters[0].num_movements = 0.0
    state.counters[0].moved_bytes = state.old_counters[0].moved_bytes
    if state.counters[0].world_changed > 0:
        count_overflow(data, state)
    state.counters[0].overflow = state.old_counters[0].overflow


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
        count = np.int64(state.counters[0].num_movements)
        state.movements[count, 0], state.movements[count, 1], state.movements[count, 2] = item, place, columns
        state.counters[0].num_movements += 1.0
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
def recount_overflow(data: Data, state: State, r: int) -> None:
    """Count a rank's bytes beyond its capacity anew, after they changed."""
    over = rank_overflow(data, state, r)
    state.counters[0].overflow += over - state.over[r]
    state.over[r] = over


@compiled
def shift_rank(data: Data, state: State, r: int, shape: int, sign: float) -> None:
    """Add a piece to a rank's load, or take it off."""
    note(state, r)
    kind = data.rank_class[r]
    for q in range(state.tau.shape[0]):
        load = state.loads[r, q] + sign * data.shape_seconds[kind, shape, q]
        set_load(state, r, q, load)
    for m in range(state.world_bytes.shape[0]):
        state.bytes[r, m] += sign * data.shape_bytes[shape, m]
    recount_overflow(data, state, r)


@compiled
def swap_on_rank(data: Data, state: State, r: int, out: int, into: int) -> None:
    """Take one piece off a rank's load and add another."""
    note(state, r)
    kind = data.rank_class[r]
    for q in range(state.tau.shape[0]):
        load = state.loads[r, q] - data.shape_seconds[kind, out, q] + data.shape_seconds[kind, into, q]
        set_load(state, r, q, load)
    for m in range(state.world_bytes.shape[0]):
        state.bytes[r, m] += data.shape_bytes[into, m] - data.shape_bytes[out, m]
    recount_overflow(data, state, r)


@compiled
def shift(data: Data, state: State, scope: int, shape: int, site: int, sign: float) -> None:
    """Add a piece to all ranks of its site, or take it off."""
    carry(data, state, scope, shape, site, sign)
    if scope == RANK:
        shift_rank(data, state, site, shape, sign)
        return
    if scope == HOST:
        local = ranks_of_site(data, scope)
        for r in range(site * local, (site + 1) * local):
            shift_rank(data, state, r, shape, sign)
        return
    if data.shape_seconds.shape[0] > 1:  # ranks of unequal speed
        for r in range(state.loads.shape[0]):
            shift_rank(data, state, r, shape, sign)
        return
    for q in range(state.tau.shape[0]):
        state.world_loads[q] += sign * data.shape_seconds[0, shape, q]
    for m in range(state.world_bytes.shape[0]):
        state.world_bytes[m] += sign * data.shape_bytes[shape, m]
    state.counters[0].world_changed = 1.0
    count_overflow(data, state)


@compiled
def swap(data: Data, state: State, scope: int, site: int, out: int, into: int) -> None:
    """Take one piece off all ranks of a rank or host and add another; cheaper than one after the other."""
    carry(data, state, scope, out, site, -1.0)
    carry(data, state, scope, into, site, 1.0)
    local = ranks_of_site(data, scope)
    for r in range(site * local, (site + 1) * local):
        swap_on_rank(data, state, r, out, into)
