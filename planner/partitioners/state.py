r"""The state of a search: where every piece is, what every rank carries, and what that costs.

The cost is a smooth stand-in for the objective,

.. math:: E = \sum_q w_q \max(0, W_q + \tau_q \log \sum_r e^{L_{rq} / \tau_q} - v_q)
    + \pi \cdot moved + \rho \cdot over,

with L the load of rank r in phase q, W what every rank carries, v hidden seconds, moved the bytes that do not
lie yet where they go, and over the sum over ranks of the bytes beyond their capacity, as parts of it
(with the bytes that move beyond what may, as parts of that). As tau falls the logarithm becomes the
slowest rank's load. Adding W outside is exact, so that what lies on all ranks costs one addition.

Every change notes the rows it touches, so that a proposal that is refused is undone bit by bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.partitioners.compiled import compiled
from planner.partitioners.view import Data

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RANK, HOST, WORLD = 0, 1, 2
MOST_PIECES = 13  #: that two ranks deal anew
_MOST = 500.0  # exponents are clipped: e^500 is far worse than anything a search keeps
#: Part of a phase's time that counts while it is hidden, so that a search still tells two plans apart.
_HIDDEN = 1e-3

# Indices into State.number
SMOOTHNESS, PENALTY, OVER, STAMP, NUM_TOUCHED, WORLD_CHANGED, MOVED, NUM_CARRIED, MOVE_PRICE = range(9)
# Indices into Data.move
PER_BYTE, MOST_BYTES, OVER_BYTES = range(3)


class State(NamedTuple):
    """Arrays that change during a search. R ranks, Q phases, M tiers, N slots, I items."""

    slot_shape: Ints  # (N,)
    slot_site: Ints  # (N,)
    num_pieces: Ints  # (I,) 0 while an item is not placed
    family: Ints  # (I,)
    loads: Floats  # (R, Q) without what lies on all ranks
    bytes: Floats  # (R, M)
    world_loads: Floats  # (Q,)
    world_bytes: Floats  # (M,)
    weights: Floats  # (R, Q) e^((L - reference) / tau)
    sums: Floats  # (Q,) of the weights over ranks
    reference: Floats  # (Q,)
    tau: Floats  # (Q,)
    over: Floats  # (R,) bytes beyond the capacity, as parts of it, over tiers
    rank_slots: Ints  # (R, room) slots of pieces that lie on one rank
    rank_count: Ints  # (R,)
    slot_place: Ints  # (N,) where in rank_slots
    touched: Ints  # (R,) ranks noted in this proposal
    stamp: Ints  # (R,) proposal in which a rank was noted last
    old_loads: Floats  # (R, Q) as they were
    old_bytes: Floats  # (R, M)
    old_weights: Floats  # (R, Q)
    old_over: Floats  # (R,)
    old_sums: Floats  # (Q,)
    old_world: Floats  # (Q,)
    old_world_bytes: Floats  # (M,)
    number: Floats  # see the indices above
    old_number: Floats
    kept_shape: Ints  # (most pieces of one item,) an item's pieces while another cut is tried
    kept_site: Ints
    gain: Floats  # (Q,) see sites.weigh
    price: Floats  # (Q,) phase weight over the sum of weights
    columns_here: NDArray[np.int32]  # (I, R + H) as Data.columns_before
    carried: Ints  # (room, 3) item, place and columns of each change to columns_here in this proposal
    seed: NDArray[np.uint64]  # (1,)


def empty_state(data: Data, seed: int) -> State:
    """Return a state in which nothing is placed."""
    ranks, phases = data.rank_class.shape[0], data.weight.shape[0]
    tiers, slots, items = data.capacity.shape[1], data.slot_item.shape[0], data.item_columns.shape[0]
    most = int(np.max(np.diff(data.item_slot)))
    return State(
        slot_shape=np.full(slots, -1, dtype=np.int64),
        slot_site=np.full(slots, -1, dtype=np.int64),
        num_pieces=np.zeros(items, dtype=np.int64),
        family=np.full(items, -1, dtype=np.int64),
        loads=np.zeros((ranks, phases)),
        bytes=np.zeros((ranks, tiers)),
        world_loads=np.zeros(phases),
        world_bytes=np.zeros(tiers),
        weights=np.ones((ranks, phases)),
        sums=np.full(phases, float(ranks)),
        reference=np.zeros(phases),
        tau=np.ones(phases),
        over=np.zeros(ranks),
        rank_slots=np.zeros((ranks, max(64, 6 * slots // ranks)), dtype=np.int64),
        rank_count=np.zeros(ranks, dtype=np.int64),
        slot_place=np.full(slots, -1, dtype=np.int64),
        touched=np.zeros(ranks, dtype=np.int64),
        stamp=np.zeros(ranks, dtype=np.int64),
        old_loads=np.zeros((ranks, phases)),
        old_bytes=np.zeros((ranks, tiers)),
        old_weights=np.zeros((ranks, phases)),
        old_over=np.zeros(ranks),
        old_sums=np.zeros(phases),
        old_world=np.zeros(phases),
        old_world_bytes=np.zeros(tiers),
        number=np.zeros(9),
        old_number=np.zeros(9),
        kept_shape=np.zeros(most, dtype=np.int64),
        kept_site=np.zeros(most, dtype=np.int64),
        gain=np.zeros(phases),
        price=np.zeros(phases),
        columns_here=np.zeros_like(data.columns_before),
        carried=np.zeros((2 * most + 4 * MOST_PIECES, 3), dtype=np.int64),
        seed=np.array([seed * 2654435761 + 1], dtype=np.uint64),
    )


@compiled
def random_bits(state: State) -> int:
    """Return the next 53 random bits (splitmix64, Steele, Lea and Flood, OOPSLA 2014)."""
    state.seed[0] = state.seed[0] + np.uint64(0x9E3779B97F4A7C15)
    z = state.seed[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return int((z ^ (z >> np.uint64(31))) >> np.uint64(11))


@compiled
def random_below(state: State, count: int) -> int:
    """Return a whole number in [0, count)."""
    return random_bits(state) % count


@compiled
def random_unit(state: State) -> float:
    """Return a number in [0, 1)."""
    return random_bits(state) * (1.0 / 9007199254740992.0)


@compiled
def refresh(data: Data, state: State, smoothness: float, penalty: float) -> None:
    """Set the smoothness (slowest load / tau) and count weights and overflow anew."""
    ranks, phases = state.loads.shape
    state.number[SMOOTHNESS], state.number[PENALTY] = smoothness, penalty
    for q in range(phases):
        slowest = 0.0
        for r in range(ranks):
            slowest = max(slowest, state.loads[r, q])
        state.reference[q] = slowest
        state.tau[q] = max((slowest + state.world_loads[q]) / smoothness, 1e-30)
        total = 0.0
        for r in range(ranks):
            weight = np.exp((state.loads[r, q] - slowest) / state.tau[q])
            state.weights[r, q] = weight
            total += weight
        state.sums[q] = total
    count_moved(data, state)
    count_overflow(data, state)


@compiled
def count_moved(data: Data, state: State) -> None:
    """Count the bytes that move: sums of many changes drift."""
    total = 0.0
    ranks = state.loads.shape[0]
    for item in range(data.columns_before.shape[0]):
        first = data.item_slot[item]
        for slot in range(first, first + state.num_pieces[item]):
            total += data.shape_moved[state.slot_shape[slot]]
            scope = data.family_scope[state.family[item]]
            if scope == WORLD:
                continue
            is_first = True
            for other in range(first, slot):
                is_first = is_first and state.slot_site[other] != state.slot_site[slot]
            if is_first:
                place = state.slot_site[slot] + (ranks if scope == HOST else 0)
                found = min(data.columns_before[item, place], state.columns_here[item, place])
                total -= found * data.column_bytes[item, place]
    state.number[MOVED] = total


@compiled
def move_overflow(data: Data, state: State) -> float:
    """Return the bytes that move beyond what may, in parts that compare with a rank's."""
    return max(0.0, state.number[MOVED] - data.move[MOST_BYTES]) / data.move[OVER_BYTES]


