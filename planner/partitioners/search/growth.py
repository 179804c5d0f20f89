"""What an exchange adds at least to the cost, known before it is made; and whether a growth may stay."""

import numpy as np
from numpy.typing import NDArray

from planner.partitioners.compiled import compiled
from planner.partitioners.search.costs import cost
from planner.partitioners.search.shifts import moved_by
from planner.partitioners.search.state import MOVE_PRICE, OVER, State
from planner.partitioners.view import Data

Floats = NDArray[np.float64]


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
def write_slopes(data: Data, state: State, host: int, slopes: Floats) -> None:
    """Write how much the cost grows with the seconds of a piece on all ranks of a host, shape (Q,)."""
    local = state.weights.shape[0] // data.host_allowed.shape[1]
    for q in range(state.tau.shape[0]):
        total = 0.0
        for r in range(host * local, (host + 1) * local):
            total += state.weights[r, q]
        slopes[q] = state.price[q] * total


@compiled
def least_growth(data: Data, slopes: Floats, shape: int) -> float:
    """Return what a piece on all ranks of a host adds at least to the cost, at the host's slopes."""
    total = 0.0
    for q in range(slopes.shape[0]):
        total += slopes[q] * data.shape_seconds[0, shape, q]
    return total


@compiled
def slopes_tell(data: Data, state: State) -> bool:
    """Whether what slopes say of a move is a bound: where bytes fit, nothing moves at a price, and ranks are alike."""
    alike = data.shape_seconds.shape[0] == 1 and data.columns_before.shape[0] == 0
    return alike and state.number[OVER] == 0


@compiled
def keeps(data: Data, state: State, before: float, bar: float) -> bool:
    """Whether the cost as it is now exceeds the cost before by at most the bar that was drawn."""
    return cost(data, state) - before <= bar
