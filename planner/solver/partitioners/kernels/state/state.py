"""The state of a search, as arrays: where every piece is, what every rank carries, what may have to be put back.

Numbers of which there is one, such as the bytes that move, are fields of the record ``COUNTERS``. Every array has one
meaning, so that no code needs to know what lies at which index.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.local_search.search_data import Data, Ints32

RANK, HOST, WORLD = 0, 1, 2
COLUMN_STEP = 4  #: columns between one width of a family and the next
MOST_PIECES = 13  #: that two ranks deal again
MOST_SWAPS = 24  #: in which ranks hand on what they have too much of

#: The single numbers of a state, as one record: Python and compiled functions read and write them by name.
COUNTERS = np.dtype(
    [
        ("overflow_penalty", np.float64),  # seconds of cost per unit of overflow
        ("overflow", np.float64),  # sum of State.over, and of bytes moved beyond the budget, in capacities of a rank
        ("move_price", np.float64),  # seconds of cost per moved byte
        ("moved_bytes", np.float64),  # that do not lie yet where they go
        ("old_overflow", np.float64),  # as it was before this proposal
        ("old_moved_bytes", np.float64),
        ("proposal", np.int64),  # number of this proposal
        ("num_touched", np.int64),  # ranks noted in this proposal: rows of State.touched in use
        ("num_movements", np.int64),  # rows of State.movements in use
        ("num_marks", np.int64),  # the last mark that was given, see State.taken
        ("world_changed", np.bool_),  # whether this proposal changed what lies on all ranks
    ],
    align=True,
)

#: A change of State.columns_here.
MOVEMENT = np.dtype([("item", np.int64), ("place", np.int64), ("columns", np.int64)])

#: What an exchange of two sites adds to the cost, phase by phase.
EXCHANGE = np.dtype(
    [
        ("weights_here", np.float64),  # weights of the first site, summed over its ranks
        ("weights_there", np.float64),  # of the second
        ("gained_here", np.float64),  # seconds that each rank of the first site gains
        ("gained_there", np.float64),  # of the second
        ("least_growth", np.float64),  # seconds that it adds at least to the cost
    ]
)


class State(NamedTuple):
    """Arrays that change during a search.

    R ranks, H hosts, Q phases, M tiers, N slots, I items. A place is a rank, or R and a host.
    """

    # Where pieces are. The pieces of an item are in the first slots of its range in Data.item_slot.
    slot_shape: Ints  # (N,) shape of the piece in a slot
    slot_site: Ints  # (N,) its rank, or its host, or 0 where it lies on all ranks: by the scope of the item's family
    num_pieces: Ints  # (I,) 0 while an item is not placed
    family: Ints  # (I,) family of an item's pieces
    site_slots: Ints  # (R + H, room) slots of the pieces that lie on one rank alone, then of those on one host
    site_count: Ints  # (R + H,) how many these are
    slot_place: Ints  # (N,) index in the row of site_slots; -1 where the slot is in none
    columns_here: Ints32  # (I, R + H) columns of an item on a place, as in Data.columns_before
    # What ranks carry.
    loads: Floats  # (R, Q) seconds, without what lies on all ranks
    bytes: Floats  # (R, M) bytes, without what lies on all ranks
    world_loads: Floats  # (Q,) seconds of what lies on all ranks
    world_bytes: Floats  # (M,) bytes of what lies on all ranks
    over: Floats  # (R,) bytes beyond the capacity, as parts of it, summed over tiers
    # The smooth cost: of loads L the weights are e^((L - reference) / tau).
    weights: Floats  # (R, Q)
    sums: Floats  # (Q,) of the weights over ranks; -inf where too few digits are left
    reference: Floats  # (Q,) seconds, near the largest load
    tau: Floats  # (Q,) seconds that smooth the slowest rank out
    price: Floats  # (Q,) phase weight over the sum of weights: times a rank's weight, the cost of a second more on it
    # What this proposal changed, as it was before.
    touched: Ints  # (R,) ranks noted in this proposal, in order
    stamp: Ints  # (R,) number of the proposal in which a rank was noted last
    old_loads: Floats  # (R, Q) rows of noted ranks
    old_bytes: Floats  # (R, M)
    old_weights: Floats  # (R, Q)
    old_over: Floats  # (R,)
    old_sums: Floats  # (Q,)
    old_world: Floats  # (Q,) world_loads
    old_world_bytes: Floats  # (M,)
    saved_shape: Ints  # (most pieces of one item,) an item's shapes while another cut is tried
    saved_site: Ints  # (most pieces of one item,) their sites
    movements: NDArray[np.void]  # (room,) of MOVEMENT: changes to columns_here
    # Room to work in.
    taken: Ints  # (R,) last mark of a rank that an item must keep apart from; each look at ranks has a mark of its own
    exchange: NDArray[np.void]  # (Q,) of EXCHANGE: the exchange that is looked at
    growth_per_weight: Floats  # (Q,) seconds that one more piece adds to the cost per weight of the rank
    weight_price: Floats  # (Q,) seconds that one more unit of weight costs, of the loads in the midst of a proposal
    # Single numbers.
    counters: NDArray[np.void]  # (1,) of COUNTERS
    looked: Floats  # (1,) sets of pieces that redistributions of three sites looked at
    seed: NDArray[np.uint64]  # (1,) state of the random numbers


def empty_state(data: Data, seed: int) -> State:
    """Return a state in which nothing is placed."""
    ranks, phases = data.rank_class.shape[0], data.weight.shape[0]
    tiers, slots, items = data.capacity.shape[1], data.slot_item.shape[0], data.item_columns.shape[0]
    hosts = data.host_allowed.shape[1]
    most = int(np.max(np.diff(data.item_slot)))
    return State(
        slot_shape=np.full(slots, -1, dtype=np.int64),
        slot_site=np.full(slots, -1, dtype=np.int64),
        num_pieces=np.zeros(items, dtype=np.int64),
        family=np.full(items, -1, dtype=np.int64),
        site_slots=np.zeros((ranks + hosts, max(64, 6 * slots // ranks)), dtype=np.int64),
        site_count=np.zeros(ranks + hosts, dtype=np.int64),
        slot_place=np.full(slots, -1, dtype=np.int64),
        columns_here=np.zeros_like(data.columns_before),
        loads=np.zeros((ranks, phases)),
        bytes=np.zeros((ranks, tiers)),
        world_loads=np.zeros(phases),
        world_bytes=np.zeros(tiers),
        over=np.zeros(ranks),
        weights=np.ones((ranks, phases)),
        sums=np.full(phases, float(ranks)),
        reference=np.zeros(phases),
        tau=np.ones(phases),
        price=np.zeros(phases),
        touched=np.zeros(ranks, dtype=np.int64),
        stamp=np.zeros(ranks, dtype=np.int64),
        old_loads=np.zeros((ranks, phases)),
        old_bytes=np.zeros((ranks, tiers)),
        old_weights=np.zeros((ranks, phases)),
        old_over=np.zeros(ranks),
        old_sums=np.zeros(phases),
        old_world=np.zeros(phases),
        old_world_bytes=np.zeros(tiers),
        saved_shape=np.zeros(most, dtype=np.int64),
        saved_site=np.zeros(most, dtype=np.int64),
        movements=np.zeros(2 * most + 4 * (MOST_PIECES + MOST_SWAPS), dtype=MOVEMENT),
        taken=np.zeros(ranks, dtype=np.int64),
        exchange=np.zeros(phases, dtype=EXCHANGE),
        growth_per_weight=np.zeros(phases),
        weight_price=np.zeros(phases),
        counters=np.zeros(1, dtype=COUNTERS),
        looked=np.zeros(1),
        seed=np.array([seed * 2654435761 + 1], dtype=np.uint64),
    )