@compiled
def moved_by(data: Data, state: State, place: int, shape: int, sign: float) -> float:
    """Return how many bytes more move with a piece on a place, or without it."""
    item, columns = data.shape_item[shape], np.int64(sign) * data.shape_columns[shape]
    before, here = data.columns_before[item, place], state.columns_here[item, place]
    found = min(before, here + columns) - min(before, here)
    return sign * data.shape_moved[shape] - found * data.column_bytes[item, place]


@compiled
def carry(data: Data, state: State, scope: int, shape: int, site: int, sign: float) -> None:
    """Count the bytes that move with a piece that is placed, or taken off."""
    if data.columns_before.shape[0] == 0:
        return
    before = move_overflow(data, state)
    if scope == WORLD:
        state.number[MOVED] += sign * data.shape_moved[shape]
    else:
        place = site if scope == RANK else state.loads.shape[0] + site
        item, columns = data.shape_item[shape], np.int64(sign) * data.shape_columns[shape]
        state.number[MOVED] += moved_by(data, state, place, shape, sign)
        state.columns_here[item, place] += columns
        count = np.int64(state.number[NUM_CARRIED])
        state.carried[count, 0], state.carried[count, 1], state.carried[count, 2] = item, place, columns
        state.number[NUM_CARRIED] += 1.0
    state.number[OVER] += move_overflow(data, state) - before


