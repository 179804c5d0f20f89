"""Fill host after host and rank after rank with the pieces of most worth that fit a budget of seconds and the memory.

Where a rank holds few tables, which pieces share it decides both balance and fit, and one piece after the other
onto the best rank chooses too late. Here a rank chooses its pieces, and tables are cut to what is left of it
(a sequential value heuristic for cutting stock; Belov and Scheithauer, OR Spectrum 29, 2007).
"""

from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.construct.knapsack import (
    Pieces,
    Table,
    best_values,
    chosen_pieces,
    no_pieces,
    no_table,
)
from planner.solver.partitioners.kernels.cost.site_choice import best_host, best_rank, site_is_legal
from planner.solver.partitioners.kernels.state.pieces import put
from planner.solver.partitioners.kernels.state.rng import random_unit
from planner.solver.partitioners.kernels.state.state import COLUMN_STEP, HOST, RANK, State
from planner.solver.partitioners.kernels.state.undo_log import begin
from planner.solver.partitioners.local_search.search_data import Data

_LISTING = 20  # cells that take as long as listing a piece


class Order(NamedTuple):
    """What ranks are to be filled with, where one phase counts. S shapes, I items."""

    shape_item: Ints  # (S,)
    shape_family: Ints  # (S,)
    worth: Floats  # (I,)
    budget_seconds: float  # that a rank may take
    cells: int  # that this budget, and a rank's memory, are counted in
    most_pieces: int  # that one rank chooses from
    unequal_memory: bool  # whether some ranks have less of it


