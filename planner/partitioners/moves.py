"""The moves of local search, each proposed, priced and kept or undone.

Move a piece, swap two, shift columns between two pieces of a table, split a piece or merge two, and
take a table off and place it again under another listed option or the same one. A move that makes
the smooth cost grow is kept where the growth stays under a bar that is drawn first: Metropolis' rule
the other way round, so that most hopeless moves are seen to be so before they are priced.
"""

import numpy as np

from planner.partitioners.compiled import compiled
from planner.partitioners.deals import deal_anew
from planner.partitioners.sites import host_is_legal, may_move, place_units, rank_is_legal
from planner.partitioners.state import (
    HOST,
    MOVE_PRICE,
    OVER,
    RANK,
    State,
    begin,
    cost,
    delist,
    enlist,
    exchange,
    moved_by,
    put,
    random_below,
    random_unit,
    refresh,
    reprice,
    shift,
    take,
    undo,
)
from planner.partitioners.view import Data

_STEP = 4  # columns
_TOURNAMENT = 5
_HOMEWARD = 0.05  # part of the proposals, where moving costs something
_PAIRS = 12  # of pieces that a swap of two ranks looks at


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
def pick_slot(data: Data, state: State) -> int:
    """Return a slot with a piece that lies on one rank, often of a pressed rank; -1 where there is none."""
    for _ in range(4):
        rank = pick_rank(data, state, True) if random_below(state, 2) else random_below(state, state.loads.shape[0])
        count = state.rank_count[rank]
        if count:
            return state.rank_slots[rank, random_below(state, count)]
    return -1


@compiled
def keeps(data: Data, state: State, before: float, bar: float) -> bool:
    """Whether the cost as it is now exceeds the cost before by at most the bar that was drawn."""
    return cost(data, state) - before <= bar


@compiled
def tangent(data: Data, state: State, rank: int, out: int, into: int) -> float:
    """Return what an exchange on a rank adds at least to the cost; -1 stands for no piece.

    The cost is convex in the loads, so that it grows by at least its slope times the change.
    """
    kind = data.rank_class[rank]
    total = 0.0
    for q in range(state.tau.shape[0]):
        change = 0.0
        if out >= 0:
            change -= data.shape_seconds[kind, out, q]
        if into >= 0:
            change += data.shape_seconds[kind, into, q]
        total += state.price[q] * state.weights[rank, q] * change
    if data.columns_before.shape[0] > 0:
        total += state.number[MOVE_PRICE] * moved_by_exchange(data, state, rank, out, into)
    return total


@compiled
def moved_by_exchange(data: Data, state: State, rank: int, out: int, into: int) -> float:
    """Return how many bytes more move after an exchange on a rank; -1 stands for no piece."""
    if out < 0:
        return moved_by(data, state, rank, into, 1.0)
    if into < 0:
        return moved_by(data, state, rank, out, -1.0)
    if data.shape_item[out] != data.shape_item[into]:
        return moved_by(data, state, rank, out, -1.0) + moved_by(data, state, rank, into, 1.0)
    item = data.shape_item[out]
    before, here = data.columns_before[item, rank], state.columns_here[item, rank]
    found = min(before, here - data.shape_columns[out] + data.shape_columns[into]) - min(before, here)
    return data.shape_moved[into] - data.shape_moved[out] - found * data.column_bytes[item, rank]


@compiled
def move_piece(data: Data, state: State, before: float, bar: float) -> bool:
    """Move one piece from its rank to another."""
    slot = pick_slot(data, state)
    if slot < 0:
        return False
    source = state.slot_site[slot]
    target = pick_rank(data, state, False) if random_below(state, 2) else random_below(state, state.loads.shape[0])
    if data.family_same_host[state.family[data.slot_item[slot]]] and state.num_pieces[data.slot_item[slot]] > 1:
        local = state.loads.shape[0] // data.host_allowed.shape[1]
        target = source // local * local + random_below(state, local)
    if target == source or not may_move(data, state, slot, target):
        return False
    shape = state.slot_shape[slot]
    if (
        state.number[OVER] == 0
        and tangent(data, state, source, shape, -1) + tangent(data, state, target, -1, shape) > bar
    ):
        return False
    begin(state)
    shift(data, state, RANK, shape, source, -1.0)
    shift(data, state, RANK, shape, target, 1.0)
    if keeps(data, state, before, bar):
        delist(state, slot, source)
        enlist(state, slot, target)
        state.slot_site[slot] = target
        return True
    undo(data, state)
    return False


