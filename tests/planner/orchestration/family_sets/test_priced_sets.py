"""Prices of a few sets bound all sets: no plan beats the bound of its set, whichever set the prices are of."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Bools
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
    """Two tables of one or two modules on few ranks, with kinds that a plan starts."""
    priced = random_priced(
        seed,
        num_tables=2,
        num_hosts=1 + seed % 2,
        objective=tuple(Objective)[seed % 2],
        windows=seed % 3 > 0,
        fill=0.6,
        slowdown=seed % 3 == 0,
    )
    return with_kinds(priced, seed, scale=(0.1, 3.0, 30.0)[seed % 3], num_modules=1 + seed // 2 % 2)


def with_prices_of_all_plans(priced: SolverProblem) -> PricedSets:
    whole = whole_set(priced)
    assert whole is not None
    sets = PricedSets(priced)
    sets.raise_by(lower_bound(whole.priced).prices)
    return sets


def all_sets(sets: PricedSets, num_kinds: int) -> list[Bools]:
    """Return all sets of kinds, (K,) each, by looking at all subsets."""
    every = (np.array(some, dtype=np.bool_) for some in itertools.product((False, True), repeat=num_kinds))
    found = [kinds for kinds in every if sets.has_sets(kinds, kinds)]
    assert len(found) == sets.num_sets
    return found


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 5))
def test_no_plan_beats_the_bound_of_its_set(seed: int) -> None:
    """At the prices of all plans, and of every set."""
    priced = small(seed)
    sets = with_prices_of_all_plans(priced)
    every = all_sets(sets, priced.num_kinds)
    of_all = np.array([sets.bound_of(kinds) for kinds in every])
    for kinds in every if len(every) < 50 else every[::40]:
        one = set_of_just(priced, kinds)
        if one is not None:
            sets.raise_by(lower_bound(one.priced).prices)
    bounds = np.array([sets.bound_of(kinds) for kinds in every])
    assert np.all(bounds >= of_all)
    assert np.any(bounds > of_all)
    tried = 0
    for assignment in all_assignments(priced):
        if violations(priced, assignment):
            continue
        used = used_kinds(priced, assignment)
        assert sets.only_set(used, used) is not None
        assert sets.bound_of(used) <= objective_of(priced, assignment) * ROUNDING
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
    for kinds in all_sets(sets, priced.num_kinds):
        one = set_of_just(priced, kinds)
        if one is None or one.priced.num_families < np.sum(kinds[priced.family_kind]):
            continue  # families that others dominate are left out of the set's own model
        (model,) = relaxations(one.priced)
        assert max(sets.bound_of(kinds), 0.0) == pytest.approx(max(dual_value(model, prices), 0.0), rel=1e-8)
        compared += 1
    assert compared


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 6))
def test_sets_are_promising_in_the_order_of_their_bounds(seed: int) -> None:
    """Whether modules are looked at one by one or all sets are listed, hidden starts or not."""
    priced = small(seed)
    sets = with_prices_of_all_plans(priced)
    every = all_sets(sets, priced.num_kinds)
    for kinds in every[:: max(len(every) // 3, 1)]:
        one = set_of_just(priced, kinds)
        if one is not None:
            sets.raise_by(lower_bound(one.priced).prices)
    left = {kinds.tobytes(): sets.bound_of(kinds) for kinds in every}
    seen: set[bytes] = set()
    while (found := sets.most_promising(seen)) is not None and len(seen) < 40:
        least = min(left.values())
        assert found.bound_seconds == pytest.approx(least, rel=1e-8)
        assert left.pop(found.kinds.tobytes()) == pytest.approx(least, rel=1e-8)
        seen.add(found.kinds.tobytes())
    assert len(seen) == min(len(every), 40)


@pytest.mark.parametrize("most", [0, 1, 4])
def test_parts_of_sets_that_are_not_continued_count(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.orchestration.family_sets.priced_sets._MOST_PARTS", most)
    for seed in range(6):
        priced = small(seed)
        sets = with_prices_of_all_plans(priced)
        found = sets.most_promising(())
        assert found is not None
        bounds = {kinds.tobytes(): sets.bound_of(kinds) for kinds in all_sets(sets, priced.num_kinds)}
        assert found.bound_seconds <= min(bounds.values()) + 1e-9
        assert found.kinds.tobytes() in bounds


def test_pinned_kinds_are_in_every_set() -> None:
    priced = small(1)
    pinned = replace(priced, pinned_shape=np.array([0]), pinned_site=np.array([0]))
    kind = priced.family_kind[priced.shape_family[0]]
    without = np.arange(priced.num_kinds) != kind
    nothing = np.zeros_like(without)
    assert PricedSets(priced).has_sets(without, nothing)
    assert not PricedSets(pinned).has_sets(without, nothing)
    assert PricedSets(pinned).num_sets < PricedSets(priced).num_sets


@pytest.mark.parametrize("seed", range(5))
def test_what_is_not_looked_at_promises_no_more_than_its_best_set(seed: int) -> None:
    priced = small(seed)
    found = branch_kinds(priced, max_boxes=12, known_seconds=np.inf)
    (rest,) = (one for one in found if one.elsewhere)
    assert rest.promising is not None
    assert rest.promising.tobytes() not in rest.elsewhere
    assert not rest.holds(np.frombuffer(next(iter(rest.elsewhere)), dtype=np.bool_))
    assert rest.elsewhere == {one.required.tobytes() for one in found if one is not rest}


def test_more_kinds_than_can_be_listed_have_a_bound_above_that_of_all_plans() -> None:
    """Eight modules with four kinds each: 15 subsets of each, 2.6 thousand million sets."""
    priced = with_kinds(random_priced(3, num_tables=16, windows=False, fill=0.4), 3, num_modules=8)
    ranked = rank_sets(priced, max_boxes=100, known_seconds=np.inf)
    assert ranked is not None
    assert ranked.sets.num_sets > 10**9
    assert ranked.bound_seconds > ranked.whole.bound.seconds * 1.01
    for one in ranked.relaxed.values():
        assert one.bound_seconds >= ranked.bound_seconds


@pytest.mark.parametrize("seed", range(4))
def test_prices_of_open_sets_prove_no_more_than_of_the_sets_in_them(seed: int) -> None:
    """What is proven of plans that may use further kinds holds for each set of kinds among these."""
    priced = small(seed)
    sets = with_prices_of_all_plans(priced)
    every, none = np.ones(priced.num_kinds, dtype=np.bool_), np.zeros(priced.num_kinds, dtype=np.bool_)
    of_all, _ = sets.best_prices(every, none, 0)
    for kinds in all_sets(sets, priced.num_kinds):
        of_open, _ = sets.best_prices(every, kinds, 0)
        of_set, _ = sets.best_prices(kinds, kinds, 0)
        assert of_all <= of_open + 1e-8 <= of_set + 2e-8
    nothing, _ = sets.best_prices(none, none, 0)
    assert nothing == np.inf, "no table has a family"


def test_where_all_cuts_are_listed_other_sets_are_relaxed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exact search may then prove more of the set with the least bound, and the bound stands on the others."""
    more = 0
    for seed in range(6) if THOROUGH else (1, 2):
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
    if ranked.others is not None:
        least = min((one.bound_seconds for one in ranked.relaxed.values()), default=np.inf)
        assert least <= ranked.others.bound_seconds or len(ranked.relaxed) >= 4
