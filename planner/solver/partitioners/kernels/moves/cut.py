"""Moves that change one table's cut: columns shifted between two of its pieces, a piece split, two merged."""

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.exchange_delta import Exchange, make
from planner.solver.partitioners.kernels.cost.site_choice import host_is_legal, rank_is_legal
from planner.solver.partitioners.kernels.moves.sampling import pick_rank
from planner.solver.partitioners.kernels.state.pieces import delist, enlist
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.state import COLUMN_STEP, HOST, RANK, State
from planner.solver.partitioners.local_search.search_data import Data


@compiled
def shift_columns(data: Data, state: State, item: int, before: float, bar: float) -> bool:
    """Make one piece of a table wider and another narrower."""
    pieces = state.num_pieces[item]
    if data.item_fixed[item] or data.item_cut_fixed[item] or pieces < 2:
        return False
    family = state.family[item]
    shapes = data.family_shape[family + 1] - data.family_shape[family]
    first = data.item_slot[item]
    one = first + random_below(state, pieces)
    other = first + random_below(state, pieces)
    steps = 1 + random_below(state, 4) if random_below(state, 2) else 1 + random_below(state, shapes)
    wider, narrower = state.slot_shape[one] + steps, state.slot_shape[other] - steps
    if one == other or wider >= data.family_shape[family + 1] or narrower < data.family_shape[family]:
        return False
    scope, here, there = data.family_scope[family], state.slot_site[one], state.slot_site[other]
    exchange = Exchange(scope, here, there, state.slot_shape[one], wider, state.slot_shape[other], narrower)
    if not make(data, state, exchange, before, bar):
        return False
    state.slot_shape[one], state.slot_shape[other] = wider, narrower
    return True


@compiled
def kin(data: Data, state: State, item: int, whole: bool) -> int:
    """Return a random family of the item that lands on the same kind of site, whole or in pieces; -1 for none."""
    first = data.item_family[item]
    family = first + random_below(state, data.item_family[item + 1] - first)
    if data.family_scope[family] != data.family_scope[state.family[item]]:
        return -1
    return family if (data.family_max_pieces[family] == 1) == whole else -1


@compiled
def split_piece(data: Data, state: State, item: int, before: float, bar: float) -> bool:
    """Cut a piece in two, of which one goes elsewhere; a whole table becomes one in pieces."""
    family, pieces = state.family[item], state.num_pieces[item]
    scope = data.family_scope[family]
    if data.item_fixed[item] or data.item_cut_fixed[item] or scope > HOST:
        return False
    into = family if data.family_max_pieces[family] > 1 else kin(data, state, item, False)
    if into < 0 or pieces >= data.family_max_pieces[into]:
        return False
    slot = data.item_slot[item] + random_below(state, pieces)
    low, narrowest = data.family_shape[into], data.family_narrowest[into]
    columns = data.shape_columns[state.slot_shape[slot]]
    room = (columns - 2 * narrowest) // COLUMN_STEP
    if room < 0:
        return False
    cut = narrowest + COLUMN_STEP * random_below(state, room + 1)
    first_width, moved = low + (columns - cut - narrowest) // COLUMN_STEP, low + (cut - narrowest) // COLUMN_STEP
    if max(first_width, moved) >= data.family_shape[into + 1]:
        return False
    site = state.slot_site[slot]
    if scope == RANK:
        target = pick_rank(data, state, False)
        if data.family_same_host[into]:
            local = state.loads.shape[0] // data.host_allowed.shape[1]
            target = site // local * local + random_below(state, local)
        if target == site or not rank_is_legal(data, state, item, target):
            return False
    else:
        target = random_below(state, data.host_allowed.shape[1])
        if target == site or not host_is_legal(data, state, item, target):
            return False
    if not make(
        data, state, Exchange(scope, site, target, state.slot_shape[slot], first_width, -1, moved), before, bar
    ):
        return False
    state.slot_shape[slot] = first_width
    new = data.item_slot[item] + pieces
    state.slot_shape[new], state.slot_site[new] = moved, target
    enlist(state, new, scope, target)
    state.num_pieces[item] = pieces + 1
    state.family[item] = into
    return True


@compiled
def merge_pieces(data: Data, state: State, item: int, before: float, bar: float) -> bool:
    """Join two pieces of a table on the site of one of them; the last two become a whole table."""
    family, pieces = state.family[item], state.num_pieces[item]
    if data.item_fixed[item] or data.item_cut_fixed[item] or pieces < 2:
        return False
    into = family if pieces > data.family_min_pieces[family] else kin(data, state, item, True)
    if into < 0:
        return False
    scope = data.family_scope[family]
    first = data.item_slot[item]
    one, other = first + random_below(state, pieces), first + random_below(state, pieces)
    columns = data.shape_columns[state.slot_shape[one]] + data.shape_columns[state.slot_shape[other]]
    joined = data.family_shape[into] + (columns - data.family_narrowest[into]) // COLUMN_STEP
    if one == other or joined >= data.family_shape[into + 1]:
        return False
    here, there = state.slot_site[one], state.slot_site[other]
    exchange = Exchange(scope, here, there, state.slot_shape[one], joined, state.slot_shape[other], -1)
    if not make(data, state, exchange, before, bar):
        return False
    state.slot_shape[one] = joined
    last = first + pieces - 1
    delist(state, other, scope, there)
    if other != last:
        delist(state, last, scope, state.slot_site[last])
        enlist(state, other, scope, state.slot_site[last])
    state.slot_shape[other], state.slot_site[other] = state.slot_shape[last], state.slot_site[last]
    state.num_pieces[item] = pieces - 1
    state.family[item] = into
    return True
