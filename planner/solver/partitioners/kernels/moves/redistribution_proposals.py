"""Proposals that end in a deal of ranks: of two, of three, and of three after one of their tables was cut again.

A cut by itself unbalances the ranks that it touches, so that a cold search refuses nearly all of them. What the cut is
worth shows once the pieces next to it are placed again.
"""

import numpy as np
from numpy.typing import NDArray

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.moves.cut import merge_pieces, shift_columns, split_piece
from planner.solver.partitioners.kernels.moves.item import put_back
from planner.solver.partitioners.kernels.moves.sampling import pick_item, pick_site
from planner.solver.partitioners.kernels.moves.three_rank_redistribution import linear_cost, redistribute_three
from planner.solver.partitioners.kernels.moves.two_rank_redistribution import redistribute_pair
from planner.solver.partitioners.kernels.state.rng import random_below
from planner.solver.partitioners.kernels.state.sites_index import num_sites, ranks_of_site
from planner.solver.partitioners.kernels.state.state import HOST, State
from planner.solver.partitioners.kernels.state.undo_log import begin, undo
from planner.solver.partitioners.local_search.search_data import Data

_LESS = 1 - 1e-9  # times the cost as it is


@compiled
def redistribute_two_sites(data: Data, state: State, scope: int, before: float, bar: float) -> bool:
    """Share the pieces of a pressed rank, or host, and another out again."""
    here, there = pick_site(data, state, scope, True), random_below(state, num_sites(data, scope))
    return here != there and redistribute_pair(data, state, scope, here, there, before, bar)


@compiled
def in_turn(state: State, one: int, other: int, third: int) -> NDArray[np.int64]:
    """Return three sites, any of them first: the first chooses its pieces before the others."""
    turn = random_below(state, 3)
    sites = np.empty(3, dtype=np.int64)
    sites[turn], sites[(turn + 1) % 3], sites[(turn + 2) % 3] = one, other, third
    return sites


@compiled
def redistribute_three_sites(data: Data, state: State, scope: int, before: float, bar: float) -> bool:
    """Share the pieces of a pressed rank, or host, and two others out again; with one other where there are but two."""
    count = num_sites(data, scope)
    if count < 3:
        return redistribute_two_sites(data, state, scope, before, bar)
    here, there, third = pick_site(data, state, scope, True), random_below(state, count), random_below(state, count)
    if here in (there, third) or there == third:
        return False
    budget = 0.0
    sites = in_turn(state, here, there, third)
    for s in range(3):
        budget += linear_cost(data, state, scope, sites[s], state.weights) * _LESS
    begin(state)
    if redistribute_three(data, state, scope, sites, before, bar, budget):
        return True
    undo(data, state)
    return False


@compiled
def cut_at_random(data: Data, state: State, item: int) -> bool:
    """Cut an item in pieces again, whatever it costs; ``False`` where it cannot be."""
    kind = random_below(state, 3)
    if kind == 0:
        return shift_columns(data, state, item, 0.0, np.inf)
    if kind == 1:
        return split_piece(data, state, item, 0.0, np.inf)
    return merge_pieces(data, state, item, 0.0, np.inf)


@compiled
def cut_and_redistribute(data: Data, state: State, before: float, bar: float) -> bool:
    """Cut a table again and share the pieces of the two sites that it touches, and of a third, out again."""
    item = pick_item(data, state)
    family, pieces, first = state.family[item], state.num_pieces[item], data.item_slot[item]
    scope = data.family_scope[family]
    count = num_sites(data, scope)
    if scope > HOST or count < 3:
        return False
    for i in range(pieces):
        state.saved_shape[i], state.saved_site[i] = state.slot_shape[first + i], state.slot_site[first + i]
    if not cut_at_random(data, state, item):
        return False
    local = ranks_of_site(data, scope)
    if state.counters[0].num_touched == 2 * local:
        one, other = state.touched[0] // local, state.touched[local] // local
        third = random_below(state, count)
        if third not in (one, other):
            budget = bar + linear_cost(data, state, scope, third, state.weights)
            budget += linear_cost(data, state, scope, one, state.old_weights)
            budget += linear_cost(data, state, scope, other, state.old_weights)
            if redistribute_three(data, state, scope, in_turn(state, one, other, third), before, bar, budget):
                return True
    put_back(data, state, item, pieces, family)
    return False