@compiled
def count_overflow(data: Data, state: State) -> None:
    """Count the bytes beyond capacity of all ranks, and beyond what may move."""
    total = move_overflow(data, state)
    for r in range(state.over.shape[0]):
        state.over[r] = rank_overflow(data, state, r)
        total += state.over[r]
    state.number[OVER] = total


@compiled
def rank_overflow(data: Data, state: State, r: int) -> float:
    """Return the bytes beyond a rank's capacity, as parts of it."""
    over = 0.0
    for m in range(state.world_bytes.shape[0]):
        used = state.bytes[r, m] + state.world_bytes[m]
        if used > data.capacity[r, m]:
            over += (used - data.capacity[r, m]) / max(data.capacity[r, m], 1.0)
    return over


@compiled
def cost(data: Data, state: State) -> float:
    """Return the smooth cost of the state."""
    total = 0.0
    for q in range(state.tau.shape[0]):
        slowest = state.world_loads[q] + state.reference[q] + state.tau[q] * np.log(state.sums[q])
        exposed = slowest - data.window[q]
        total += data.weight[q] * (max(exposed, 0.0) + (_HIDDEN * slowest if data.window[q] > 0 else 0.0))
    total += state.number[MOVE_PRICE] * state.number[MOVED]
    return total + state.number[PENALTY] * state.number[OVER]


@compiled
def reprice(data: Data, state: State) -> None:
    """Note how much the cost falls with the weight of a rank, phase by phase."""
    for q in range(state.tau.shape[0]):
        state.price[q] = data.weight[q] / state.sums[q]


@compiled
def objective(data: Data, state: State) -> float:
    """Return the exact objective of the loads as they are, with the price of what moves."""
    total = data.move[PER_BYTE] * state.number[MOVED]
    for q in range(state.tau.shape[0]):
        slowest = 0.0
        for r in range(state.loads.shape[0]):
            slowest = max(slowest, state.loads[r, q])
        total += data.weight[q] * max(slowest + state.world_loads[q] - data.window[q], 0.0)
    return total


@compiled
def begin(state: State) -> None:
    """Begin a proposal: note what is global, forget which ranks were noted."""
    state.number[STAMP] += 1.0
    state.number[NUM_TOUCHED] = 0.0
    state.number[WORLD_CHANGED] = 0.0
    state.old_sums[:] = state.sums
    state.old_world[:] = state.world_loads
    state.old_world_bytes[:] = state.world_bytes
    state.old_number[OVER] = state.number[OVER]
    state.old_number[MOVED] = state.number[MOVED]
    state.number[NUM_CARRIED] = 0.0


@compiled
def note(state: State, r: int) -> None:
    """Note a rank's row before its first change in this proposal."""
    if state.stamp[r] != np.int64(state.number[STAMP]):
        state.stamp[r] = np.int64(state.number[STAMP])
        state.touched[np.int64(state.number[NUM_TOUCHED])] = r
        state.number[NUM_TOUCHED] += 1.0
        for q in range(state.tau.shape[0]):
            state.old_loads[r, q] = state.loads[r, q]
            state.old_weights[r, q] = state.weights[r, q]
        for m in range(state.world_bytes.shape[0]):
            state.old_bytes[r, m] = state.bytes[r, m]
        state.old_over[r] = state.over[r]