@compiled
def swap_pieces(data: Data, state: State, before: float, bar: float) -> bool:
    """Exchange the ranks of two pieces: a few pairs of two ranks are looked at."""
    here = pick_rank(data, state, True) if random_below(state, 2) else random_below(state, state.loads.shape[0])
    there = random_below(state, state.loads.shape[0])
    if here == there or state.rank_count[here] == 0 or state.rank_count[there] == 0:
        return False
    for _ in range(_PAIRS):
        one = state.rank_slots[here, random_below(state, state.rank_count[here])]
        other = state.rank_slots[there, random_below(state, state.rank_count[there])]
        out, into = state.slot_shape[one], state.slot_shape[other]
        if (
            state.number[OVER] == 0
            and tangent(data, state, here, out, into) + tangent(data, state, there, into, out) > bar
        ):
            continue
        if data.slot_item[one] == data.slot_item[other]:
            continue
        if not may_move(data, state, one, there) or not may_move(data, state, other, here):
            continue
        begin(state)
        exchange(data, state, here, out, into)
        exchange(data, state, there, into, out)
        if keeps(data, state, before, bar):
            delist(state, one, here)
            delist(state, other, there)
            enlist(state, one, there)
            enlist(state, other, here)
            state.slot_site[one], state.slot_site[other] = there, here
            return True
        undo(data, state)
        return False
    return False


@compiled
def shift_columns(data: Data, state: State, before: float, bar: float) -> bool:
    """Make one piece of a table wider and another narrower."""
    item = pick_item(data, state)
    pieces = state.num_pieces[item]
    if data.item_fixed[item] or pieces < 2:
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
    scope = data.family_scope[family]
    # Of two pieces on one rank, the columns that one finds there are those that the other gives up.
    apart = state.slot_site[one] != state.slot_site[other] or data.columns_before.shape[0] == 0
    if scope == RANK and state.number[OVER] == 0 and apart:
        growth = tangent(data, state, state.slot_site[one], state.slot_shape[one], wider)
        if growth + tangent(data, state, state.slot_site[other], state.slot_shape[other], narrower) > bar:
            return False
    begin(state)
    if scope == RANK:
        exchange(data, state, state.slot_site[one], state.slot_shape[one], wider)
        exchange(data, state, state.slot_site[other], state.slot_shape[other], narrower)
    else:
        shift(data, state, scope, state.slot_shape[one], state.slot_site[one], -1.0)
        shift(data, state, scope, state.slot_shape[other], state.slot_site[other], -1.0)
        shift(data, state, scope, wider, state.slot_site[one], 1.0)
        shift(data, state, scope, narrower, state.slot_site[other], 1.0)
    if keeps(data, state, before, bar):
        state.slot_shape[one], state.slot_shape[other] = wider, narrower
        return True
    undo(data, state)
    return False


@compiled
def pick_item(data: Data, state: State) -> int:
    """Return an item, often one with a piece on a pressed rank."""
    if random_below(state, 2):
        slot = pick_slot(data, state)
        if slot >= 0:
            return data.slot_item[slot]
    return random_below(state, data.item_columns.shape[0])


@compiled
def move_host_piece(data: Data, state: State, before: float, bar: float) -> bool:
    """Move a piece that lies on a whole host to another host."""
    item = random_below(state, data.item_columns.shape[0])
    family = state.family[item]
    if data.item_fixed[item] or data.family_scope[family] != HOST:
        return False
    slot = data.item_slot[item] + random_below(state, state.num_pieces[item])
    source, target = state.slot_site[slot], random_below(state, data.host_allowed.shape[1])
    if target == source or not host_is_legal(data, state, item, target):
        return False
    shape = state.slot_shape[slot]
    begin(state)
    shift(data, state, HOST, shape, source, -1.0)
    shift(data, state, HOST, shape, target, 1.0)
    if keeps(data, state, before, bar):
        state.slot_site[slot] = target
        return True
    undo(data, state)
    return False


@compiled
def kin(data: Data, state: State, item: int, whole: bool) -> int:
    """Return a random family of the item that lands on the same kind of site, whole or in pieces; -1 for none."""
    first = data.item_family[item]
    family = first + random_below(state, data.item_family[item + 1] - first)
    if data.family_scope[family] != data.family_scope[state.family[item]]:
        return -1
    return family if (data.family_max_pieces[family] == 1) == whole else -1


