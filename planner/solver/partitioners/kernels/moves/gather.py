"""The pieces that several ranks, or hosts, may share out again, and the attempt to do it."""

from cost_models.arrays import Ints
from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.site_choice import may_change_site
from planner.solver.partitioners.kernels.cost.smooth_cost import keeps, sum_weights
from planner.solver.partitioners.kernels.state.pieces import relist
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.sites_index import place_of
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.kernels.state.undo_log import change
from planner.solver.partitioners.local_search.search_data import Data


@compiled
def may_lie_on_all(data: Data, state: State, scope: int, slot: int, sites: Ints) -> bool:
    """Whether the piece of a slot may lie on any of these sites, one of which it lies on."""
    for site in sites:
        if site != state.slot_site[slot] and not may_change_site(data, state, scope, slot, site):
            return False
    return True


@compiled
def gather(data: Data, state: State, scope: int, sites: Ints, slots: Ints, home: Ints) -> int:
    """List pieces that may lie on any of the sites, at most as many as there is room for; return how many.

    ``slots`` gets their slots, ``home`` the indices of their sites.
    """
    count, seen = 0, 0
    for s in range(sites.shape[0]):
        place = place_of(state, scope, sites[s])
        for i in range(state.site_count[place]):
            slot = state.site_slots[place, i]
            if not may_lie_on_all(data, state, scope, slot, sites):
                continue
            seen += 1
            listed = count
            if count == slots.shape[0]:
                listed = random_below(state, seen)
                if listed >= count:
                    continue
            else:
                count += 1
            slots[listed], home[listed] = slot, s
    return count


@compiled
def redistribute(
    data: Data, state: State, scope: int, sites: Ints, slots: Ints, home: Ints, goal: Ints, before: float, bar: float
) -> bool:
    """Move pieces from their homes to their goals, both indices of sites, unless the cost exceeds the bar.

    Belongs to a proposal that has begun. ``False`` where nothing moved; the caller undoes what shifted.
    """
    for i in range(goal.shape[0]):
        if goal[i] != home[i]:
            change(data, state, scope, sites[home[i]], state.slot_shape[slots[i]], -1)
            change(data, state, scope, sites[goal[i]], -1, state.slot_shape[slots[i]])
    sum_weights(state)
    if not keeps(data, state, before, bar):
        return False
    for i in range(goal.shape[0]):
        if goal[i] != home[i]:
            relist(state, slots[i], scope, sites[home[i]], sites[goal[i]])
    return True
