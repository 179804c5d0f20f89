"""Put a piece into a slot or take it out, and list the slots of every rank."""

from planner.partitioners.compiled import compiled
from planner.partitioners.search.shifts import shift
from planner.partitioners.search.state import RANK, State
from planner.partitioners.view import Data


@compiled
def enlist(state: State, slot: int, rank: int) -> None:
    """Enter a slot into its rank's list; a list that is full leaves it out (it is then not picked)."""
    count = state.rank_count[rank]
    if count < state.rank_slots.shape[1]:
        state.rank_slots[rank, count] = slot
        state.slot_place[slot] = count
        state.rank_count[rank] = count + 1
    else:
        state.slot_place[slot] = -1


@compiled
def delist(state: State, slot: int, rank: int) -> None:
    """Take a slot off its rank's list."""
    place = state.slot_place[slot]
    if place < 0:
        return
    last = state.rank_count[rank] - 1
    moved = state.rank_slots[rank, last]
    state.rank_slots[rank, place] = moved
    state.slot_place[moved] = place
    state.rank_count[rank] = last
    state.slot_place[slot] = -1


@compiled
def put(data: Data, state: State, slot: int, scope: int, shape: int, site: int) -> None:
    """Place a piece into a slot."""
    state.slot_shape[slot] = shape
    state.slot_site[slot] = site
    if scope == RANK:
        enlist(state, slot, site)
    shift(data, state, scope, shape, site, 1.0)


@compiled
def take(data: Data, state: State, slot: int, scope: int) -> None:
    """Take a piece out of its slot."""
    if scope == RANK:
        delist(state, slot, state.slot_site[slot])
    shift(data, state, scope, state.slot_shape[slot], state.slot_site[slot], -1.0)
