"""Which rank, piece or item a move tries: at random, and more often where the cost is made."""

from planner.partitioners.compiled import compiled
from planner.partitioners.search.randomness import random_below
from planner.partitioners.search.state import RANK, State
from planner.partitioners.view import Data

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
def pick_host(data: Data, state: State, heavy: bool) -> int:
    """Return the host of the most, or least, pressed of a few random ranks."""
    return data.rank_host[pick_rank(data, state, heavy)]


@compiled
def pick_site(data: Data, state: State, scope: int, heavy: bool) -> int:
    """Return the most, or least, pressed of a few random ranks, or its host."""
    return pick_rank(data, state, heavy) if scope == RANK else pick_host(data, state, heavy)


@compiled
def pick_slot(data: Data, state: State) -> int:
    """Return a slot with a piece that lies on one rank, often of a pressed rank; -1 where there is none."""
    for _ in range(4):
        rank = pick_rank(data, state, True) if random_below(state, 2) else random_below(state, state.loads.shape[0])
        count = state.site_count[rank]
        if count:
            return state.site_slots[rank, random_below(state, count)]
    return -1


@compiled
def pick_item(data: Data, state: State) -> int:
    """Return an item, often one with a piece on a pressed rank."""
    if random_below(state, 2):
        slot = pick_slot(data, state)
        if slot >= 0:
            return data.slot_item[slot]
    return random_below(state, data.item_columns.shape[0])
