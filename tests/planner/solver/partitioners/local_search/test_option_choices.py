"""Tastes: always the same, spread out; a choice by one keeps its caps and pays for size."""

import itertools
from dataclasses import replace

import numpy as np

from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import by_choice_rule
from planner.solver.partitioners.local_search.option_choices import OptionChoiceRule, choose_by, option_choice_rules
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.partitioners.local_search.starts import choose, largest_of_memory, target_of
from planner.solver.problem import Scope
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import random_priced

FREE = OptionChoiceRule(price=0.0, of_bytes=0.0, cap=1.0, memory_cap=1.0, slower=1.0)


def test_tastes_are_always_the_same_and_fill_their_ranges_evenly() -> None:
    found = list(itertools.islice(option_choice_rules(1.5), 64))
    assert found == list(itertools.islice(option_choice_rules(1.5), 64))
    for low, high, values in (
        (np.log(0.003), np.log(0.6), [np.log(choice_rule.price) for choice_rule in found]),
        (0.0, 1.2, [choice_rule.of_bytes for choice_rule in found]),
        (0.5, 1.0, [choice_rule.cap for choice_rule in found]),
        (0.35, 1.0, [choice_rule.memory_cap for choice_rule in found]),
        (1.0, 1.5, [choice_rule.slower for choice_rule in found]),
    ):
        counts, _ = np.histogram(values, bins=8, range=(low, high))
        assert np.all(counts >= 4), counts
        assert counts.sum() == 64


def test_without_a_price_of_size_only_the_caps_count() -> None:
    view = search_view(random_priced(3, num_tables=12))
    target = target_of(view, None)
    np.testing.assert_array_equal(choose_by(view, target, FREE), choose(view, target, 1.0, largest_of_memory(view)))


def test_the_costlier_size_is_the_smaller_pieces_are() -> None:
    view = search_view(random_priced(3, num_tables=12))
    target = target_of(view, None)
    squares = []
    for price in (0.0, 0.03, 0.3, 30.0):
        options = choose_by(view, target, replace(FREE, price=price))
        part = np.max(view.option_largest[options] / target.slowest_seconds, axis=1)
        on_all = view.data.family_scope[view.data.option_family[options]] == Scope.WORLD
        squares.append(float(np.sum(np.where(on_all, 0.0, part) ** 2)))
    assert squares == sorted(squares, reverse=True)
    assert squares[-1] < 0.5 * squares[0]


def test_bytes_count_as_size_if_the_start_asks_for_it() -> None:
    view = search_view(random_priced(3, num_tables=12, fill=0.9))
    target = target_of(view, None)
    largest = [
        float(
            np.sum(largest_of_memory(view)[choose_by(view, target, replace(FREE, price=1.0, of_bytes=of_bytes))] ** 2)
        )
        for of_bytes in (0.0, 5.0)
    ]
    assert largest[1] < largest[0]


def test_who_expects_slower_ranks_takes_larger_pieces() -> None:
    """As long as they were over the cap; nobody does where ranks are not said to be slower."""
    view = search_view(random_priced(3, num_tables=12))
    target = target_of(view, None)
    squares = []
    for slower in (1.0, 1.5, 3.0):
        options = choose_by(view, target, replace(FREE, cap=0.5, slower=slower))
        squares.append(float(np.sum(view.option_largest[options] ** 2)))
    assert squares[0] < squares[1] <= squares[2]
    assert {choice_rule.slower for choice_rule in itertools.islice(option_choice_rules(), 8)} == {1.0}


def test_states_are_as_many_as_asked_for_and_differ() -> None:
    view = search_view(random_priced(0, num_tables=12))
    chains = list(by_choice_rule(view, None, 12, itertools.count(), Effort(LIMITS)))
    assert len(chains) == 12
    assert len({chain.seconds for chain in chains}) > 3


def test_tables_that_are_legal_nowhere_end_it() -> None:
    """All keep apart from each other, and there are more of them than ranks: every choice is tried, none built."""
    priced = random_priced(0, num_tables=12)
    pairs = list(itertools.combinations(range(12), 2))
    apart = replace(priced, apart=(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])))
    chains: list[Chain] = list(by_choice_rule(search_view(apart), None, 5, itertools.count(), Effort(LIMITS)))
    assert chains == []
