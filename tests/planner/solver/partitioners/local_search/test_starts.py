"""First choices of options: no two alike, legal, under their caps; the choice of the relaxation is among them."""

import itertools
from dataclasses import replace

import numpy as np

from planner.solver.bounds.chain import lower_bound
from planner.solver.partitioners.local_search.constructions import _by_turns, least_choice_first
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.partitioners.local_search.starts import choose, starts, target_of, targets_of
from planner.solver.problem import RelaxationHint, Scope, SolverProblem
from tests.support.planning.builders import random_priced


def guide_of(priced: SolverProblem) -> RelaxationHint:
    hint = lower_bound(priced, max_boxes=4).hint
    assert hint is not None
    return hint


def test_every_choice_is_one_option_of_every_item_and_no_two_are_alike() -> None:
    priced = random_priced(0, num_tables=12)
    view, hint = search_view(priced), guide_of(priced)
    found = list(starts(view, target_of(view, hint), hint))
    assert len(found) > 1
    assert len({options.tobytes() for options in found}) == len(found)
    for options in found:
        np.testing.assert_array_equal(view.option_item[options], np.arange(12))


def test_the_relaxations_choice_comes_first() -> None:
    priced = random_priced(1, num_tables=12)
    view, hint = search_view(priced), guide_of(priced)
    first = next(starts(view, target_of(view, hint), hint))
    np.testing.assert_array_equal(view.items.option_source[first], hint.option)


def test_a_guide_may_name_options_that_the_search_leaves_out() -> None:
    """Table 0 may not use rank 0, so that nothing of it lies on all ranks, whatever a guide of another time says."""
    priced = random_priced(2, num_tables=4)
    allowed = priced.table_rank_allowed.copy()
    allowed[0, 0] = False
    limited = replace(priced, table_rank_allowed=allowed)
    scope = priced.family_scope[priced.option_family]
    everywhere = np.flatnonzero((priced.option_table == 0) & (scope == Scope.WORLD))
    assert len(everywhere)
    hint = guide_of(priced)
    option = hint.option.copy()
    option[0] = everywhere[-1]
    view = search_view(limited)
    first = next(starts(view, target_of(view, hint), replace(hint, option=option)))
    assert scope[view.items.option_source[first[0]]] != Scope.WORLD
    np.testing.assert_array_equal(view.items.option_source[first[1:]], option[1:])


def test_what_lies_on_all_ranks_goes_first_and_then_what_may_use_few() -> None:
    """So the ranks that fill up know the room; everything else keeps its order."""
    priced = random_priced(0, num_tables=6)
    allowed = priced.table_rank_allowed.copy()
    allowed[4, 1:] = False
    view = search_view(replace(priced, table_rank_allowed=allowed))
    scope = view.data.family_scope[view.data.option_family]
    options = np.array([np.flatnonzero((view.option_item == item) & (scope == Scope.RANK))[0] for item in range(6)])
    options[2] = np.flatnonzero((view.option_item == 2) & (scope == Scope.WORLD))[0]
    order = np.array([5, 4, 3, 2, 1, 0])
    np.testing.assert_array_equal(least_choice_first(view, options, order), [2, 4, 5, 3, 1, 0])


def test_a_guide_whose_prices_choose_too_many_bytes_is_not_alone() -> None:
    """Replicas that take half the time and half as much memory again: without a price of bytes all tables want one."""
    priced = random_priced(0, num_tables=8, fill=0.9)
    is_replica = priced.family_scope[priced.shape_family] == Scope.WORLD
    priced = replace(priced, shape_seconds=np.where(is_replica[:, None], 0.5, 1.0) * priced.shape_seconds)
    view, hint = search_view(priced), guide_of(priced)
    free = replace(hint, memory_price=np.zeros_like(hint.memory_price))
    guided, estimated = targets_of(view, free)
    assert not np.any(guided.memory_price)
    chosen = view.option_bytes[choose(view, estimated, 1.0)].sum(axis=0)
    assert np.all(chosen <= view.data.capacity.sum(axis=0))
    roomy = search_view(replace(priced, capacity_bytes=10 * priced.capacity_bytes))
    assert len(targets_of(roomy, free)) == 1
    assert len(targets_of(view, None)) == 1
    of_target = [target.memory_price.tobytes() for target, _, _ in itertools.islice(_by_turns(view, free, 1.0), 12)]
    assert of_target.count(guided.memory_price.tobytes()) == of_target.count(estimated.memory_price.tobytes()) == 6
