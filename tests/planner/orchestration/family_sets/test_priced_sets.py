"""Prices of a few sets bound all sets: no plan beats the bound of its set, whichever set the prices are of."""

from dataclasses import replace

import numpy as np
import pytest

from planner.orchestration.family_sets.branch_kinds import branch_kinds, rank_sets
from planner.orchestration.family_sets.kind_sets import set_of_just, whole_set
from planner.orchestration.family_sets.priced_sets import PricedSets
from planner.solver.bounds.chain import lower_bound
from planner.solver.bounds.dual import dual_value
from planner.solver.bounds.relaxation import relaxations
from planner.solver.evaluate import objective_of, used_kinds, violations
from planner.solver.problem import Objective, SolverProblem
from tests.support.planning.builders import all_assignments, random_priced, with_kinds
from tests.support.thorough import THOROUGH

ROUNDING = 1 + 1e-9


def small(seed: int) -> SolverProblem:
    """Two tables on few ranks, with kinds that a plan starts."""
    priced = random_priced(
        seed,
        num_tables=2,
        num_hosts=1 + seed % 2,
        objective=tuple(Objective)[seed % 2],
        windows=seed % 3 > 0,
        fill=0.6,
        slowdown=seed % 3 == 0,
    )
    return with_kinds(priced, seed, scale=(0.1, 3.0, 30.0)[seed % 3])


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 5))
def test_no_plan_beats_the_bound_of_its_set(seed: int) -> None:
    """At the prices of all plans, and of every set."""
    priced = small(seed)
    sets = PricedSets(priced)
    whole = whole_set(priced)
    assert whole is not None
    sets.raise_by(lower_bound(whole.priced).prices)
    of_all = sets.bound_seconds.copy()
    for kinds in sets.kinds:
        one = set_of_just(priced, kinds)
        if one is not None:
            sets.raise_by(lower_bound(one.priced).prices)
    assert np.all(sets.bound_seconds >= of_all)
    assert np.any(sets.bound_seconds > of_all)
    tried = 0
    for assignment in all_assignments(priced):
        if violations(priced, assignment):
            continue
        (number,) = np.flatnonzero(np.all(sets.kinds == used_kinds(priced, assignment), axis=1))
        assert sets.bound_seconds[number] <= objective_of(priced, assignment) * ROUNDING
        tried += 1
    assert tried


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_the_dual_value_of_the_set(seed: int) -> None:
    """Of a model that has the kinds of the set alone, and starts them."""
    priced = small(seed)
    if len(relaxations(priced)) > 1:
        priced = replace(priced, rank_slowdown=np.ones_like(priced.rank_slowdown))
    whole = whole_set(priced)
    assert whole is not None
    (prices,) = lower_bound(whole.priced).prices
    assert prices is not None
    sets = PricedSets(priced)
    sets.raise_by((prices,))
    compared = 0
    for kinds, least in zip(sets.kinds, sets.bound_seconds, strict=True):
        one = set_of_just(priced, kinds)
        if one is None or one.priced.num_families < np.sum(kinds[priced.family_kind]):
            continue  # families that others dominate are left out of the set's own model
        (model,) = relaxations(one.priced)
        assert least == pytest.approx(max(dual_value(model, prices), 0.0), rel=1e-8)
        compared += 1
    assert compared


def test_pinned_kinds_are_in_every_set() -> None:
    priced = small(1)
    pinned = replace(priced, pinned_shape=np.array([0]), pinned_site=np.array([0]))
    kind = priced.family_kind[priced.shape_family[0]]
    assert np.all(PricedSets(pinned).kinds[:, kind])
    assert len(PricedSets(pinned).kinds) < len(PricedSets(priced).kinds)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_looked_at_promises_no_more_than_its_best_set(seed: int) -> None:
    priced = small(seed)
    found = branch_kinds(priced, max_boxes=12, known_seconds=np.inf)
    (rest,) = (one for one in found if one.elsewhere)
    assert rest.promising is not None
    assert rest.promising.tobytes() not in rest.elsewhere
    assert not rest.holds(np.frombuffer(next(iter(rest.elsewhere)), dtype=np.bool_))
    assert rest.elsewhere == {one.required.tobytes() for one in found if one is not rest}


def test_many_kinds_are_split_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same bounds in the end: of all plans, the least of all sets."""
    priced = small(4)
    all_sets = branch_kinds(priced, max_boxes=400, known_seconds=np.inf)
    monkeypatch.setattr("planner.orchestration.family_sets.branch_kinds.MOST_KINDS", 0)
    tree = branch_kinds(priced, max_boxes=400, known_seconds=np.inf)
    assert not any(one.elsewhere for one in tree)
    by_sets, by_tree = (min(one.bound.seconds for one in some) for some in (all_sets, tree))
    assert by_sets == pytest.approx(by_tree, rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_prices_of_open_sets_prove_no_more_than_of_the_sets_in_them(seed: int) -> None:
    """What is proven of plans that may use further kinds holds for each set of kinds among these."""
    priced = small(seed)
    whole = whole_set(priced)
    assert whole is not None
    sets = PricedSets(priced)
    sets.raise_by(lower_bound(whole.priced).prices)
    every, none = np.ones(priced.num_kinds, dtype=np.bool_), np.zeros(priced.num_kinds, dtype=np.bool_)
    of_all, _ = sets.best_prices(every, none, 0)
    for kinds in sets.kinds:
        of_open, _ = sets.best_prices(every, kinds, 0)
        of_set, _ = sets.best_prices(kinds, kinds, 0)
        assert of_all <= of_open * ROUNDING <= of_set * ROUNDING**2
    nothing, _ = sets.best_prices(none, none, 0)
    assert nothing == np.inf, "no table has a family"


def test_where_all_cuts_are_listed_other_sets_are_relaxed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact search may then prove more of the set with the least bound, and the bound stands on the others."""
    more = 0
    for seed in range(6):
        priced, relaxed = small(seed), []
        for is_listed in (False, True):
            monkeypatch.setattr(
                "planner.orchestration.family_sets.branch_kinds.lists_all_cuts", lambda _, listed=is_listed: listed
            )
            ranked = rank_sets(priced, max_boxes=400, known_seconds=np.inf)
            assert ranked is not None
            relaxed.append(len(ranked.relaxed))
        assert relaxed[1] >= relaxed[0]
        more += relaxed[1] > relaxed[0]
    assert more


@pytest.mark.parametrize("seed", range(6))
def test_however_few_boxes_there_are_the_set_that_seems_best_is_relaxed(seed: int) -> None:
    """Prices of all plans may promise much of kinds that no plan can do with, and large models have few boxes."""
    ranked = rank_sets(small(seed), max_boxes=1, known_seconds=np.inf)
    assert ranked is not None
    best = int(np.argmin(ranked.sets.bound_seconds))
    assert best in ranked.relaxed or len(ranked.relaxed) >= 4
