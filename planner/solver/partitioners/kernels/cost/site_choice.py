"""Where pieces may go, and where they would hurt least."""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.smooth_cost import sum_of_weights
from planner.solver.partitioners.kernels.state.pieces import put
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.state import (
    HOST,
    RANK,
    State,
)
from planner.solver.partitioners.kernels.state.undo_log import moved_by
from planner.solver.partitioners.local_search.search_data import Data

ALL_RANKS = 192  # clusters up to this size are scanned whole; of larger ones first a sample this large
_MOST = 300.0


@compiled
def shares_rank(data: Data, state: State, item: int, rank: int) -> bool:
    """Whether an item that must stay apart from this one has a piece on the rank."""
    for i in range(data.apart_first[item], data.apart_first[item + 1]):
        other = data.apart_item[i]
        if state.num_pieces[other] == 0:
            continue
        scope = data.family_scope[state.family[other]]
        for slot in range(data.item_slot[other], data.item_slot[other] + state.num_pieces[other]):
            site = state.slot_site[slot]
            if scope == RANK:
                if site == rank:
                    return True
            elif scope != HOST or site == data.rank_host[rank]:
                return True
    return False


@compiled
def mark_taken(data: Data, state: State, item: int) -> None:
    """Mark the ranks that the item must keep apart from, so that looking at all of them takes one step for each."""
    state.counters[0].num_marks += 1
    mark, ranks = state.counters[0].num_marks, state.taken.shape[0]
    local = ranks // data.host_allowed.shape[1]
    for i in range(data.apart_first[item], data.apart_first[item + 1]):
        other = data.apart_item[i]
        if state.num_pieces[other] == 0:
            continue
        scope = data.family_scope[state.family[other]]
        wide = 1 if scope == RANK else local if scope == HOST else ranks
        for slot in range(data.item_slot[other], data.item_slot[other] + state.num_pieces[other]):
            first = state.slot_site[slot] * wide
            state.taken[first : first + wide] = mark


@compiled
def is_marked(state: State, rank: int) -> bool:
    """Whether ``mark_taken``, called last, marked a rank."""
    return bool(state.taken[rank] == state.counters[0].num_marks)


@compiled
def rank_is_legal(data: Data, state: State, item: int, rank: int) -> bool:
    """Whether an item may use a rank at all."""
    if not data.allowed[item, rank]:
        return False
    return data.apart_first[item] == data.apart_first[item + 1] or not shares_rank(data, state, item, rank)


@compiled
def may_move(data: Data, state: State, slot: int, rank: int) -> bool:
    """Whether the piece of a slot may go to another rank, the other pieces staying where they are."""
    item = data.slot_item[slot]
    if data.item_fixed[item] or not rank_is_legal(data, state, item, rank):
        return False
    if not data.family_same_host[state.family[item]] or state.num_pieces[item] == 1:
        return True
    return data.rank_host[rank] == data.rank_host[state.slot_site[slot]]


@compiled
def host_is_legal(data: Data, state: State, item: int, host: int) -> bool:
    """Whether an item may use all ranks of a host."""
    if not data.host_allowed[item, host]:
        return False
    if data.apart_first[item] == data.apart_first[item + 1]:
        return True
    local = data.rank_host.shape[0] // data.host_allowed.shape[1]
    for r in range(host * local, (host + 1) * local):  # noqa: SIM110 - numba compiles no generators
        if shares_rank(data, state, item, r):
            return False
    return True


@compiled
def may_change_site(data: Data, state: State, scope: int, slot: int, site: int) -> bool:
    """Whether the piece of a slot may go to another rank, or to another host, the others staying where they are."""
    if scope == RANK:
        return may_move(data, state, slot, site)
    item = data.slot_item[slot]
    return not data.item_fixed[item] and host_is_legal(data, state, item, site)


@compiled
def site_is_legal(data: Data, state: State, item: int, scope: int, site: int) -> bool:
    """Whether an item may use a rank, or all ranks of a host; everything may lie on all ranks where it is listed so."""
    if scope == RANK:
        return rank_is_legal(data, state, item, site)
    return scope != HOST or host_is_legal(data, state, item, site)


@compiled
def weigh(data: Data, state: State, kind: int, shape: int) -> None:
    """Prepare ``increase`` for one shape on ranks of one class."""
    for q in range(state.tau.shape[0]):
        step = min(data.shape_seconds[kind, shape, q] / state.tau[q], _MOST)
        state.growth_per_weight[q] = data.weight[q] * state.tau[q] * np.expm1(step) / sum_of_weights(state, q)


@compiled
def increase(data: Data, state: State, rank: int, shape: int) -> float:
    """Return about how much the cost grows with a piece on a rank: right in order, to first order in size."""
    total = 0.0
    for q in range(state.tau.shape[0]):
        total += state.growth_per_weight[q] * state.weights[rank, q]
    for m in range(state.world_bytes.shape[0]):
        capacity = data.capacity[rank, m]
        excess = state.bytes[rank, m] + state.world_bytes[m] + data.shape_bytes[shape, m] - capacity
        if excess > 0:
            total += state.counters[0].overflow_penalty * excess / max(capacity, 1.0)
    return total