@compiled
def split_piece(data: Data, state: State, before: float, bar: float) -> bool:
    """Cut a piece in two, of which one goes elsewhere; a whole table becomes one in pieces."""
    item = pick_item(data, state)
    family, pieces = state.family[item], state.num_pieces[item]
    scope = data.family_scope[family]
    if data.item_fixed[item] or scope > HOST:
        return False
    into = family if data.family_max_pieces[family] > 1 else kin(data, state, item, False)
    if into < 0 or pieces >= data.family_max_pieces[into]:
        return False
    slot = data.item_slot[item] + random_below(state, pieces)
    low, narrowest = data.family_shape[into], data.family_narrowest[into]
    columns = data.shape_columns[state.slot_shape[slot]]
    room = (columns - 2 * narrowest) // _STEP
    if room < 0:
        return False
    cut = narrowest + _STEP * random_below(state, room + 1)
    kept, moved = low + (columns - cut - narrowest) // _STEP, low + (cut - narrowest) // _STEP
    if max(kept, moved) >= data.family_shape[into + 1]:
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
    begin(state)
    shift(data, state, scope, state.slot_shape[slot], site, -1.0)
    shift(data, state, scope, kept, site, 1.0)
    shift(data, state, scope, moved, target, 1.0)
    if keeps(data, state, before, bar):
        state.slot_shape[slot] = kept
        new = data.item_slot[item] + pieces
        state.slot_shape[new], state.slot_site[new] = moved, target
        if scope == RANK:
            enlist(state, new, target)
        state.num_pieces[item] = pieces + 1
        state.family[item] = into
        return True
    undo(data, state)
    return False


@compiled
def merge_pieces(data: Data, state: State, before: float, bar: float) -> bool:
    """Join two pieces of a table on the site of one of them; the last two become a whole table."""
    item = pick_item(data, state)
    family, pieces = state.family[item], state.num_pieces[item]
    if data.item_fixed[item] or pieces < 2:
        return False
    into = family if pieces > data.family_min_pieces[family] else kin(data, state, item, True)
    if into < 0:
        return False
    scope = data.family_scope[family]
    first = data.item_slot[item]
    one, other = first + random_below(state, pieces), first + random_below(state, pieces)
    columns = data.shape_columns[state.slot_shape[one]] + data.shape_columns[state.slot_shape[other]]
    joined = data.family_shape[into] + (columns - data.family_narrowest[into]) // _STEP
    if one == other or joined >= data.family_shape[into + 1]:
        return False
    begin(state)
    shift(data, state, scope, state.slot_shape[one], state.slot_site[one], -1.0)
    shift(data, state, scope, state.slot_shape[other], state.slot_site[other], -1.0)
    shift(data, state, scope, joined, state.slot_site[one], 1.0)
    if keeps(data, state, before, bar):
        state.slot_shape[one] = joined
        last = first + pieces - 1
        if scope == RANK:
            delist(state, other, state.slot_site[other])
            if other != last:
                delist(state, last, state.slot_site[last])
                enlist(state, other, state.slot_site[last])
        state.slot_shape[other], state.slot_site[other] = state.slot_shape[last], state.slot_site[last]
        state.num_pieces[item] = pieces - 1
        state.family[item] = into
        return True
    undo(data, state)
    return False


@compiled
def deal_ranks(data: Data, state: State, before: float, bar: float) -> bool:
    """Share the pieces of a pressed rank and another out anew."""
    here, there = pick_rank(data, state, True), random_below(state, state.loads.shape[0])
    return here != there and deal_anew(data, state, here, there, before, bar)


@compiled
def replace_item(data: Data, state: State, before: float, bar: float) -> bool:
    """Take an item off and place it again under a random listed option."""
    item = pick_item(data, state)
    if data.item_fixed[item]:
        return False
    options = data.item_option[item + 1] - data.item_option[item]
    option = data.item_option[item] + random_below(state, options)
    return change_option(data, state, item, option, before, bar)


@compiled
def change_option(data: Data, state: State, item: int, option: int, before: float, bar: float) -> bool:
    """Place an item again under an option, every piece where it hurts least."""
    pieces, family = take_off(data, state, item)
    placed = place_units(
        data, state, item, data.option_family[option], data.option_unit[option], data.option_unit[option + 1]
    )
    if placed and keeps(data, state, before, bar):
        return True
    put_back(data, state, item, pieces, family)
    return False


@compiled
def take_off(data: Data, state: State, item: int) -> tuple[int, int]:
    """Begin a proposal that takes all pieces of an item off; return their number and its family."""
    first, pieces, family = data.item_slot[item], state.num_pieces[item], state.family[item]
    begin(state)
    for i in range(pieces):
        state.kept_shape[i], state.kept_site[i] = state.slot_shape[first + i], state.slot_site[first + i]
        take(data, state, first + i, data.family_scope[family])
    return pieces, family


