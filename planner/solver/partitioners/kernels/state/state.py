"""The state of a search, as arrays: where every piece is, what every rank carries, what may have to be put back."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.local_search.search_data import Data

RANK, HOST, WORLD = 0, 1, 2
COLUMN_STEP = 4  #: columns between one width of a family and the next
MOST_PIECES = 13  #: that two ranks deal anew
MOST_SWAPS = 24  #: in which ranks hand on what they have too much of

#: The scalars of a state, as one record: Python and compiled functions read and write them by name.
COUNTERS = np.dtype(
    [
        ("overflow_penalty", np.float64),  # cost of one capacity's worth of overflow
        ("overflow", np.float64),  # sum of State.over, and of bytes moved beyond the budget
        ("proposal", np.float64),  # number of this proposal
        ("num_touched", np.float64),  # ranks noted in this proposal
        ("world_changed", np.float64),  # 1 where this proposal changed what lies on all ranks
        ("moved_bytes", np.float64),
        ("num_movements", np.float64),  # rows of State.movements in use
        ("move_price", np.float64),  # cost per moved byte
        ("num_marks", np.float64),  # see State.taken
    ]
)


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
    site_slots: Ints  # (R + H, room) slots of pieces that lie on one rank, then of those that lie on one host
    site_count: Ints  # (R + H,)
    slot_place: Ints  # (N,) where in site_slots
    touched: Ints  # (R,) ranks noted in this proposal
    stamp: Ints  # (R,) proposal in which a rank was noted last
    taken: Floats  # (R,) the last mark of a rank that an item must keep apart from; a mark is good for one look
    old_loads: Floats  # (R, Q) as they were
    old_bytes: Floats  # (R, M)
    old_weights: Floats  # (R, Q)
    old_over: Floats  # (R,)
    old_sums: Floats  # (Q,)
    old_world: Floats  # (Q,)
    old_world_bytes: Floats  # (M,)
    counters: NDArray[np.void]  # (1,) of COUNTERS
    old_counters: NDArray[np.void]
    looked: Floats  # (1,) sets of pieces that redistributions of three sites looked at
    saved_shape: Ints  # (most pieces of one item,) an item's pieces while another cut is tried
    saved_site: Ints
    gain: Floats  # (Q,) see sites.weigh and driving.forward_excess
    price: Floats  # (Q,) phase weight over the sum of weights
    gained: Floats  # (3, Q) seconds that two sites gain, and what that adds at least to the cost
    site_weights: Floats  # (2, Q) of two sites, sums over their ranks
    columns_here: NDArray[np.int32]  # (I, R + H) as Data.columns_before
    movements: Ints  # (room, 3) item, place and columns of each change to columns_here in this proposal
    seed: NDArray[np.uint64]  # (1,)


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
        loads=np.zeros((ranks, phases)),
        bytes=np.zeros((ranks, tiers)),
        world_loads=np.zeros(phases),
        world_bytes=np.zeros(tiers),
        weights=np.ones((ranks, phases)),
        sums=np.full(phases, float(ranks)),
        reference=np.zeros(phases),
        tau=np.ones(phases),
        over=np.zeros(ranks),
        site_slots=np.zeros((ranks + hosts, max(64, 6 * slots // ranks)), dtype=np.int64),
        site_count=np.zeros(ranks + hosts, dtype=np.int64),
        slot_place=np.full(slots, -1, dtype=np.int64),
        touched=np.zeros(ranks, dtype=np.int64),
        stamp=np.zeros(ranks, dtype=np.int64),
        taken=np.zeros(ranks),
        old_loads=np.zeros((ranks, phases)),
        old_bytes=np.zeros((ranks, tiers)),
        old_weights=np.zeros((ranks, phases)),
        old_over=np.zeros(ranks),
        old_sums=np.zeros(phases),
        old_world=np.zeros(phases),
        old_world_bytes=np.zeros(tiers),
        counters=np.zeros(1, dtype=COUNTERS),
        old_counters=np.zeros(1, dtype=COUNTERS),
        looked=np.zeros(1),
        saved_shape=np.zeros(most, dtype=np.int64),
        saved_site=np.zeros(most, dtype=np.int64),
        gain=np.zeros(phases),
        price=np.zeros(phases),
        gained=np.zeros((3, phases)),
        site_weights=np.zeros((2, phases)),
        columns_here=np.zeros_like(data.columns_before),
        movements=np.zeros((2 * most + 4 * (MOST_PIECES + MOST_SWAPS), 3), dtype=np.int64),
        seed=np.array([seed * 2654435761 + 1], dtype=np.uint64),
    )