@compiled
def moving(data: Data, state: State, place: int, shape: int) -> float:
    """Return how much the cost grows with the bytes that a piece moves to a place."""
    if data.columns_before.shape[0] == 0:
        return 0.0
    moved = moved_by(data, state, place, shape, 1.0)
    excess = state.counters[0].moved_bytes + moved - max(state.counters[0].moved_bytes, data.move[0].max_bytes)
    return (
        state.counters[0].move_price * moved
        + state.counters[0].overflow_penalty * max(excess, 0.0) / data.move[0].overflow_unit_bytes
    )


@compiled
def has_room(data: Data, state: State, rank: int, shape: int) -> bool:
    """Whether the bytes of a piece fit on a rank."""
    for m in range(state.world_bytes.shape[0]):
        if state.bytes[rank, m] + state.world_bytes[m] + data.shape_bytes[shape, m] > data.capacity[rank, m]:
            return False
    return True


@compiled
def has_room_for_swap(data: Data, state: State, rank: int, off: int, on: int) -> bool:
    """Whether the bytes of a piece fit on a rank once another is gone; -1 stands for none."""
    for m in range(state.world_bytes.shape[0]):
        more = data.shape_bytes[on, m] if on >= 0 else 0.0
        more -= data.shape_bytes[off, m] if off >= 0 else 0.0
        if more > 0 and state.bytes[rank, m] + state.world_bytes[m] + more > data.capacity[rank, m]:
            return False
    return True


@compiled
def best_rank(data: Data, state: State, item: int, shape: int, low: int, high: int) -> int:
    """Return the legal rank in [low, high) where a piece hurts least; -1 where there is none.

    Of many ranks a sample is looked at, and all where none of those has room.
    """
    count = high - low
    sample = count if count <= ALL_RANKS else ALL_RANKS
    start = 0 if sample == count else random_below(state, count)
    stride = 1 if sample == count else 1 + random_below(state, count - 1)
    best, least, kind = -1, np.inf, -1
    mark_taken(data, state, item)
    for i in range(sample if sample == count else sample + count):
        if i == sample and best >= 0 and has_room(data, state, best, shape):
            break
        rank = low + (start + i * stride) % count if i < sample else low + i - sample
        if not data.allowed[item, rank] or is_marked(state, rank):
            continue
        if data.rank_class[rank] != kind:
            kind = data.rank_class[rank]
            weigh(data, state, kind, shape)
        value = increase(data, state, rank, shape) + moving(data, state, rank, shape)
        if value < least:
            best, least = rank, value
    return best


@compiled
def best_host(data: Data, state: State, item: int, shape: int) -> int:
    """Return the legal host where a piece on all its ranks hurts least; -1 where there is none."""
    hosts = data.host_allowed.shape[1]
    local = data.rank_host.shape[0] // hosts
    best, least, kind = -1, np.inf, -1
    mark_taken(data, state, item)
    for host in range(hosts):
        is_legal = data.host_allowed[item, host]
        for r in range(host * local, (host + 1) * local):
            is_legal = is_legal and not is_marked(state, r)
        if not is_legal:
            continue
        value = moving(data, state, data.rank_host.shape[0] + host, shape)
        for r in range(host * local, (host + 1) * local):
            if data.rank_class[r] != kind:
                kind = data.rank_class[r]
                weigh(data, state, kind, shape)
            value += increase(data, state, r, shape)
        if value < least:
            best, least = host, value
    return best


@compiled
def place_units(data: Data, state: State, item: int, option: int) -> bool:
    """Place the listed pieces of an option of an item, which has none, one after the other where each hurts least.

    ``False`` where a piece has no legal site; what was placed stays for the caller to take off.
    """
    family, first_unit = data.option_family[option], data.option_unit[option]
    scope = data.family_scope[family]
    ranks = data.rank_host.shape[0]
    low, high = 0, ranks
    state.family[item] = family
    state.num_pieces[item] = 0
    if data.family_same_host[family]:
        local = ranks // data.host_allowed.shape[1]
        anchor = best_rank(data, state, item, data.unit_shape[first_unit], 0, ranks)
        if anchor < 0:
            return False
        low = anchor // local * local
        high = low + local
    for unit in range(first_unit, data.option_unit[option + 1]):
        shape = data.unit_shape[unit]
        site = 0
        if scope == RANK:
            site = best_rank(data, state, item, shape, low, high)
        elif scope == HOST:
            site = best_host(data, state, item, shape)
        if site < 0:
            return False
        put(data, state, data.item_slot[item] + state.num_pieces[item], scope, shape, site)
        state.num_pieces[item] += 1
    return True
