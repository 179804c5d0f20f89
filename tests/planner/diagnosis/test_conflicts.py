"""Conflicts and removals, against oracles that are written down."""

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from planner.diagnosis.conflicts import irreducible_conflict, removals

Sets = list[frozenset[int]]

conflicts = st.lists(st.frozensets(st.integers(0, 11), min_size=1, max_size=4), max_size=4)


def oracle(forbidden: Sets) -> Callable[[frozenset[int]], bool]:
    """A set leaves a plan unless it holds one of the forbidden ones."""
    return lambda preserved: not any(conflict <= preserved for conflict in forbidden)


@given(conflicts)
def test_no_constraint_of_a_conflict_can_be_spared(forbidden: Sets) -> None:
    has_plan = oracle(forbidden)
    found = frozenset(irreducible_conflict(range(12), has_plan))
    if not forbidden:
        assert not found
        return
    assert not has_plan(found)
    assert all(has_plan(found - {constraint}) for constraint in found)


@given(st.lists(st.frozensets(st.integers(0, 5)), max_size=20))
def test_an_oracle_that_errs_gets_no_conflict_that_it_contradicts(planless: Sets) -> None:
    """A short search may find a plan under more constraints and miss it under fewer."""

    def has_plan(preserved: frozenset[int]) -> bool:
        return preserved not in planless

    found = frozenset(irreducible_conflict(range(6), has_plan))
    assert not found or not has_plan(found)
    assert all(has_plan(found - {constraint}) for constraint in found)


def test_few_questions_find_few_of_many() -> None:
    asked: list[frozenset[int]] = []

    def has_plan(preserved: frozenset[int]) -> bool:
        asked.append(preserved)
        return not {3, 700} <= preserved

    assert sorted(irreducible_conflict(range(1000), has_plan)) == [3, 700]
    assert len(asked) <= 50  # of 1000 constraints, 2 of them in conflict


@given(conflicts)
def test_what_is_removed_cannot_be_preserved(forbidden: Sets) -> None:
    has_plan = oracle(forbidden)
    found = list(removals([range(8), range(8, 12)], has_plan))
    assert found[0] == tuple(range(12))
    for more, fewer in itertools.pairwise(found):
        assert set(fewer) < set(more)
        assert has_plan(frozenset(range(12)) - set(fewer))
    preserved = frozenset(range(12)) - set(found[-1])
    assert not any(has_plan(preserved | {constraint}) for constraint in found[-1])


def test_the_last_group_is_removed_rather_than_the_first() -> None:
    has_plan = oracle([frozenset({0, 3})])
    assert list(removals([[0, 1], [2, 3]], has_plan))[-1] == (3,)
    assert list(removals([[2, 3], [0, 1]], has_plan))[-1] == (0,)


def test_nothing_helps_where_no_constraint_is_to_blame() -> None:
    assert irreducible_conflict(range(3), lambda preserved: False) == ()
    assert list(removals([range(3)], lambda preserved: False)) == []
