"""Place items that are not placed yet: by what hurts least, or where they were."""

import numpy as np

from planner.solver.partitioners.kernels.compiled import compiled
from planner.solver.partitioners.kernels.cost.site_choice import place_units
from planner.solver.partitioners.kernels.cost.smooth_cost import rescale
from planner.solver.partitioners.kernels.state.pieces import put
from planner.solver.partitioners.kernels.state.state import State
from planner.solver.partitioners.kernels.state.undo_log import begin
from planner.solver.partitioners.local_search.search_data import Data


@compiled
def construct(data: Data, state: State, order: np.ndarray, options: np.ndarray, every: int) -> bool:
    """Place items that are not placed yet, in this order, each under its option.

    ``every`` is after how many items the weights of ranks are counted again.
    """
    for i in range(order.shape[0]):
        item = order[i]
        if i % every == 0:
            rescale(data, state)
        begin(state)
        if not place_units(data, state, item, options[item]):
            return False
    return True


@compiled
def restore(data: Data, state: State, item: int, family: int, shapes: np.ndarray, sites: np.ndarray) -> None:
    """Put an item, which has no pieces, where it was."""
    begin(state)
    state.family[item] = family
    state.num_pieces[item] = 0
    for i in range(shapes.shape[0]):
        put(data, state, data.item_slot[item] + i, data.family_scope[family], shapes[i], sites[i])
        state.num_pieces[item] += 1
