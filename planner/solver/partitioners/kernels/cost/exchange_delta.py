"""Exchanges between two sites: what one adds to the cost, known before it is made; and making it, or not.

Moves, swaps and cuts within a table are all of this form. Most of them are hopeless, and cost less where nothing has
to be undone.
"""

from typing import NamedTuple

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.smooth_cost import (
    LEAST_SUM,
    keeps,
    phase_cost,
    smooth_load,
    sum_of_weights,
)
from planner.solver.partitioners.kernels.state.sites_index import place_of, ranks_of_site
from planner.solver.partitioners.kernels.state.state import RANK, State
from planner.solver.partitioners.kernels.state.undo_log import begin, change, moved_by, undo
from planner.solver.partitioners.local_search.search_data import Data

_MOST = 500.0  # exponents are clipped


class Exchange(NamedTuple):
    """Two sites, each of which may give a shape away and take another; -1 stands for none.

    Where both are one and the same, as on all ranks, nothing can be foreseen.
    """

    scope: int
    here: int
    there: int
    off_here: int
    on_here: int
    off_there: int
    on_there: int


@compiled
def make(data: Data, state: State, exchange: Exchange, before: float, bar: float) -> bool:
    """Make an exchange, unless it adds more than a bar to the cost. ``False`` where it is not made.

    Slots and their lists are for the caller to change.
    """
    if can_foresee(data, state, exchange.scope) and exchange.here != exchange.there:
        weigh_sites(data, state, exchange.scope, exchange.here, exchange.there)
        if is_hopeless(data, state, least_growth(data, state, exchange), bar):
            return False
    return try_out(data, state, exchange, before, bar)


@compiled
def try_out(data: Data, state: State, exchange: Exchange, before: float, bar: float) -> bool:
    """Make an exchange, and undo it if it adds more than a bar to the cost. ``False`` where it was undone."""
    begin(state)
    change(data, state, exchange.scope, exchange.here, exchange.off_here, exchange.on_here)
    change(data, state, exchange.scope, exchange.there, exchange.off_there, exchange.on_there)
    if keeps(data, state, before, bar):
        return True
    undo(data, state)
    return False


@compiled
def can_foresee(data: Data, state: State, scope: int) -> bool:
    """Whether ``least_growth`` knows: bytes fit as it is, and the ranks of a host are alike."""
    return state.counters[0].overflow == 0 and (scope == RANK or data.shape_seconds.shape[0] == 1)


@compiled
def weigh_sites(data: Data, state: State, scope: int, here: int, there: int) -> None:
    """Count the weights of two sites, for ``least_growth``: sums over their ranks."""
    local = ranks_of_site(data, scope)
    for q in range(state.tau.shape[0]):
        one, other = 0.0, 0.0
        for i in range(local):
            one += state.weights[here * local + i, q]
            other += state.weights[there * local + i, q]
        state.exchange[q].weights_here, state.exchange[q].weights_there = one, other


@compiled
def least_growth(data: Data, state: State, exchange: Exchange) -> float:
    """Return what an exchange of weighed sites adds at least to the cost, and note it for ``is_hopeless``.

    The cost is convex in the loads, so that every phase grows by at least its slope times the change.
    """
    local = ranks_of_site(data, exchange.scope)
    here, there = data.rank_class[exchange.here * local], data.rank_class[exchange.there * local]
    total = moving(data, state, exchange) if data.columns_before.shape[0] > 0 else 0.0
    for q in range(state.tau.shape[0]):
        phase = state.exchange[q]
        one = gained(data, here, exchange.off_here, exchange.on_here, q)
        other = gained(data, there, exchange.off_there, exchange.on_there, q)
        if data.window[q] > 0:
            growth = growth_of_phase(data, state, q, one, other)
        else:
            growth = state.price[q] * (phase.weights_here * one + phase.weights_there * other)
        phase.gained_here, phase.gained_there, phase.least_growth = one, other, growth
        total += growth
    return total


@compiled
def is_hopeless(data: Data, state: State, least: float, bar: float) -> bool:
    """Whether an exchange whose least growth was just noted adds more than a bar to the cost, whatever its bytes.

    What would not fit any more adds to it. One phase after the other is counted exactly, until they say enough.
    """
    total = least
    for q in range(state.tau.shape[0]):
        if total > bar:
            return True
        if data.window[q] <= 0:
            phase = state.exchange[q]
            total += growth_of_phase(data, state, q, phase.gained_here, phase.gained_there) - phase.least_growth
    return total > bar


@compiled
def growth_of_phase(data: Data, state: State, q: int, one: float, other: float) -> float:
    """Return what a phase costs more where two weighed sites gain seconds, or -inf where digits are lost."""
    phase = state.exchange[q]
    weights = state.sums[q] - phase.weights_here - phase.weights_there
    weights += phase.weights_here * np.exp(min(one / state.tau[q], _MOST))
    weights += phase.weights_there * np.exp(min(other / state.tau[q], _MOST))
    if weights < LEAST_SUM:
        return -np.inf
    if data.window[q] > 0:
        smooth = state.reference[q] + state.tau[q] * np.log(weights)
        return phase_cost(data, state, q, smooth) - phase_cost(data, state, q, smooth_load(state, q))
    return data.weight[q] * state.tau[q] * np.log(weights / sum_of_weights(state, q))


@compiled
def moving(data: Data, state: State, exchange: Exchange) -> float:
    """Return what the bytes cost that an exchange moves."""
    here, there = place_of(state, exchange.scope, exchange.here), place_of(state, exchange.scope, exchange.there)
    moved = moved_by_change(data, state, here, exchange.off_here, exchange.on_here)
    moved += moved_by_change(data, state, there, exchange.off_there, exchange.on_there)
    return state.counters[0].move_price * moved


@compiled
def gained(data: Data, kind: int, off: int, on: int, q: int) -> float:
    """Return the seconds that a rank of a class gains by a change."""
    seconds = 0.0
    if off >= 0:
        seconds -= data.shape_seconds[kind, off, q]
    if on >= 0:
        seconds += data.shape_seconds[kind, on, q]
    return seconds


@compiled
def moved_by_change(data: Data, state: State, place: int, off: int, on: int) -> float:
    """Return how many bytes more move after a change of what lies on a place."""
    if off < 0:
        return moved_by(data, state, place, on, 1.0)
    if on < 0:
        return moved_by(data, state, place, off, -1.0)
    if data.shape_item[off] != data.shape_item[on]:
        return moved_by(data, state, place, off, -1.0) + moved_by(data, state, place, on, 1.0)
    item = data.shape_item[off]
    before, here = data.columns_before[item, place], state.columns_here[item, place]
    found = min(before, here - data.shape_columns[off] + data.shape_columns[on]) - min(before, here)
    return data.shape_moved[on] - data.shape_moved[off] - found * data.column_bytes[item, place]
