r"""What a state costs: a smooth stand-in for the objective, and the objective itself.

.. math:: E = \sum_q w_q \max(0, W_q + \tau_q \log \sum_r e^{L_{rq} / \tau_q} - v_q)
    + \pi \cdot moved + \rho \cdot over,

with L the load of rank r in phase q, W what every rank carries, v hidden seconds, moved the bytes that do not
lie yet where they go, and over the sum over ranks of the bytes beyond their capacity, as parts of it
(with the bytes that move beyond what may, as parts of that). As tau falls the logarithm becomes the
slowest rank's load. Adding W outside is exact, so that what lies on all ranks costs one addition.
"""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.state.state import (
    HOST,
    WORLD,
    State,
)
from planner.solver.partitioners.local_search.search_data import Data

#: Sums of weights below this one are what rounding left: weights of 1 and more, which are as large at the last count,
#: were taken off.
LEAST_SUM = 1e-6
#: Sums above this one would keep nothing of the weights of other ranks once their largest part is taken off.
_MOST_SUM = 1e9
#: Sums above this one hold a weight that was clipped (``undo_log``), and say too little.
_LARGEST_SUM = 1e200
#: Part of a phase's time that counts while it is hidden, so that a search still sees a difference between two plans.
_HIDDEN = 1e-3


@compiled
def refresh(data: Data, state: State, smoothness: float, penalty: float) -> None:
    """Set the smoothness (slowest load / tau) and count weights and overflow again."""
    state.counters[0].overflow_penalty = penalty
    for q in range(state.tau.shape[0]):
        state.reference[q] = slowest_load(state, q)
        state.tau[q] = max((state.reference[q] + state.world_loads[q]) / smoothness, 1e-30)
        weigh_ranks(state, q)
    count_moved(data, state)
    count_overflow(data, state)


@compiled
def rescale(data: Data, state: State) -> None:
    """Count weights again with the reference where the loads are; tau stays."""
    for q in range(state.tau.shape[0]):
        state.reference[q] = slowest_load(state, q)
        weigh_ranks(state, q)


@compiled
def slowest_load(state: State, q: int) -> float:
    """Return the largest load of a rank in a phase, without what lies on all ranks."""
    slowest = 0.0
    for r in range(state.loads.shape[0]):
        slowest = max(slowest, state.loads[r, q])
    return slowest


@compiled
def weigh_ranks(state: State, q: int) -> None:
    """Count the weights of all ranks in a phase again."""
    total = 0.0
    for r in range(state.loads.shape[0]):
        state.weights[r, q] = np.exp((state.loads[r, q] - state.reference[q]) / state.tau[q])
        total += state.weights[r, q]
    state.sums[q] = total


@compiled
def sum_weights(state: State) -> None:
    """Add the weights of all ranks up again, where a proposal made some so large for a while that the sums lost digits.

    Each weight is that of its load; only their sums are changed step by step.
    """
    for q in range(state.tau.shape[0]):
        total = 0.0
        for r in range(state.loads.shape[0]):
            total += state.weights[r, q]
        state.sums[q] = total


@compiled
def smooth_load(state: State, q: int) -> float:
    """Return the smooth stand-in for the slowest load in a phase, without what lies on all ranks.

    Where the sum of weights cannot be trusted, loads say it.
    """
    if LEAST_SUM <= state.sums[q] <= _LARGEST_SUM:
        return state.reference[q] + state.tau[q] * np.log(state.sums[q])
    slowest, total = slowest_load(state, q), 0.0
    for r in range(state.loads.shape[0]):
        total += np.exp((state.loads[r, q] - slowest) / state.tau[q])
    return slowest + state.tau[q] * np.log(total)


@compiled
def sum_of_weights(state: State, q: int) -> float:
    """Return the sum of the weights of all ranks in a phase, counted again where too few of its digits are left."""
    if state.sums[q] >= LEAST_SUM:
        return float(state.sums[q])
    return max(float(np.exp((smooth_load(state, q) - state.reference[q]) / state.tau[q])), 1e-300)


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
    state.counters[0].moved_bytes = total


@compiled
def move_overflow(data: Data, state: State) -> float:
    """Return the bytes that move beyond what may, in parts that compare with a rank's."""
    return max(0.0, state.counters[0].moved_bytes - data.move[0].max_bytes) / data.move[0].overflow_unit_bytes


@compiled
def count_overflow(data: Data, state: State) -> None:
    """Count the bytes beyond capacity of all ranks, and beyond what may move."""
    total = move_overflow(data, state)
    for r in range(state.over.shape[0]):
        state.over[r] = rank_overflow(data, state, r)
        total += state.over[r]
    state.counters[0].overflow = total


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
def phase_cost(data: Data, state: State, q: int, smooth: float) -> float:
    """Return what a phase costs with such a smooth load, without what lies on all ranks."""
    slowest = state.world_loads[q] + smooth
    exposed = slowest - data.window[q]
    return data.weight[q] * (max(exposed, 0.0) + (_HIDDEN * slowest if data.window[q] > 0 else 0.0))


@compiled
def cost(data: Data, state: State) -> float:
    """Return the smooth cost of the state."""
    total = 0.0
    for q in range(state.tau.shape[0]):
        total += phase_cost(data, state, q, smooth_load(state, q))
    total += state.counters[0].move_price * state.counters[0].moved_bytes
    return total + state.counters[0].overflow_penalty * state.counters[0].overflow


@compiled
def keeps(data: Data, state: State, before: float, bar: float) -> bool:
    """Whether the cost as it is now exceeds the cost before by at most the bar that was drawn."""
    return cost(data, state) - before <= bar


@compiled
def reprice(data: Data, state: State) -> None:
    """Note how much the cost falls with the weight of a rank, phase by phase; count weights again if they drifted."""
    for q in range(state.tau.shape[0]):
        if not LEAST_SUM <= state.sums[q] <= _MOST_SUM:
            state.reference[q] = slowest_load(state, q)
            weigh_ranks(state, q)
        state.price[q] = data.weight[q] / state.sums[q]


@compiled
def objective(data: Data, state: State) -> float:
    """Return the exact objective of the loads as they are, with the price of what moves."""
    total = data.move[0].price_per_byte * state.counters[0].moved_bytes
    for q in range(state.tau.shape[0]):
        slowest = slowest_load(state, q)
        total += data.weight[q] * max(slowest + state.world_loads[q] - data.window[q], 0.0)
    return total