@compiled
def completes(data: Data, family: int, pieces: int, columns: int) -> bool:
    """Whether a table that has a number of pieces can have its other columns in legal pieces of the family."""
    if columns == 0:
        return pieces >= data.family_min_pieces[family]
    widest = data.shape_columns[data.family_shape[family + 1] - 1]
    more = -(-columns // widest)
    return more * data.family_narrowest[family] <= columns and pieces + more <= data.family_max_pieces[family]


@compiled
def list_pieces(
    data: Data, state: State, order: Order, remaining: np.ndarray, scope: int, site: int, part: float, pieces: Pieces
) -> float:
    """Write the pieces that a site may take next, of many a random ``part``; return the part that all would have been.

    Seconds are rounded to whole cells, bytes are rounded up, so that what is chosen fits the memory; a host's piece
    counts as on that of its ranks where it takes most. An item has fewer pieces than a choice has numbers (int16).
    """
    local = data.rank_host.shape[0] // data.host_allowed.shape[1]
    low, high = (site, site + 1) if scope == RANK else (site * local, (site + 1) * local)
    items, count, all_pieces = 0, 0, 0
    for item in range(remaining.shape[0]):
        if remaining[item] == 0:
            continue
        if not site_is_legal(data, state, item, scope, site):
            continue
        begun = count
        for family in range(data.item_family[item], data.item_family[item + 1]):
            if data.family_scope[family] != scope or (state.num_pieces[item] > 0 and family != state.family[item]):
                continue
            if data.family_same_host[family] and data.family_max_pieces[family] > 1:
                continue
            for shape in range(data.family_shape[family], data.family_shape[family + 1]):
                left = remaining[item] - data.shape_columns[shape]
                if left < 0:
                    break
                if not completes(data, family, state.num_pieces[item] + 1, left):
                    continue
                all_pieces += 1
                if (part < 1.0 and random_unit(state) >= part) or count == pieces.shape.shape[0]:
                    continue
                seconds, size = cells_of(data, order, low, high, shape)
                if max(seconds, size) <= order.cells:
                    pieces.cells_of_seconds[count], pieces.cells_of_bytes[count] = seconds, size
                    pieces.shape[count] = shape
                    pieces.value[count] = order.worth[item] * data.shape_columns[shape] / data.item_columns[item]
                    count += 1
        if count > begun:
            pieces.first[items] = begun
            items += 1
    pieces.first[items] = count
    counts = pieces.counts[0]
    counts.items, counts.pieces, counts.drawn_from = items, count, all_pieces
    return order.most_pieces / max(all_pieces, 1)


@compiled
def cells_of(data: Data, order: Order, low: int, high: int, shape: int) -> tuple[int, int]:
    """Return how many cells of seconds and of bytes a piece needs at most on ranks [low, high)."""
    seconds_cells, bytes_cells = 0, 0
    for rank in range(low, high):
        if rank > low and data.rank_class[rank] == data.rank_class[low] and not order.unequal_memory:
            continue
        seconds = data.weight[0] * data.shape_seconds[data.rank_class[rank], shape, 0] / order.budget_seconds
        part = 0.0
        for m in range(data.capacity.shape[1]):
            part = max(part, data.shape_bytes[shape, m] / max(data.capacity[rank, m], 1.0))
        seconds_cells = max(seconds_cells, int(np.floor(min(seconds, 2.0) * order.cells + 0.5)))
        bytes_cells = max(bytes_cells, int(np.ceil(min(part, 2.0) * order.cells - 1e-9)))
    return seconds_cells, bytes_cells


@compiled
def room_of(data: Data, state: State, order: Order, low: int, high: int) -> tuple[int, int]:
    """Return how many cells of seconds and of bytes each of the ranks [low, high) has left."""
    seconds, part = 0.0, 0.0
    for rank in range(low, high):
        taken = data.weight[0] * (state.loads[rank, 0] + state.world_loads[0]) / order.budget_seconds
        seconds = max(seconds, taken)
        for m in range(data.capacity.shape[1]):
            part = max(part, (state.bytes[rank, m] + state.world_bytes[m]) / max(data.capacity[rank, m], 1.0))
    return cells_in(order, 1.0 - seconds), cells_in(order, 1.0 - part)


@compiled
def cells_in(order: Order, part: float) -> int:
    """Return the whole cells in a part of a resource."""
    return int(np.floor(max(part, 0.0) * order.cells + 1e-9))


@compiled
def take_pieces(
    data: Data, state: State, order: Order, remaining: np.ndarray, scope: int, site: int, shapes: np.ndarray
) -> None:
    """Place chosen pieces on a site, except where one before keeps another away."""
    for i in range(shapes.shape[0]):
        item = order.shape_item[shapes[i]]
        if not site_is_legal(data, state, item, scope, site):
            continue
        add_piece(data, state, item, order.shape_family[shapes[i]], shapes[i], site)
        remaining[item] -= data.shape_columns[shapes[i]]


@compiled
def add_piece(data: Data, state: State, item: int, family: int, shape: int, site: int) -> None:
    """Place one more piece of an item."""
    begin(state)
    state.family[item] = family
    put(data, state, data.item_slot[item] + state.num_pieces[item], data.family_scope[family], shape, site)
    state.num_pieces[item] += 1


@compiled
def best_split(host_table: Table, table: Table, local: int, x: int, y: int) -> tuple[int, int]:
    """Return the cells, of x and y, that pieces on all ranks of a host should have, so that the host is worth most."""
    best, best_x, best_y = -1.0, 0, 0
    for i in range(x + 1):
        for j in range(y + 1):
            found = host_table.value[i, j] + local * table.value[x - i, y - j]
            if found > best:
                best, best_x, best_y = found, i, j
    return best_x, best_y


@compiled
def fill_hosts(data: Data, state: State, order: Order, remaining: np.ndarray) -> float:
    """Fill all hosts; return how many cells were looked at.

    ``remaining``, shape (I,), are the columns of every item that are not placed yet.
    """
    hosts = data.host_allowed.shape[1]
    local = data.rank_host.shape[0] // hosts
    items = min(remaining.shape[0], 2 * order.most_pieces)
    pieces, table = no_pieces(items, 2 * order.most_pieces), no_table(items, order.cells)
    host_pieces, host_table = no_pieces(items, 2 * order.most_pieces), no_table(items, order.cells)
    chosen = np.zeros(items, np.int64)
    looked = 0.0
    part = list_pieces(data, state, order, remaining, RANK, 0, 0.0, pieces)
    host_part = list_pieces(data, state, order, remaining, HOST, 0, 0.0, host_pieces)
    for host in range(hosts):
        host_part = list_pieces(data, state, order, remaining, HOST, host, host_part, host_pieces)
        if host_pieces.counts[0].pieces > 0:
            rank = host * local
            part = list_pieces(data, state, order, remaining, RANK, rank, part, pieces)
            x, y = room_of(data, state, order, rank, rank + local)
            looked += best_values(host_pieces, host_table, x, y) + best_values(pieces, table, x, y)
            looked += _LISTING * (host_pieces.counts[0].drawn_from + pieces.counts[0].drawn_from)
            x, y = best_split(host_table, table, local, x, y)
            count = chosen_pieces(host_pieces, host_table, x, y, chosen)
            take_pieces(data, state, order, remaining, HOST, host, host_pieces.shape[chosen[:count]])
        for rank in range(host * local, (host + 1) * local):
            part = list_pieces(data, state, order, remaining, RANK, rank, part, pieces)
            x, y = room_of(data, state, order, rank, rank + 1)
            looked += best_values(pieces, table, x, y) + _LISTING * pieces.counts[0].drawn_from
            count = chosen_pieces(pieces, table, x, y, chosen)
            take_pieces(data, state, order, remaining, RANK, rank, pieces.shape[chosen[:count]])
    return looked


@compiled
def place_rest(data: Data, state: State, remaining: np.ndarray) -> bool:
    """Place the rest of items that are begun, in few pieces, where it hurts least; ``False`` without a legal site."""
    for item in range(remaining.shape[0]):
        if remaining[item] == 0 or state.num_pieces[item] == 0:
            continue
        family = state.family[item]
        low, high = data.family_shape[family], data.family_shape[family + 1]
        pieces = -(-remaining[item] // data.shape_columns[high - 1])
        for i in range(pieces):
            columns = -(-(remaining[item] // COLUMN_STEP) // (pieces - i)) * COLUMN_STEP
            shape = low + (columns - data.family_narrowest[family]) // COLUMN_STEP
            if data.family_scope[family] == HOST:
                site = best_host(data, state, item, shape)
            else:
                site = best_rank(data, state, item, shape, 0, data.rank_host.shape[0])
            if site < 0:
                return False
            add_piece(data, state, item, family, shape, site)
            remaining[item] -= columns
    return True
