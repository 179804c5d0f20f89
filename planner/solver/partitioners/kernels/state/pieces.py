"""Put a piece into a slot or take it out, and list the slots of every rank and of every host.

What lies on one rank is listed there, what lies on a whole host in the host's list, which follows those of the ranks;
what lies on all ranks is in no list.
"""

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.state.sites_index import place_of
from planner.solver.partitioners.kernels.state.state import HOST, State
from planner.solver.partitioners.kernels.state.undo_log import change
from planner.solver.partitioners.local_search.search_data import Data


@compiled
def enlist(state: State, slot: int, scope: int, site: int) -> None:
    """Enter a slot into its site's list; a list that is full leaves it out (it is then not picked)."""
    if scope > HOST:
        return
    place = place_of(state, scope, site)
    count = state.site_count[place]
    if count < state.site_slots.shape[1]:
        state.site_slots[place, count] = slot
        state.slot_place[slot] = count
        state.site_count[place] = count + 1
    else:
        state.slot_place[slot] = -1


@compiled
def delist(state: State, slot: int, scope: int, site: int) -> None:
    """Take a slot off its site's list."""
    at = state.slot_place[slot]
    if scope > HOST or at < 0:
        return
    place = place_of(state, scope, site)
    last = state.site_count[place] - 1
    moved = state.site_slots[place, last]
    state.site_slots[place, at] = moved
    state.slot_place[moved] = at
    state.site_count[place] = last
    state.slot_place[slot] = -1


@compiled
def relist(state: State, slot: int, scope: int, source: int, target: int) -> None:
    """Enter that a piece lies on another rank, or host; its loads are for the caller to shift."""
    delist(state, slot, scope, source)
    enlist(state, slot, scope, target)
    state.slot_site[slot] = target


@compiled
def put(data: Data, state: State, slot: int, scope: int, shape: int, site: int) -> None:
    """Place a piece into a slot."""
    state.slot_shape[slot] = shape
    state.slot_site[slot] = site
    enlist(state, slot, scope, site)
    change(data, state, scope, site, -1, shape)


@compiled
def take(data: Data, state: State, slot: int, scope: int) -> None:
    """Take a piece out of its slot."""
    delist(state, slot, scope, state.slot_site[slot])
    change(data, state, scope, state.slot_site[slot], state.slot_shape[slot], -1)