@compiled
def put_back(data: Data, state: State, item: int, pieces: int, family: int) -> None:
    """Undo what was done to an item after ``take_off``."""
    first = data.item_slot[item]
    if data.family_scope[state.family[item]] == RANK:
        for slot in range(first, first + state.num_pieces[item]):
            delist(state, slot, state.slot_site[slot])
    undo(data, state)
    state.family[item], state.num_pieces[item] = family, pieces
    for i in range(pieces):
        state.slot_shape[first + i], state.slot_site[first + i] = state.kept_shape[i], state.kept_site[i]
        if data.family_scope[family] == RANK:
            enlist(state, first + i, state.kept_site[i])


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
            if scope == RANK and not rank_is_legal(data, state, item, data.home_site[slot]):
                return False
            if scope == HOST and not host_is_legal(data, state, item, data.home_site[slot]):
                return False
    pieces, family = take_off(data, state, item)
    state.family[item], state.num_pieces[item] = home, data.home_pieces[item]
    for slot in range(first, first + data.home_pieces[item]):
        put(data, state, slot, scope, data.home_shape[slot], data.home_site[slot])
    if keeps(data, state, before, bar):
        return True
    put_back(data, state, item, pieces, family)
    return False


@compiled
def propose(data: Data, state: State, before: float, bar: float, cuts: bool, deals: float) -> bool:
    """Try one random move; without ``cuts`` every table keeps its pieces."""
    if deals > 0 and random_unit(state) < deals:
        return deal_ranks(data, state, before, bar)
    if data.columns_before.shape[0] > 0 and random_unit(state) < _HOMEWARD:
        return send_home(data, state, before, bar)
    kind = random_below(state, 100)
    if not cuts:
        if kind < 45:
            return move_piece(data, state, before, bar)
        if kind < 96:
            return swap_pieces(data, state, before, bar)
        return move_host_piece(data, state, before, bar)
    if kind < 28:
        return move_piece(data, state, before, bar)
    if kind < 60:
        return swap_pieces(data, state, before, bar)
    if kind < 74:
        return shift_columns(data, state, before, bar)
    if kind < 81:
        return split_piece(data, state, before, bar)
    if kind < 88:
        return merge_pieces(data, state, before, bar)
    if kind < 93:
        return move_host_piece(data, state, before, bar)
    return replace_item(data, state, before, bar)


@compiled
def anneal(
    data: Data,
    state: State,
    proposals: int,
    temperature: float,
    smoothness: float,
    penalty: float,
    cuts: bool,
    deals: float,
) -> int:
    """Try a number of moves at one temperature, of them a part ``deals`` of two ranks; return how many were kept."""
    refresh(data, state, smoothness, penalty)
    kept = 0
    value = cost(data, state)
    reprice(data, state)
    for _ in range(proposals):
        if propose(data, state, value, -temperature * np.log(1.0 - random_unit(state)), cuts, deals):
            kept += 1
            value = cost(data, state)
            reprice(data, state)
    return kept


@compiled
def construct(data: Data, state: State, order: np.ndarray, options: np.ndarray, every: int) -> bool:
    """Place items that are not placed yet, in this order, each under its option.

    ``every`` is after how many items the weights of ranks are counted anew.
    """
    for i in range(order.shape[0]):
        item = order[i]
        if i % every == 0:
            rescale(data, state)
        option = options[item]
        begin(state)
        if not place_units(
            data, state, item, data.option_family[option], data.option_unit[option], data.option_unit[option + 1]
        ):
            return False
    return True


@compiled
def rescale(data: Data, state: State) -> None:
    """Count weights anew with the reference where the loads are; tau stays."""
    for q in range(state.tau.shape[0]):
        slowest = 0.0
        for r in range(state.loads.shape[0]):
            slowest = max(slowest, state.loads[r, q])
        state.reference[q] = slowest
        total = 0.0
        for r in range(state.loads.shape[0]):
            state.weights[r, q] = np.exp((state.loads[r, q] - slowest) / state.tau[q])
            total += state.weights[r, q]
        state.sums[q] = total


@compiled
def restore(data: Data, state: State, item: int, family: int, shapes: np.ndarray, sites: np.ndarray) -> None:
    """Put an item, which has no pieces, where it was."""
    begin(state)
    state.family[item] = family
    state.num_pieces[item] = 0
    for i in range(shapes.shape[0]):
        put(data, state, data.item_slot[item] + i, data.family_scope[family], shapes[i], sites[i])
        state.num_pieces[item] += 1
