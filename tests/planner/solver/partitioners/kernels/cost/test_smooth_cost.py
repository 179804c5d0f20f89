"""Sums of the weights of ranks: whatever is added and taken off, the smooth cost stays that of the loads as they are.

With sharp weights the slowest rank's weight is so much larger than the others' that a sum keeps none of their digits.
Once its pieces leave, what is left of the sum is rounding, and a phase that seems to cost nothing pays for anything.
"""

import itertools

import numpy as np
import pytest

from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.cost.smooth_cost import cost, refresh, reprice, sum_of_weights
from planner.solver.partitioners.kernels.state.state import RANK, State
from planner.solver.partitioners.kernels.state.undo_log import begin, change, set_load, undo
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import by_choice_rule
from planner.solver.partitioners.local_search.search_data import Data, search_view
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced

SHARP = 4000.0  # slowest load / tau


@pytest.fixture
def chain() -> Chain:
    view = search_view(random_priced(1, num_tables=24))
    (built,) = itertools.islice(by_choice_rule(view, None, 1, itertools.count(), Effort(LIMITS)), 1)
    return built


def records(chain: Chain, smoothness: float = SHARP) -> tuple[Data, State, State]:
    """Problem and state in the hands of compiled functions, and the arrays of the state."""
    refresh(chain._data, chain._state, smoothness, 0.0)  # noqa: SLF001
    return chain._data, chain._state, chain._arrays  # noqa: SLF001


def on_ranks(arrays: State) -> np.ndarray:
    """How many pieces every rank has of its own."""
    return arrays.site_count[: len(arrays.loads)]


def shape_on_rank(chain: Chain, rank: int) -> int:
    """A shape that lies on this rank alone."""
    arrays = chain._arrays  # noqa: SLF001
    assert arrays.site_count[rank] > 0
    return int(arrays.slot_shape[arrays.site_slots[rank, 0]])


def slowest_with_pieces(arrays: State) -> int:
    """The rank with the largest load of all that have a piece of their own."""
    return int(np.argmax(np.where(on_ranks(arrays) > 0, np.max(arrays.loads, axis=1), -np.inf)))


def smooth_cost(chain: Chain) -> float:
    """The cost of the loads as they are, all weights counted again, without the parts that memory and moving have."""
    arrays, view = chain._arrays, chain._view.data  # noqa: SLF001
    slowest = np.max(arrays.loads, axis=0)
    sums = np.sum(np.exp((arrays.loads - slowest) / arrays.tau), axis=0)
    return float(np.sum(view.weight * (arrays.world_loads + slowest + arrays.tau * np.log(sums))))


def shift(chain: Chain, data: Data, state: State, rank: int, sign: int) -> None:
    """Add one more piece of a rank's to it, or take one off."""
    shape = shape_on_rank(chain, rank)
    change(data, state, RANK, rank, *((-1, shape) if sign > 0 else (shape, -1)))


@pytest.mark.parametrize("smoothness", [SHARP, 30 * SHARP])
def test_the_cost_is_right_when_the_slowest_rank_loses_its_pieces(chain: Chain, smoothness: float) -> None:
    data, state, arrays = records(chain, smoothness)
    begin(state)
    for rank in np.flatnonzero(on_ranks(arrays) > 0):  # the slowest of every phase is among them
        shift(chain, data, state, rank, -1)
        assert cost(data, state) == pytest.approx(smooth_cost(chain), rel=1e-9)


@pytest.mark.parametrize("smoothness", [50.0, 100.0, 200.0, 400.0, 800.0, SHARP])
def test_the_cost_is_right_when_ranks_carry_too_much_for_a_while(chain: Chain, smoothness: float) -> None:
    data, state, arrays = records(chain, smoothness)
    before, ranks = cost(data, state), np.flatnonzero(on_ranks(arrays) > 0)
    begin(state)
    for sign in (1, -1):
        for rank in ranks:
            shift(chain, data, state, rank, sign)
    assert cost(data, state) == pytest.approx(before, rel=1e-7)


def test_the_cost_is_right_when_the_slowest_ranks_leave_one_after_the_other(chain: Chain) -> None:
    """Each step keeps half of the digits that were left."""
    data, state, arrays = records(chain)
    begin(state)
    ranks, phases = arrays.loads.shape
    for rank, q in itertools.product(range(ranks), range(phases)):
        set_load(state, rank, q, arrays.reference[q] - 18 * rank * arrays.tau[q])
    for rank, q in itertools.product(range(3), range(phases)):
        set_load(state, rank, q, arrays.reference[q] - 300 * arrays.tau[q])
    assert cost(data, state) == pytest.approx(smooth_cost(chain), rel=1e-7)


def test_what_is_undone_leaves_no_mark(chain: Chain) -> None:
    data, state, arrays = records(chain)
    before, sums, rank = cost(data, state), arrays.sums.copy(), slowest_with_pieces(arrays)
    begin(state)
    for sign in (1, -1, -1):
        shift(chain, data, state, rank, sign)
    undo(data, state)
    assert np.array_equal(arrays.sums, sums)
    assert cost(data, state) == before


def test_weights_are_counted_again_once_such_a_change_is_preserved(chain: Chain) -> None:
    data, state, arrays = records(chain)
    rank = slowest_with_pieces(arrays)
    begin(state)
    for sign in (1, -1, -1, -1):
        shift(chain, data, state, rank, sign)
    preserved = cost(data, state)
    assert np.any(arrays.sums < 0)
    for q in range(len(arrays.sums)):
        assert sum_of_weights(state, q) > 0
    reprice(data, state)
    assert np.all(arrays.sums > 1e-6)
    assert arrays.sums == pytest.approx(np.sum(arrays.weights, axis=0))
    assert np.all(np.isfinite(arrays.price))
    assert cost(data, state) == pytest.approx(preserved, rel=1e-6)


def test_where_weights_are_flat_sums_need_no_second_look(chain: Chain) -> None:
    """A sum that kept its digits is used as it is: counting again takes as long as there are ranks."""
    data, state, arrays = records(chain, smoothness=5.0)
    begin(state)
    rank = slowest_with_pieces(arrays)
    shift(chain, data, state, rank, -1)
    assert np.all(arrays.sums > 0)
    reference = arrays.reference.copy()
    reprice(data, state)
    assert np.array_equal(arrays.reference, reference)
