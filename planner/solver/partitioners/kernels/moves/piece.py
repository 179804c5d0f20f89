"""Moves that leave every table's cut as it is: a piece to another rank or host, two pieces exchanged."""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.exchange_delta import (
    Exchange,
    can_foresee,
    is_hopeless,
    least_growth,
    make,
    try_out,
    weigh_sites,
)
from planner.solver.partitioners.kernels.cost.site_choice import may_change_site
from planner.solver.partitioners.kernels.moves.sampling import pick_site, pick_slot, slot_on
from planner.solver.partitioners.kernels.state.pieces import relist
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.sites_index import num_sites, place_of
from planner.solver.partitioners.kernels.state.state import RANK, State
from planner.solver.partitioners.local_search.search_data import Data

_PAIRS = 12  # of pieces that a swap of two sites looks at


@compiled
def pick_target(data: Data, state: State, scope: int, slot: int) -> int:
    """Return a site for a piece, often one under little pressure; of its own host where the table has to stay there."""
    item = data.slot_item[slot]
    if scope == RANK and data.family_same_host[state.family[item]] and state.num_pieces[item] > 1:
        local = state.loads.shape[0] // data.host_allowed.shape[1]
        return state.slot_site[slot] // local * local + random_below(state, local)
    return (
        pick_site(data, state, scope, False) if random_below(state, 2) else random_below(state, num_sites(data, scope))
    )


@compiled
def move_piece(data: Data, state: State, scope: int, before: float, bar: float) -> bool:
    """Move one piece from its rank, or host, to another."""
    slot = pick_slot(data, state, scope)
    if slot < 0:
        return False
    source, target = state.slot_site[slot], pick_target(data, state, scope, slot)
    if target == source or not may_change_site(data, state, scope, slot, target):
        return False
    shape = state.slot_shape[slot]
    if make(data, state, Exchange(scope, source, target, shape, -1, -1, shape), before, bar):
        relist(state, slot, scope, source, target)
        return True
    return False


@compiled
def swap_pieces(data: Data, state: State, scope: int, before: float, bar: float) -> bool:
    """Exchange the ranks, or hosts, of two pieces: a few pairs of two sites are looked at."""
    sites = num_sites(data, scope)
    here = pick_site(data, state, scope, True) if random_below(state, 2) else random_below(state, sites)
    there = random_below(state, sites)
    if here == there or state.site_count[place_of(state, scope, here)] == 0:
        return False
    if state.site_count[place_of(state, scope, there)] == 0:
        return False
    foreseen = can_foresee(data, state, scope)
    weigh_sites(data, state, scope, here, there)
    for _ in range(_PAIRS):
        one, other = slot_on(state, scope, here), slot_on(state, scope, there)
        out, into = state.slot_shape[one], state.slot_shape[other]
        exchange = Exchange(scope, here, there, out, into, into, out)
        least = least_growth(data, state, exchange) if foreseen else -np.inf
        if least > bar:
            continue
        if data.slot_item[one] == data.slot_item[other]:
            continue
        if not may_change_site(data, state, scope, one, there) or not may_change_site(data, state, scope, other, here):
            continue
        if foreseen and is_hopeless(data, state, least, bar):
            return False
        if try_out(data, state, exchange, before, bar):
            relist(state, one, scope, here, there)
            relist(state, other, scope, there, here)
            return True
        return False
    return False
