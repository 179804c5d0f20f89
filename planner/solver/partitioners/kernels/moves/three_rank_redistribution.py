"""Deal the pieces of three ranks again, so that they cost less: balance that no two ranks reach between them.

What a rank may carry follows from the budget: alone it must not cost more, and the other two, which carry the rest,
must not either. So few sets are left for the first rank that each is tried, best first, and the rest dealt to the two
others in the same way. Prices are the slopes of the smooth cost; it is concave in the sums of weights, so that
it falls at least as far as they say.
"""

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.moves.gather import gather, redistribute
from planner.solver.partitioners.kernels.moves.meet_in_the_middle import Terms, Wanted, find_cheap_sets
from planner.solver.partitioners.kernels.state.sites_index import ranks_of_site
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.local_search.search_data import Data

MAX_REDISTRIBUTED = 18  # pieces at once: with 22 a deal takes four times as long
_TRIED = 32  # sets for the first rank
_MOST_SEEN = 2000  # sets between the bounds, for the first rank and for the second
_MOST_LOOKED = 20_000.0  # sets, after which no other one is tried for the first rank: with equal pieces all are alike
_ROUNDING = 1e-6  # bytes: sums of whole numbers


@compiled
def linear_cost(data: Data, state: State, scope: int, site: int, weights: Floats) -> float:
    """Return what a site's weights, shape (R, Q), cost by the slopes of the smooth cost."""
    local = ranks_of_site(data, scope)
    total = 0.0
    for r in range(site * local, (site + 1) * local):
        for q in range(state.tau.shape[0]):
            total += state.price[q] * state.tau[q] * weights[r, q]
    return total


@compiled
def bounds_of(terms: Terms, budget: float, base: Floats, total: Floats, capacity: Floats, sharers: int) -> Wanted:
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
        highest[d] = capacity[0, d - phases] - base[d] + _ROUNDING
        lowest[d] = total[d] - base[d] - _ROUNDING
        for s in range(1, sharers + 1):
            lowest[d] -= capacity[s, d - phases]
    return Wanted(lowest, highest, base, total, sharers)


@compiled
def best_three_rank_redistribution(
    terms: Terms, budget: float, pieces: Floats, base: Floats, capacity: Floats, redistribution: Ints, looked: Floats
) -> bool:
    """Write which of three ranks every piece goes to, shape (n,); ``False`` where no deal costs less than the budget.

    ``pieces``, shape (n, Q + M), are loads and bytes; ``base``, shape (3, Q + M), what ranks carry anyhow;
    ``looked``, shape (1,), counts the work.
    """
    count, phases = pieces.shape[0], terms.tau.shape[0]
    halves = np.empty((2, 1 << ((count + 1) // 2), pieces.shape[1]))
    firsts, costs = np.empty(_TRIED, dtype=np.int64), np.empty(_TRIED)
    second, its_cost = np.empty(1, dtype=np.int64), np.empty(1)
    total = np.sum(base, axis=0) + np.sum(pieces, axis=0)
    wanted = bounds_of(terms, budget, base[0], total, capacity, 2)
    num_found = find_cheap_sets(
        pieces, np.arange(count), wanted, terms, budget, _MOST_SEEN, halves, firsts, costs, looked
    )
    rest = np.empty(count, dtype=np.int64)
    best, until = budget, looked[0] + _MOST_LOOKED
    for k in range(num_found):
        if costs[k] >= best or looked[0] > until:
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
        theirs = bounds_of(terms, best - taken, base[1], shared, capacity[1:], 1)
        if (
            find_cheap_sets(
                pieces, rest[:left], theirs, terms, best - taken, _MOST_SEEN, halves, second, its_cost, looked
            )
            == 0
        ):
            continue
        best = taken + its_cost[0]
        redistribution[:] = 0
        for j in range(left):
            redistribution[rest[j]] = 1 if second[0] >> j & 1 else 2
    return best < budget


@compiled
def weigh_site(data: Data, state: State, scope: int, site: int, base: Floats, capacity: Floats) -> None:
    """Write what a site carries, shape (Q + M,), and its capacity, shape (M,).

    A host counts as one rank whose weight is that of all its ranks, and whose room is that of the fullest.
    """
    phases, local = state.tau.shape[0], ranks_of_site(data, scope)
    first = site * local
    if local == 1:
        base[:phases] = state.loads[first]
    else:
        for q in range(phases):
            total = 0.0
            for r in range(first, first + local):
                total += state.weights[r, q]
            base[q] = state.reference[q] + state.tau[q] * np.log(max(total, 1e-300))
    for m in range(capacity.shape[0]):
        capacity[m] = data.capacity[first, m]
        used = state.bytes[first, m]
        for r in range(first + 1, first + local):
            used = max(used, state.bytes[r, m] + capacity[m] - data.capacity[r, m])
        base[phases + m] = used + state.world_bytes[m]


@compiled
def redistribute_three(
    data: Data, state: State, scope: int, sites: Ints, before: float, bar: float, budget: float
) -> bool:
    """Share the pieces of three sites out so that they cost less than the budget by slopes; keep it under the bar.

    Belongs to a proposal that has begun. ``False`` where nothing was kept; the caller undoes what shifted.
    """
    local = ranks_of_site(data, scope)
    kind = data.rank_class[sites[0] * local]
    for s in range(3):
        for r in range(sites[s] * local, (sites[s] + 1) * local):
            if data.rank_class[r] != kind:
                return False
    if not budget > 0:
        return False
    slots, home = np.empty(MAX_REDISTRIBUTED, dtype=np.int64), np.empty(MAX_REDISTRIBUTED, dtype=np.int64)
    count = gather(data, state, scope, sites, slots, home)
    phases, tiers = state.tau.shape[0], state.world_bytes.shape[0]
    pieces, base, capacity = np.empty((count, phases + tiers)), np.empty((3, phases + tiers)), np.empty((3, tiers))
    for s in range(3):
        weigh_site(data, state, scope, sites[s], base[s], capacity[s])
    for i in range(count):
        shape = state.slot_shape[slots[i]]
        pieces[i, :phases] = data.shape_seconds[kind, shape]
        pieces[i, phases:] = data.shape_bytes[shape]
        base[home[i]] -= pieces[i]
    terms = Terms(state.price * state.tau, state.reference, state.tau)
    redistribution = home[:count].copy()
    if not best_three_rank_redistribution(terms, budget, pieces, base, capacity, redistribution, state.looked):
        return False
    return redistribute(data, state, scope, sites, slots, home, redistribution, before, bar)
