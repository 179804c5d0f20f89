"""First plans for few tables per rank: every rank chooses the pieces that are worth most to it.

What a table is worth is what the relaxation pays for it. Tables that were left over are worth more in the next
round, in which ranks are also given a little more time.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.construct.rank_filling import Order
from planner.solver.partitioners.kernels.cost.site_choice import ALL_RANKS
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import LOOK_SECONDS, heaviest_first
from planner.solver.partitioners.local_search.search_data import View, family_items, shape_families
from planner.solver.partitioners.local_search.starts import Target, choose, expected_seconds, priced_cost
from planner.solver.problem import Scope

#: Seconds that a rank may take, in parts of what the relaxation expects, where it holds two tables or fewer: from
#: the first round to the last. With more tables the excess is less: more pieces fill a rank more evenly.
_FIRST_BUDGET, _LAST_BUDGET = 1.02, 1.15
_COARSE = 2.0  # tables per rank
_MOST_ROUNDS = 40
_LEFT_OVER_FACTOR = 1.3  # what a table that is left over is worth in the next round
_CELLS = 100
#: Pieces that each of 128 ranks chooses from; more ranks choose from fewer, so that a round takes no longer.
_PIECES, _RANKS = 1000, 128
_FEWEST_PIECES = 100
_CELL_SECONDS = 2.5e-9  # nominal work of one cell
#: A round that takes more of the effort leaves too little to make anything of it.
_LARGEST_ROUND = 0.25


def fill_ranks(view: View, target: Target, seeds: Iterator[int], effort: Effort, until: float) -> Iterator[Chain]:
    """Yield one state per round, until nothing is left over or the effort would pass a part of ``until``.

    The part is less where ranks hold more than two tables, since it helps less there. For views of one
    phase (``max_rank_time``).
    """
    data = view.data
    options = choose(view, target, 1.0)
    rest = heaviest_first(view, options, target)
    first = (
        ~_may_be_chosen(view) | (data.family_scope[data.option_family[options]] == Scope.WORLD) | data.item_cut_fixed
    )
    worth = np.maximum(priced_cost(view, target)[options], 1e-30)
    ranks = len(data.rank_class)
    coarseness = min(_COARSE * ranks / len(data.item_columns), 1.0)
    until *= coarseness
    shape_family = shape_families(data)
    order = Order(
        shape_item=family_items(data)[shape_family],
        shape_family=shape_family,
        worth=worth,
        budget_seconds=expected_seconds(target),
        cells=_CELLS,
        most_pieces=max(_PIECES * _RANKS // ranks * min(_RANKS, ranks) // ranks, _FEWEST_PIECES),
        unequal_memory=bool(np.any(data.capacity != data.capacity[0])),
    )
    placing_seconds = LOOK_SECONDS * float(np.sum(view.option_pieces[options])) * min(ranks, ALL_RANKS)
    choosing_seconds = _CELL_SECONDS * ranks * min(order.most_pieces, len(data.item_columns)) * (_CELLS + 1) ** 2
    if choosing_seconds + placing_seconds > _LARGEST_ROUND * effort.total_seconds:
        return
    start, spent = effort.fraction, 0.0
    for index in range(_MOST_ROUNDS):
        began = effort.fraction
        if began + spent >= until:
            return
        done = max((began - start) / (until - start), index / _MOST_ROUNDS)
        excess = coarseness * (_FIRST_BUDGET * (_LAST_BUDGET / _FIRST_BUDGET) ** done - 1)
        chain = Chain(view, next(seeds))
        order = order._replace(worth=worth, budget_seconds=expected_seconds(target) * (1 + excess))
        filled = chain.fill(order, target, options, first, rest)
        effort.spend(_CELL_SECONDS * filled.num_cells + placing_seconds)
        spent = effort.fraction - began
        if filled.is_built:
            yield chain
        if not np.any(filled.left_over) and np.isfinite(chain.best_seconds):
            return
        worth = worth * np.where(filled.left_over, _LEFT_OVER_FACTOR, 1.0)


def _may_be_chosen(view: View) -> NDArray[np.bool_]:
    """Mark the items that have pieces which one rank or host can take by itself, shape (I,)."""
    data = view.data
    alone = ~data.family_same_host | (data.family_max_pieces == 1)
    chosen = np.zeros(len(data.item_columns), dtype=np.bool_)
    chosen[family_items(data)[alone & (data.family_scope != Scope.WORLD)]] = True
    return chosen
