"""Deal the pieces of three ranks anew, so that they cost less: balance that no two ranks reach between them.

What a rank may carry follows from the budget: alone it must not cost more, and the other two, which carry the rest,
must not either. So few sets are left for the first rank that each is tried, best first, and the rest dealt to the two
others in the same way. Prices are the slopes of the smooth cost; it is concave in the sums of weights, so that
it falls at least as far as they say.
"""

import numpy as np
from numpy.typing import NDArray

from planner.partitioners.compiled import compiled
from planner.partitioners.search.costs import cost
from planner.partitioners.search.meeting import Terms, Wanted, meet
from planner.partitioners.search.pieces import delist, enlist
from planner.partitioners.search.randomness import random_below
from planner.partitioners.search.shifts import shift
from planner.partitioners.search.sites import may_move
from planner.partitioners.search.state import RANK, State
from planner.partitioners.view import Data

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_PIECES = 18  # dealt at once: with 22 a deal takes four times as long
_TRIED = 32  # sets for the first rank
_MOST_SEEN = 2000  # sets between the bounds, for the first rank and for the second
_ROUNDING = 1e-6  # bytes: sums of whole numbers


@compiled
def linear_cost(state: State, rank: int, weights: Floats) -> float:
    """Return what a rank's weights, shape (R, Q), cost by the slopes of the smooth cost."""
    total = 0.0
    for q in range(state.tau.shape[0]):
        total += state.price[q] * state.tau[q] * weights[rank, q]
    return total


@compiled
def gather_three(data: Data, state: State, ranks: Ints, slots: Ints, home: Ints) -> int:
    """List pieces that may lie on any of the three ranks, at most as many as there is room for; return how many."""
    count, seen = 0, 0
    for s in range(3):
        rank = ranks[s]
        for i in range(state.rank_count[rank]):
            slot = state.rank_slots[rank, i]
            if not may_move(data, state, slot, ranks[(s + 1) % 3]):
                continue
            if not may_move(data, state, slot, ranks[(s + 2) % 3]):
                continue
            seen += 1
            place = count
            if count == slots.shape[0]:
                place = random_below(state, seen)
                if place >= count:
                    continue
            else:
                count += 1
            slots[place], home[place] = slot, s
    return count


@compiled
def bounds_of(
    data: Data, terms: Terms, budget: float, base: Floats, total: Floats, ranks: Ints, sharers: int
) -> Wanted:
    """Return what the first of some ranks may take, so that neither it nor the others cost more than the budget."""
    phases = terms.tau.shape[0]
    lowest, highest = np.empty(total.shape[0]), np.empty(total.shape[0])
    for q in range(phases):
        most = np.inf
        if terms.price[q] > 0:
            most = terms.reference[q] + terms.tau[q] * np.log(budget / terms.price[q])
        highest[q] = most - base[q]
        lowest[q] = total[q] - sharers * most - base[q]
    for d in range(phases, total.shape[0]):
        highest[d] = data.capacity[ranks[0], d - phases] - base[d] + _ROUNDING
        lowest[d] = total[d] - base[d] - _ROUNDING
        for s in range(1, sharers + 1):
            lowest[d] -= data.capacity[ranks[s], d - phases]
    return Wanted(lowest, highest, base, total, sharers)


@compiled
def best_of_three(
    data: Data, terms: Terms, budget: float, ranks: Ints, pieces: Floats, base: Floats, deal: Ints
) -> bool:
    """Write which of three ranks every piece goes to, shape (n,); ``False`` where no deal costs less than the budget.

    ``pieces``, shape (n, Q + M), are loads and bytes; ``base``, shape (3, Q + M), what ranks carry anyhow.
    """
    count, phases = pieces.shape[0], terms.tau.shape[0]
    halves = np.empty((2, 1 << ((count + 1) // 2), pieces.shape[1]))
    firsts, costs = np.empty(_TRIED, dtype=np.int64), np.empty(_TRIED)
    second, its_cost = np.empty(1, dtype=np.int64), np.empty(1)
    total = np.sum(base, axis=0) + np.sum(pieces, axis=0)
    wanted = bounds_of(data, terms, budget, base[0], total, ranks, 2)
    kept = meet(pieces, np.arange(count), wanted, terms, budget, _MOST_SEEN, halves, firsts, costs)
    rest = np.empty(count, dtype=np.int64)
    best = budget
    for k in range(kept):
        if costs[k] >= best:
            break
        left = 0
        shared = base[1] + base[2]
        for i in range(count):
            if firsts[k] >> i & 1 == 0:
                rest[left] = i
                left += 1
                shared += pieces[i]
        taken = 0.0
        for q in range(phases):
            load = total[q] - shared[q]
            taken += terms.price[q] * np.exp((load - terms.reference[q]) / terms.tau[q])
        if taken >= best:
            continue
        theirs = bounds_of(data, terms, best - taken, base[1], shared, ranks[1:], 1)
        if meet(pieces, rest[:left], theirs, terms, best - taken, _MOST_SEEN, halves, second, its_cost) == 0:
            continue
        best = taken + its_cost[0]
        deal[:] = 0
        for j in range(left):
            deal[rest[j]] = 1 if second[0] >> j & 1 else 2
    return best < budget


@compiled
def deal_three(data: Data, state: State, ranks: Ints, before: float, bar: float, budget: float) -> bool:
    """Share the pieces of three ranks out so that they cost less than the budget by slopes; keep it under the bar.

    Belongs to a proposal that has begun. ``False`` where nothing was kept; the caller undoes what shifted.
    """
    kind = data.rank_class[ranks[0]]
    if data.rank_class[ranks[1]] != kind or data.rank_class[ranks[2]] != kind or not budget > 0:
        return False
    slots, home = np.empty(_MOST_PIECES, dtype=np.int64), np.empty(_MOST_PIECES, dtype=np.int64)
    count = gather_three(data, state, ranks, slots, home)
    phases, tiers = state.tau.shape[0], state.world_bytes.shape[0]
    pieces, base = np.empty((count, phases + tiers)), np.empty((3, phases + tiers))
    for s in range(3):
        base[s, :phases] = state.loads[ranks[s]]
        base[s, phases:] = state.bytes[ranks[s]] + state.world_bytes
    for i in range(count):
        shape = state.slot_shape[slots[i]]
        pieces[i, :phases] = data.shape_seconds[kind, shape]
        pieces[i, phases:] = data.shape_bytes[shape]
        base[home[i]] -= pieces[i]
    terms = Terms(state.price * state.tau, state.reference, state.tau)
    deal = home[:count].copy()
    if not best_of_three(data, terms, budget, ranks, pieces, base, deal):
        return False
    for i in range(count):
        if deal[i] != home[i]:
            shift(data, state, RANK, state.slot_shape[slots[i]], ranks[home[i]], -1.0)
            shift(data, state, RANK, state.slot_shape[slots[i]], ranks[deal[i]], 1.0)
    if cost(data, state) - before > bar:
        return False
    for i in range(count):
        if deal[i] != home[i]:
            delist(state, slots[i], ranks[home[i]])
            enlist(state, slots[i], ranks[deal[i]])
            state.slot_site[slots[i]] = ranks[deal[i]]
    return True
