"""Descents only ever improve, stay legal, and stop when their tries or their time are used up."""

import itertools
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from planner.evaluate import objective_seconds, rank_loads, violations
from planner.partitioners import descent
from planner.partitioners.builder import SearchView, search_view
from planner.partitioners.construct import construct
from planner.partitioners.descent import Tries, reoption, replace_tables
from planner.priced import Assignment, Objective
from tests.planner.builders import random_priced
from tests.planner.partitioners.hand_priced import Option, on_rank, view_of

Descent = Callable[[SearchView, Assignment, Tries], Iterator[Assignment]]
DESCENTS: tuple[Descent, ...] = (reoption, replace_tables)


def tries(number: int) -> Tries:
    """So many tries, and no clock."""
    return Tries(number, math.inf)


def value(view: SearchView, assignment: Assignment) -> float:
    """The objective of an assignment."""
    return objective_seconds(view.priced, rank_loads(view.priced, assignment).seconds)


def first_plan(view: SearchView) -> Assignment:
    """Every table with its first option."""
    built = construct(view, np.asarray(view.first_option))
    assert built is not None
    return built


def test_tries_are_spent() -> None:
    left = tries(5)
    assert left.spend(3)
    assert left.spend(2)
    assert not left.spend(1)
    assert not left.timed_out


def test_time_ends_tries_for_good() -> None:
    left = Tries(10**9, time.monotonic() - 1.0)
    assert not left.spend(1)
    assert left.timed_out


@pytest.mark.parametrize("descend", DESCENTS)
@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(6))
def test_each_plan_is_legal_and_better_than_the_last(descend: Descent, objective: Objective, seed: int) -> None:
    view = search_view(random_priced(seed, num_tables=6, fill=0.3, objective=objective, windows=seed % 2 == 1))
    start = first_plan(view)
    values = [value(view, start)]
    for found in descend(view, start, tries(10_000)):
        assert violations(view.priced, found) == []
        values.append(value(view, found))
    assert all(later < earlier for earlier, later in itertools.pairwise(values))


@pytest.mark.parametrize("descend", DESCENTS)
def test_they_do_improve(descend: Descent) -> None:
    """Whole tables take 10 s and 8 s, halves 1 s: both are cut, one after the other."""
    halves = (on_rank(1.0), on_rank(1.0))
    view = view_of(Option(0, (on_rank(10.0),)), Option(0, halves), Option(1, (on_rank(8.0),)), Option(1, halves))
    *_, last = descend(view, first_plan(view), tries(1_000))
    assert value(view, last) == 1.0
    assert last.chosen_option.tolist() == [1, 3]


@pytest.mark.parametrize("descend", DESCENTS)
def test_without_tries_nothing_is_tried(descend: Descent, monkeypatch: pytest.MonkeyPatch) -> None:
    view = search_view(random_priced(1, num_tables=6, fill=0.3))
    start = first_plan(view)
    monkeypatch.setattr(descent, "construct", None)
    assert list(descend(view, start, tries(0))) == []


def test_reoption_pays_for_every_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    """A construction places 6 tables: 20 tries are three of them."""
    view = search_view(random_priced(1, num_tables=6, fill=0.3))
    start, calls = first_plan(view), []
    monkeypatch.setattr(descent, "construct", lambda *given: calls.append(given) or construct(*given))
    list(reoption(view, start, tries(20)))
    assert len(calls) == 3


def test_replacing_pays_for_every_option() -> None:
    """4 options per table: 9 tries are two tables, and the rest of the round is refused."""
    view = search_view(random_priced(1, num_tables=6, fill=0.3))
    left = tries(9)
    list(replace_tables(view, first_plan(view), left))
    assert left.left < 0
    generous = tries(9 + 4 * 6 * descent.MAX_ROUNDS)
    list(replace_tables(view, first_plan(view), generous))
    assert generous.left >= 9, "at most MAX_ROUNDS rounds over all tables"


@pytest.mark.parametrize("descend", DESCENTS)
def test_equal_starts_give_equal_descents(descend: Descent) -> None:
    view = search_view(random_priced(3, num_tables=6, fill=0.3))
    runs = [[a.unit_site.tolist() for a in descend(view, first_plan(view), tries(2_000))] for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0]


def test_same_rank_groups_stay_together() -> None:
    options = (Option(0, (on_rank(3.0),)), Option(1, (on_rank(3.0),)), Option(2, (on_rank(5.0),)))
    view = view_of(*options, same_rank=((0, 1),))
    start = first_plan(view)
    for descend in DESCENTS:
        for found in (start, *descend(view, start, tries(1_000))):
            assert violations(view.priced, found) == []
