"""Which rank, piece or item a move tries: at random, and more often where the cost is made."""

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.sites_index import num_sites, place_of
from planner.solver.partitioners.kernels.state.state import RANK, State
from planner.solver.partitioners.local_search.search_data import Data

_TOURNAMENT = 5


@compiled
def pressure(data: Data, state: State, rank: int) -> float:
    """Return how much the cost falls with a rank's load."""
    total = 0.0
    for q in range(state.tau.shape[0]):
        total += state.price[q] * state.weights[rank, q]
    return total


@compiled
def pick_rank(data: Data, state: State, heavy: bool) -> int:
    """Return the most, or least, pressed of a few random ranks."""
    ranks = state.loads.shape[0]
    best = random_below(state, ranks)
    value = pressure(data, state, best)
    for _ in range(_TOURNAMENT - 1):
        other = random_below(state, ranks)
        theirs = pressure(data, state, other)
        if (theirs > value) == heavy:
            best, value = other, theirs
    return best


@compiled
def pick_site(data: Data, state: State, scope: int, heavy: bool) -> int:
    """Return the most, or least, pressed of a few random ranks, or its host."""
    rank = pick_rank(data, state, heavy)
    return rank if scope == RANK else data.rank_host[rank]


@compiled
def slot_on(state: State, scope: int, site: int) -> int:
    """Return the slot of a piece that lies on a rank, or host, alone; -1 where there is none."""
    place = place_of(state, scope, site)
    count = state.site_count[place]
    return state.site_slots[place, random_below(state, count)] if count else -1


@compiled
def pick_slot(data: Data, state: State, scope: int) -> int:
    """Return a slot with a piece that lies on one rank, or host, often a pressed one; -1 where there is none."""
    sites = num_sites(data, scope)
    for _ in range(4):
        site = pick_site(data, state, scope, True) if random_below(state, 2) else random_below(state, sites)
        slot = slot_on(state, scope, site)
        if slot >= 0:
            return slot
    return -1


@compiled
def pick_item(data: Data, state: State) -> int:
    """Return an item, often one with a piece on a pressed rank."""
    if random_below(state, 2):
        slot = pick_slot(data, state, RANK)
        if slot >= 0:
            return data.slot_item[slot]
    return random_below(state, data.item_columns.shape[0])
