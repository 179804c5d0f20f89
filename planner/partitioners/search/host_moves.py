"""Moves of pieces that lie on whole hosts: one to another host, two exchanged."""

from planner.partitioners.compiled import compiled
from planner.partitioners.search.growth import keeps, least_growth, slopes_tell, write_slopes
from planner.partitioners.search.picks import pick_host
from planner.partitioners.search.pieces import delist, enlist
from planner.partitioners.search.randomness import random_below
from planner.partitioners.search.shifts import begin, carry, exchange_rank, shift, undo
from planner.partitioners.search.sites import may_change_host, ranks_of_site
from planner.partitioners.search.state import HOST, State
from planner.partitioners.view import Data

_PAIRS = 12  # of pieces that a swap of two hosts looks at


@compiled
def exchange_on_host(data: Data, state: State, host: int, out: int, into: int) -> None:
    """Take one piece off all ranks of a host and add another."""
    carry(data, state, HOST, out, host, -1.0)
    carry(data, state, HOST, into, host, 1.0)
    local = ranks_of_site(data, HOST)
    for r in range(host * local, (host + 1) * local):
        exchange_rank(data, state, r, out, into)


@compiled
def move_host_piece(data: Data, state: State, before: float, bar: float) -> bool:
    """Move a piece that lies on a whole host to another host."""
    hosts = data.host_allowed.shape[1]
    source = pick_host(data, state, True) if random_below(state, 2) else random_below(state, hosts)
    target = pick_host(data, state, False) if random_below(state, 2) else random_below(state, hosts)
    listed = state.loads.shape[0] + source
    if target == source or state.site_count[listed] == 0:
        return False
    slot = state.site_slots[listed, random_below(state, state.site_count[listed])]
    if not may_change_host(data, state, slot, target):
        return False
    shape = state.slot_shape[slot]
    if slopes_tell(data, state):
        write_slopes(data, state, source, state.slopes[0])
        write_slopes(data, state, target, state.slopes[1])
        if least_growth(data, state.slopes[1], shape) - least_growth(data, state.slopes[0], shape) > bar:
            return False
    begin(state)
    shift(data, state, HOST, shape, source, -1.0)
    shift(data, state, HOST, shape, target, 1.0)
    if keeps(data, state, before, bar):
        delist(state, slot, HOST, source)
        enlist(state, slot, HOST, target)
        state.slot_site[slot] = target
        return True
    undo(data, state)
    return False


@compiled
def swap_host_pieces(data: Data, state: State, before: float, bar: float) -> bool:
    """Exchange the hosts of two pieces: a few pairs of two hosts are looked at."""
    hosts, ranks = data.host_allowed.shape[1], state.loads.shape[0]
    here = pick_host(data, state, True) if random_below(state, 2) else random_below(state, hosts)
    there = random_below(state, hosts)
    if here == there or state.site_count[ranks + here] == 0 or state.site_count[ranks + there] == 0:
        return False
    filtered = slopes_tell(data, state)
    write_slopes(data, state, here, state.slopes[0])
    write_slopes(data, state, there, state.slopes[1])
    for q in range(state.tau.shape[0]):
        state.slopes[1, q] -= state.slopes[0, q]  # of what goes from here to there
    for _ in range(_PAIRS):
        one = state.site_slots[ranks + here, random_below(state, state.site_count[ranks + here])]
        other = state.site_slots[ranks + there, random_below(state, state.site_count[ranks + there])]
        out, into = state.slot_shape[one], state.slot_shape[other]
        if filtered and least_growth(data, state.slopes[1], out) - least_growth(data, state.slopes[1], into) > bar:
            continue
        if data.slot_item[one] == data.slot_item[other]:
            continue
        if not may_change_host(data, state, one, there) or not may_change_host(data, state, other, here):
            continue
        begin(state)
        exchange_on_host(data, state, here, out, into)
        exchange_on_host(data, state, there, into, out)
        if keeps(data, state, before, bar):
            delist(state, one, HOST, here)
            delist(state, other, HOST, there)
            enlist(state, one, HOST, there)
            enlist(state, other, HOST, here)
            state.slot_site[one], state.slot_site[other] = there, here
            return True
        undo(data, state)
        return False
    return False
