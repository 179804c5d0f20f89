"""Deal the pieces of two ranks, or hosts, anew: of all ways to share them out, the one with the least smooth cost.

With eight pieces on each of two ranks a swap reaches 64 of 65,000 ways; this looks at many thousands.
One piece changes sides from each way to the next (Gray's order), which multiplies the weights of the
ranks by factors that are known beforehand, so that a way costs a few multiplications.
"""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.site_choice import may_change_site
from planner.solver.partitioners.kernels.cost.smooth_cost import cost
from planner.solver.partitioners.kernels.state.pieces import relist
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.sites_index import place_of, ranks_of_site
from planner.solver.partitioners.kernels.state.state import MOST_PIECES, State
from planner.solver.partitioners.kernels.state.undo_log import begin, moved_by, shift, undo
from planner.solver.partitioners.local_search.search_data import Data

#: Exponents of the weights stay within the range of floats: a rank may hold all that two hold now.
_SHARPEST = 150.0


@compiled
def gather(data: Data, state: State, scope: int, here: int, there: int, slots: np.ndarray, side: np.ndarray) -> int:
    """List pieces of both sites that may change sides, at most as many as there is room for."""
    count, seen = 0, 0
    for s in range(2):
        site, other = (here, there) if s == 0 else (there, here)
        place = place_of(state, scope, site)
        for i in range(state.site_count[place]):
            slot = state.site_slots[place, i]
            if not may_change_site(data, state, scope, slot, other):
                continue
            seen += 1
            listed = count
            if count == slots.shape[0]:
                listed = random_below(state, seen)
                if listed >= count:
                    continue
            else:
                count += 1
            slots[listed] = slot
            side[listed] = s
    return count


@compiled
def fits(room: np.ndarray) -> bool:
    """Whether no rank lacks bytes in any tier."""
    for s in range(2):
        for m in range(room.shape[1]):
            if room[s, m] < 0:
                return False
    return True


@compiled
def best_redistribution(
    data: Data, state: State, scope: int, here: int, there: int, slots: np.ndarray, side: np.ndarray, count: int
) -> int:
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
            source, target = (here, there) if side[i] == 0 else (there, here)
            change = moved_by(data, state, place_of(state, scope, source), shape, -1.0)
            change += moved_by(data, state, place_of(state, scope, target), shape, 1.0)
            moving[i] = state.counters[0].move_price * change
    for q in range(phases):
        tau = max(state.tau[q], (state.reference[q] + state.world_loads[q]) / _SHARPEST)
        weight[0, q], weight[1, q] = 0.0, 0.0
        for r in range(local):
            weight[0, q] += np.exp((state.loads[here * local + r, q] - state.reference[q]) / tau)
            weight[1, q] += np.exp((state.loads[there * local + r, q] - state.reference[q]) / tau)
        price[q] = data.weight[q] * tau
        now += price[q] * (weight[0, q] + weight[1, q])
        for i in range(count):
            shape = state.slot_shape[slots[i]]
            source, target = (here, there) if side[i] == 0 else (there, here)
            out[i, q] = np.exp(-data.shape_seconds[data.rank_class[source * local], shape, q] / tau)
            into[i, q] = np.exp(data.shape_seconds[data.rank_class[target * local], shape, q] / tau)
    tiers = state.world_bytes.shape[0]
    room = np.empty((2, tiers))  # bytes that fit on top
    for m in range(tiers):
        room[0, m], room[1, m] = np.inf, np.inf
        for r in range(local):
            one, other = here * local + r, there * local + r
            room[0, m] = min(room[0, m], data.capacity[one, m] - state.world_bytes[m] - state.bytes[one, m])
            room[1, m] = min(room[1, m], data.capacity[other, m] - state.world_bytes[m] - state.bytes[other, m])
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
    slots = np.empty(MOST_PIECES, dtype=np.int64)
    side = np.empty(MOST_PIECES, dtype=np.int64)
    count = gather(data, state, scope, here, there, slots, side)
    redistribution = best_redistribution(data, state, scope, here, there, slots, side, count)
    if redistribution == 0:
        return False
    begin(state)
    for i in range(count):
        if redistribution >> i & 1:
            source, target = (here, there) if side[i] == 0 else (there, here)
            shift(data, state, scope, state.slot_shape[slots[i]], source, -1.0)
            shift(data, state, scope, state.slot_shape[slots[i]], target, 1.0)
    if cost(data, state) - before > bar:
        undo(data, state)
        return False
    for i in range(count):
        if redistribution >> i & 1:
            source, target = (here, there) if side[i] == 0 else (there, here)
            relist(state, slots[i], scope, source, target)
    return True