@compiled
def undo(data: Data, state: State) -> None:
    """Put the rows back that this proposal changed."""
    for i in range(np.int64(state.number[NUM_TOUCHED])):
        r = state.touched[i]
        for q in range(state.tau.shape[0]):
            state.loads[r, q] = state.old_loads[r, q]
            state.weights[r, q] = state.old_weights[r, q]
        for m in range(state.world_bytes.shape[0]):
            state.bytes[r, m] = state.old_bytes[r, m]
        state.over[r] = state.old_over[r]
    state.sums[:] = state.old_sums
    state.world_loads[:] = state.old_world
    state.world_bytes[:] = state.old_world_bytes
    for i in range(np.int64(state.number[NUM_CARRIED])):
        state.columns_here[state.carried[i, 0], state.carried[i, 1]] -= state.carried[i, 2]
    state.number[NUM_CARRIED] = 0.0
    state.number[MOVED] = state.old_number[MOVED]
    if state.number[WORLD_CHANGED] > 0:
        count_overflow(data, state)
    state.number[OVER] = state.old_number[OVER]


@compiled
def shift_rank(data: Data, state: State, r: int, shape: int, sign: float) -> None:
    """Add a piece to a rank's load, or take it off."""
    note(state, r)
    kind = data.rank_class[r]
    for q in range(state.tau.shape[0]):
        load = state.loads[r, q] + sign * data.shape_seconds[kind, shape, q]
        state.loads[r, q] = load
        weight = np.exp(min((load - state.reference[q]) / state.tau[q], _MOST))
        state.sums[q] += weight - state.weights[r, q]
        state.weights[r, q] = weight
    for m in range(state.world_bytes.shape[0]):
        state.bytes[r, m] += sign * data.shape_bytes[shape, m]
    over = rank_overflow(data, state, r)
    state.number[OVER] += over - state.over[r]
    state.over[r] = over


@compiled
def exchange(data: Data, state: State, r: int, out: int, into: int) -> None:
    """Take one piece off a rank's load and add another; cheaper than one after the other."""
    note(state, r)
    carry(data, state, RANK, out, r, -1.0)
    carry(data, state, RANK, into, r, 1.0)
    kind = data.rank_class[r]
    for q in range(state.tau.shape[0]):
        load = state.loads[r, q] - data.shape_seconds[kind, out, q] + data.shape_seconds[kind, into, q]
        state.loads[r, q] = load
        weight = np.exp(min((load - state.reference[q]) / state.tau[q], _MOST))
        state.sums[q] += weight - state.weights[r, q]
        state.weights[r, q] = weight
    for m in range(state.world_bytes.shape[0]):
        state.bytes[r, m] += data.shape_bytes[into, m] - data.shape_bytes[out, m]
    over = rank_overflow(data, state, r)
    state.number[OVER] += over - state.over[r]
    state.over[r] = over


@compiled
def shift(data: Data, state: State, scope: int, shape: int, site: int, sign: float) -> None:
    """Add a piece to all ranks of its site, or take it off."""
    carry(data, state, scope, shape, site, sign)
    if scope == RANK:
        shift_rank(data, state, site, shape, sign)
        return
    ranks = state.loads.shape[0]
    if scope == HOST:
        local = ranks // data.host_allowed.shape[1]
        for r in range(site * local, (site + 1) * local):
            shift_rank(data, state, r, shape, sign)
        return
    if data.shape_seconds.shape[0] > 1:  # ranks of unequal speed
        for r in range(ranks):
            shift_rank(data, state, r, shape, sign)
        return
    for q in range(state.tau.shape[0]):
        state.world_loads[q] += sign * data.shape_seconds[0, shape, q]
    for m in range(state.world_bytes.shape[0]):
        state.world_bytes[m] += sign * data.shape_bytes[shape, m]
    state.number[WORLD_CHANGED] = 1.0
    count_overflow(data, state)


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
