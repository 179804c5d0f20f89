"""Moves of a whole table: placed again under another listed option, or sent back where it was."""

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.site_choice import place_units, site_is_legal
from planner.solver.partitioners.kernels.cost.smooth_cost import keeps
from planner.solver.partitioners.kernels.moves.sampling import pick_item
from planner.solver.partitioners.kernels.state.pieces import delist, enlist, put, take
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.kernels.state.undo_log import begin, undo
from planner.solver.partitioners.local_search.search_data import Data


@compiled
def take_off(data: Data, state: State, item: int) -> tuple[int, int]:
    """Begin a proposal that takes all pieces of an item off; return their number and its family."""
    first, pieces, family = data.item_slot[item], state.num_pieces[item], state.family[item]
    begin(state)
    for i in range(pieces):
        state.saved_shape[i], state.saved_site[i] = state.slot_shape[first + i], state.slot_site[first + i]
        take(data, state, first + i, data.family_scope[family])
    return pieces, family


@compiled
def put_back(data: Data, state: State, item: int, pieces: int, family: int) -> None:
    """Undo what was done to an item after ``take_off``."""
    first = data.item_slot[item]
    for slot in range(first, first + state.num_pieces[item]):
        delist(state, slot, data.family_scope[state.family[item]], state.slot_site[slot])
    undo(data, state)
    state.family[item], state.num_pieces[item] = family, pieces
    for i in range(pieces):
        state.slot_shape[first + i], state.slot_site[first + i] = state.saved_shape[i], state.saved_site[i]
        enlist(state, first + i, data.family_scope[family], state.saved_site[i])


@compiled
def replace_item(data: Data, state: State, before: float, bar: float) -> bool:
    """Take an item off and place it again under a random listed option, every piece where it hurts least."""
    item = pick_item(data, state)
    if data.item_fixed[item]:
        return False
    options = data.item_option[item + 1] - data.item_option[item]
    option = data.item_option[item] + random_below(state, options)
    pieces, family = take_off(data, state, item)
    if place_units(data, state, item, option) and keeps(data, state, before, bar):
        return True
    put_back(data, state, item, pieces, family)
    return False


@compiled
def is_home(data: Data, state: State, item: int) -> bool:
    """Whether an item is as it was before anything moved."""
    if state.family[item] != data.home_family[item] or state.num_pieces[item] != data.home_pieces[item]:
        return False
    first = data.item_slot[item]
    for slot in range(first, first + state.num_pieces[item]):
        if state.slot_shape[slot] != data.home_shape[slot] or state.slot_site[slot] != data.home_site[slot]:
            return False
    return True


@compiled
def send_home(data: Data, state: State, before: float, bar: float) -> bool:
    """Put an item back where it was before anything moved, if it may still be there."""
    item = pick_item(data, state)
    home = data.home_family[item]
    if data.item_fixed[item] or home < 0 or is_home(data, state, item):
        return False
    first, scope = data.item_slot[item], data.family_scope[home]
    if data.apart_first[item] < data.apart_first[item + 1]:
        for slot in range(first, first + data.home_pieces[item]):
            if not site_is_legal(data, state, item, scope, data.home_site[slot]):
                return False
    pieces, family = take_off(data, state, item)
    state.family[item], state.num_pieces[item] = home, data.home_pieces[item]
    for slot in range(first, first + data.home_pieces[item]):
        put(data, state, slot, scope, data.home_shape[slot], data.home_site[slot])
    if keeps(data, state, before, bar):
        return True
    put_back(data, state, item, pieces, family)
    return False
