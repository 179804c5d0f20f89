"""Sets of kinds hold every plan in one of them, and no plan of a set beats its bound: tried on all plans there are."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from planner.options.dominance import replaced_kinds
from planner.orchestration.family_sets.branch_kinds import bound_of_kinds, branch_kinds
from planner.orchestration.family_sets.kind_sets import (
    first_sets,
    whole_set,
    without_one,
    without_replaced_kinds,
)
from planner.pricing.price_options import drop_unusable, restrict
from planner.solver.evaluate import objective_of, used_kinds, violations
from planner.solver.problem import Objective, SolverProblem
from tests.support.planning.builders import all_assignments, brute_force, random_priced, with_kinds
from tests.support.thorough import THOROUGH

ROUNDING = 1 + 1e-9


def small(seed: int, *, fill: float = 0.6, windows: bool = True) -> SolverProblem:
    """Two tables on few ranks, of which every plan can be looked at."""
    objective = tuple(Objective)[seed % 2]
    priced = random_priced(
        seed,
        num_tables=2,
        num_hosts=1 + seed % 2,
        objective=objective,
        windows=windows,
        fill=fill,
        slowdown=seed % 3 == 0,
    )
    return drop_unusable(with_kinds(priced, seed, scale=(0.1, 3.0, 30.0)[seed % 3], num_modules=1 + seed // 2 % 2))


@functools.cache
def plans_of(seed: int) -> list[tuple[np.ndarray, float]]:
    """The kinds and the objective of every legal plan of a small problem, which several numbers of sets share."""
    priced = small(seed)
    return [
        (used_kinds(priced, assignment), objective_of(priced, assignment))
        for assignment in all_assignments(priced)
        if not violations(priced, assignment)
    ]


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 4))
@pytest.mark.parametrize("max_boxes", [1, 12, 60])
def test_every_plan_is_in_one_leaf_and_no_better_than_its_bound(seed: int, max_boxes: int) -> None:
    priced = small(seed)
    leaves = branch_kinds(priced, max_boxes=max_boxes, known_seconds=np.inf)
    assert len(leaves) > 1 or max_boxes < 12
    for used, objective in plans_of(seed):
        [leaf] = [one for one in leaves if one.holds(used)]
        assert leaf.bound.seconds <= objective * ROUNDING


@pytest.mark.parametrize("seed", range(30 if THOROUGH else 6))
@pytest.mark.parametrize("fill", [0.3, 0.6, 0.9])
def test_the_bound_of_all_sets_is_one_on_the_best_plan(seed: int, fill: float) -> None:
    """Also where a plan is known, where kinds replace each other, and where few sets may be looked at."""
    priced = small(100 + seed, fill=fill)
    best = brute_force(priced)
    if best is None:
        return
    for max_boxes in (1, 3, 40):
        for known in (np.inf, best, 1.3 * best):
            assert bound_of_kinds(priced, max_boxes=max_boxes, known_seconds=known) <= best * ROUNDING


@pytest.mark.parametrize("seed", range(10 if THOROUGH else 4))
def test_deciding_on_kinds_raises_the_bound(seed: int) -> None:
    priced = small(200 + seed)
    best = brute_force(priced)
    assert best is not None
    none = whole_set(priced)
    assert none is not None
    few, many = (bound_of_kinds(priced, max_boxes=boxes, known_seconds=best) for boxes in (1, 60))
    assert few <= many * ROUNDING
    assert many >= 0.6 * best, "the starts of the kinds that a plan needs are in the bound"


def test_a_set_charges_what_tables_leave_no_choice_of() -> None:
    """The first table has one kind alone; the other three or none of its kinds, of which the least counts."""
    priced = with_kinds(random_priced(1, num_tables=2, windows=False), 1)
    only = replace(priced, kind_start_seconds=np.array([[4.0, 1.0], [1.0, 5.0], [2.0, 2.0], [7.0, 7.0]]))
    keep = np.ones(only.num_families, dtype=np.bool_)
    keep[[1, 2, 3, 4]] = False  # table 0: kind 0; table 1: kinds 1 to 3
    one = whole_set(restrict(only, keep))
    assert one is not None
    assert one.required.tolist() == [True, False, False, False]
    # All tables share no kind, so that both groups pay: (4, 1) and the least of each phase, (1, 2).
    assert one.priced.charged_seconds.tolist() == [5.0, 3.0]


def test_a_table_that_a_required_kind_serves_charges_nothing_more() -> None:
    priced = replace(
        with_kinds(random_priced(1, num_tables=2), 1),
        kind_start_seconds=np.array([[4.0, 1.0], [1.0, 5.0], [2.0, 2.0], [7.0, 7.0]]),
    )
    keep = np.ones(priced.num_families, dtype=np.bool_)
    keep[[1, 2, 3]] = False  # table 0: kind 0; table 1: all kinds
    one = whole_set(restrict(priced, keep))
    assert one is not None
    assert one.priced.charged_seconds.tolist() == [4.0, 1.0]


@pytest.mark.parametrize("seed", range(8 if THOROUGH else 3))
def test_replaced_kinds_are_not_needed(seed: int) -> None:
    """A kind that is another one under a second name goes, unless it starts less in some phase."""
    priced = small(seed)
    twin = np.concatenate([np.arange(priced.num_families)] * 2)
    order = np.argsort(priced.family_table[twin], kind="stable")
    doubled = _doubled(priced, twin[order], (np.arange(len(twin)) >= priced.num_families)[order])
    by = replaced_kinds(doubled)
    assert np.all((by[priced.num_kinds :] >= 0) & (by[priced.num_kinds :] < priced.num_kinds))
    left = without_replaced_kinds(doubled)
    assert brute_force(left) == pytest.approx(brute_force(priced), rel=1e-12)
    assert by[priced.num_kinds] >= 0
    starts = doubled.kind_start_seconds.copy()
    starts[priced.num_kinds, 0] -= 0.05
    assert replaced_kinds(replace(doubled, kind_start_seconds=np.maximum(starts, 0.0)))[priced.num_kinds] != 0


def _doubled(priced: SolverProblem, families: np.ndarray, is_twin: np.ndarray) -> SolverProblem:
    """The problem with every family twice, under two kinds."""
    first, last = priced.shapes_of_family
    shapes = [np.arange(first[family], last[family]) for family in families]
    of_shape = np.concatenate(shapes)
    new_first = np.cumsum([0, *(len(one) for one in shapes)])
    options = [np.flatnonzero(priced.option_family == family) for family in families]
    unit_option, unit_shape, option_family = [], [], []
    for place, (family, some) in enumerate(zip(families, options, strict=True)):
        for option in some:
            units = priced.unit_shape[priced.unit_option == option] - first[family] + new_first[place]
            unit_option += [len(option_family)] * len(units)
            unit_shape += units.tolist()
            option_family.append(place)
    return replace(
        priced,
        family_table=priced.family_table[families],
        family_scope=priced.family_scope[families],
        family_same_host=priced.family_same_host[families],
        family_min_pieces=priced.family_min_pieces[families],
        family_max_pieces=priced.family_max_pieces[families],
        family_source=np.arange(len(families)),
        shape_family=np.repeat(np.arange(len(families)), [len(one) for one in shapes]),
        shape_columns=priced.shape_columns[of_shape],
        shape_seconds=priced.shape_seconds[of_shape],
        shape_bytes=priced.shape_bytes[of_shape],
        shape_total_bytes=priced.shape_total_bytes[of_shape],
        option_family=np.array(option_family),
        unit_option=np.array(unit_option),
        unit_shape=np.array(unit_shape),
        family_kind=priced.family_kind[families] + priced.num_kinds * is_twin,
        kind_start_seconds=np.vstack([priced.kind_start_seconds + 0.0, priced.kind_start_seconds + 0.01]),
        charged_kinds=np.zeros(2 * priced.num_kinds, dtype=np.bool_),
    )


@pytest.mark.parametrize("seed", range(6))
def test_first_sets_have_few_schemes_and_all_tables(seed: int) -> None:
    priced = small(seed)
    sets = list(first_sets(priced, np.arange(priced.num_kinds)))
    assert sets
    for one in sets:
        assert one.is_decided
        assert np.count_nonzero(one.allowed) <= 3
        assert len(np.unique(one.priced.family_table)) == priced.num_tables
    starts = [float(priced.kind_start_seconds.sum(axis=1) @ one.allowed) for one in sets]
    assert starts == sorted(starts)


def test_kinds_are_closed_one_by_one_the_longest_start_first() -> None:
    priced = replace(
        with_kinds(random_priced(3, num_tables=2), 3),
        kind_start_seconds=np.array([[1.0, 0.0], [5.0, 0.0], [2.0, 0.0], [3.0, 0.0]]),
    )
    used = np.array([True, True, False, True])
    closed = [np.flatnonzero(used & ~one.allowed).tolist() for one in without_one(priced, used)]
    assert closed == [[1], [3], [0]]
