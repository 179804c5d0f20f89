"""Deal the pieces of two ranks, or hosts, again: of all ways to share them out, the one with the least smooth cost.

With eight pieces on each of two ranks a swap reaches 64 of 65,000 ways; this looks at many thousands.
One piece changes sides from each way to the next (Gray's order), which multiplies the weights of the
ranks by factors that are known beforehand, so that a way costs a few multiplications.
"""

import numpy as np

from cost_models.arrays import Ints
from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.moves.gather import gather, redistribute
from planner.solver.partitioners.kernels.state.sites_index import place_of, ranks_of_site
from planner.solver.partitioners.kernels.state.state import MOST_PIECES, State
from planner.solver.partitioners.kernels.state.undo_log import begin, moved_by, undo
from planner.solver.partitioners.local_search.search_data import Data

#: Exponents of the weights stay within the range of floats: a rank may hold all that two hold now.
_SHARPEST = 150.0


@compiled
def fits(room: np.ndarray) -> bool:
    """Whether no rank lacks bytes in any tier."""
    for s in range(2):
        for m in range(room.shape[1]):
            if room[s, m] < 0:
                return False
    return True


@compiled
def best_redistribution(data: Data, state: State, scope: int, sites: Ints, slots: Ints, side: Ints, count: int) -> int:
    """Return the deal of least cost as bits, one per piece that changes sides; 0 where none is better."""
    phases = state.tau.shape[0]
    local = ranks_of_site(data, scope)
    weight = np.empty((2, phases))
    out = np.empty((count, phases))  # factor of the rank that a piece leaves from where it lies now
    into = np.empty((count, phases))
    price = np.empty(phases)
    moving = np.zeros(count)  # what it costs to move a piece from where it lies now
    now, moved = 0.0, 0.0
    if data.columns_before.shape[0] > 0:
        for i in range(count):
            shape = state.slot_shape[slots[i]]
            source, target = place_of(state, scope, sites[side[i]]), place_of(state, scope, sites[1 - side[i]])
            change = moved_by(data, state, source, shape, -1.0) + moved_by(data, state, target, shape, 1.0)
            moving[i] = state.counters[0].move_price * change
    for q in range(phases):
        tau = max(state.tau[q], (state.reference[q] + state.world_loads[q]) / _SHARPEST)
        for s in range(2):
            weight[s, q] = 0.0
            for r in range(sites[s] * local, (sites[s] + 1) * local):
                weight[s, q] += np.exp((state.loads[r, q] - state.reference[q]) / tau)
        price[q] = data.weight[q] * tau
        now += price[q] * (weight[0, q] + weight[1, q])
        for i in range(count):
            shape = state.slot_shape[slots[i]]
            source, target = sites[side[i]] * local, sites[1 - side[i]] * local
            out[i, q] = np.exp(-data.shape_seconds[data.rank_class[source], shape, q] / tau)
            into[i, q] = np.exp(data.shape_seconds[data.rank_class[target], shape, q] / tau)
    tiers = state.world_bytes.shape[0]
    room = np.empty((2, tiers))  # bytes that fit on top
    for m in range(tiers):
        for s in range(2):
            room[s, m] = np.inf
            for r in range(sites[s] * local, (sites[s] + 1) * local):
                room[s, m] = min(room[s, m], data.capacity[r, m] - state.world_bytes[m] - state.bytes[r, m])
    best, least, redistribution = 0, now * (1 - 1e-9), 0
    for step in range(1, 1 << count):
        bit = 0
        while (step >> bit) & 1 == 0:
            bit += 1
        redistribution ^= 1 << bit
        source = side[bit]
        leaves = redistribution >> bit & 1
        moved += moving[bit] if leaves else -moving[bit]
        total = moved
        for m in range(tiers):
            freed = data.shape_bytes[state.slot_shape[slots[bit]], m] * (1.0 if leaves else -1.0)
            room[source, m] += freed
            room[1 - source, m] -= freed
        if leaves:
            for q in range(phases):
                weight[source, q] *= out[bit, q]
                weight[1 - source, q] *= into[bit, q]
                total += price[q] * (weight[0, q] + weight[1, q])
        else:
            for q in range(phases):
                weight[source, q] /= out[bit, q]
                weight[1 - source, q] /= into[bit, q]
                total += price[q] * (weight[0, q] + weight[1, q])
        if total < least and fits(room):
            best, least = redistribution, total
    return best


@compiled
def redistribute_pair(data: Data, state: State, scope: int, here: int, there: int, before: float, bar: float) -> bool:
    """Share the pieces of two ranks, or hosts, out in the best way, if that is worth it."""
    sites = np.array([here, there])
    slots, side = np.empty(MOST_PIECES, dtype=np.int64), np.empty(MOST_PIECES, dtype=np.int64)
    count = gather(data, state, scope, sites, slots, side)
    redistribution = best_redistribution(data, state, scope, sites, slots, side, count)
    if redistribution == 0:
        return False
    goal = side[:count].copy()
    for i in range(count):
        if redistribution >> i & 1:
            goal[i] = 1 - side[i]
    begin(state)
    if redistribute(data, state, scope, sites, slots, side, goal, before, bar):
        return True
    undo(data, state)
    return False
