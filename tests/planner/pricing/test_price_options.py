"""Dropping families never loses the optimum, and drops what it should."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cost_models.vocabulary import Scheme
from planner.domain.problem.problem import Problem
from planner.options.dominance import dominated_families
from planner.options.enumerate import enumerate_families
from planner.pricing.price_options import price, prune, restrict, roomiest_site
from planner.solver.problem import Objective, Scope, SolverProblem
from tests.support.planning.builders import (
    ROOFLINE,
    brute_force,
    make_cluster,
    make_problem,
    make_table,
    narrowest_shape,
    random_priced,
)
from tests.support.thorough import thorough


def with_copies(priced: SolverProblem, slower: NDArray[np.float64]) -> SolverProblem:
    """Each family twice, the copy's seconds times ``slower``, shape (S, P), and on the same sites."""
    families = np.repeat(np.arange(priced.num_families), 2)
    first, last = priced.shapes_of_family
    shapes = np.concatenate([np.arange(first[f], last[f]) for f in families])
    shape_family = np.repeat(np.arange(len(families)), (last - first)[families])
    is_copy = shape_family % 2 == 1
    options = np.concatenate([np.flatnonzero(priced.option_family == f) for f in families])
    option_family = np.repeat(np.arange(len(families)), np.bincount(priced.option_family)[families])
    unit_first, unit_last = priced.units_of_option
    units = np.concatenate([np.arange(unit_first[o], unit_last[o]) for o in options])
    unit_option = np.repeat(np.arange(len(options)), (unit_last - unit_first)[options])
    new_first = np.searchsorted(shape_family, np.arange(len(families)))
    within = priced.unit_shape[units] - first[priced.shape_family[priced.unit_shape[units]]]
    return replace(
        priced,
        family_table=priced.family_table[families],
        family_scope=priced.family_scope[families],
        family_same_host=priced.family_same_host[families],
        family_min_pieces=priced.family_min_pieces[families],
        family_max_pieces=priced.family_max_pieces[families],
        family_source=families,
        shape_family=shape_family,
        shape_columns=priced.shape_columns[shapes],
        shape_seconds=priced.shape_seconds[shapes] * np.where(is_copy[:, None], slower[shapes], 1.0),
        shape_bytes=priced.shape_bytes[shapes],
        shape_total_bytes=priced.shape_total_bytes[shapes],
        option_family=option_family,
        unit_option=unit_option,
        unit_shape=new_first[option_family[unit_option]] + within,
    )


@thorough
@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(8))
def test_pruning_keeps_the_optimum_over_all_cuts(objective: Objective, seed: int) -> None:
    """Copies that are slower, faster, or slower at some widths only; memory tight and not."""
    priced = random_priced(
        seed,
        num_tables=2,
        fill=(0.5, 0.8, 0.95)[seed % 3],
        objective=objective,
        windows=seed % 4 == 1,
        same_host=seed % 4 == 2,
        slowdown=seed % 2 == 1,
        equal_capacity=seed % 4 != 3,
    )
    rng = np.random.default_rng(seed)
    for low, high in ((1.0, 1.3), (0.8, 1.0), (0.8, 1.3)):
        doubled = with_copies(priced, rng.uniform(low, high, priced.shape_seconds.shape))
        pruned = prune(doubled)
        for listed in (False, True):
            want, found = (brute_force(one, listed=listed) for one in (doubled, pruned))
            assert found == (None if want is None else pytest.approx(want, rel=1e-12))
        if (low, high) != (0.8, 1.3):
            assert pruned.num_families <= priced.num_families


def test_equal_families_leave_one() -> None:
    """The one that is listed first."""
    priced = random_priced(0, num_tables=2)
    twice = with_copies(priced, np.ones_like(priced.shape_seconds))
    assert dominated_families(twice).tolist() == [False, True] * priced.num_families


def test_what_keeps_a_costlier_family() -> None:
    """The other may be cheaper everywhere: where it cannot do the same, both stay."""
    priced = random_priced(0, num_tables=1, fill=0.2)
    twice = with_copies(priced, np.full_like(priced.shape_seconds, 1.5))
    pieces, copy = 2, 3  # the column family and its dearer copy

    def copy_goes(**changes: object) -> bool:
        return bool(dominated_families(replace(twice, **changes))[copy])  # type: ignore[arg-type]

    def set_at(array: NDArray[np.generic], index: int, value: object) -> NDArray[np.generic]:
        changed = array.copy()
        changed[index] = value
        return changed

    shape = int(twice.shapes_of_family[0][pieces])
    assert copy_goes()
    assert not copy_goes(family_same_host=set_at(twice.family_same_host, pieces, True))
    assert copy_goes(family_same_host=set_at(twice.family_same_host, copy, True))
    assert not copy_goes(family_max_pieces=set_at(twice.family_max_pieces, pieces, 2))
    assert copy_goes(family_max_pieces=set_at(twice.family_max_pieces, copy, 2))
    assert not copy_goes(family_min_pieces=set_at(twice.family_min_pieces, pieces, 3))
    assert copy_goes(family_min_pieces=set_at(twice.family_min_pieces, copy, 3))
    assert not copy_goes(family_scope=set_at(twice.family_scope, pieces, Scope.HOST))
    assert not copy_goes(shape_seconds=set_at(twice.shape_seconds, shape, 99.0))
    assert not copy_goes(shape_bytes=set_at(twice.shape_bytes, shape, 99.0))
    pin = {"pinned_shape": np.array([shape + 4, shape + 4]), "pinned_site": np.array([0, 1])}
    assert not copy_goes(**pin), "a user's choice is not for us to improve"


def test_phases_that_do_not_count_are_not_compared() -> None:
    priced = random_priced(0, num_tables=1)
    slower = np.ones_like(priced.shape_seconds)
    slower[:, 0], slower[:, 1] = 1.1, 0.5
    twice = with_copies(priced, slower)
    assert not np.any(dominated_families(twice))
    assert np.any(dominated_families(replace(twice, phase_weight=np.array([1.0, 0.0]))))


def test_a_family_with_fewer_widths_is_replaced_by_one_with_more() -> None:
    """Pieces of 8 and 12 columns against 4, 8 and 12: compared width by width."""
    priced = random_priced(0, num_tables=1, fill=0.2)
    twice = with_copies(priced, np.full_like(priced.shape_seconds, 1.01))
    narrowest_of_copy = int(twice.shapes_of_family[0][3])
    sizes = twice.shape_bytes.copy()
    sizes[narrowest_of_copy] = 1e9  # fits nowhere: the copy loses its narrowest shape
    fewer = prune(replace(twice, shape_bytes=sizes))
    assert fewer.family_source.tolist() == list(range(priced.num_families))


def test_a_family_with_fewer_widths_replaces_none_that_has_more() -> None:
    """The cheaper one has no piece of 12 columns that fits, so that 12 + 4 is left to its dearer copy."""
    priced = random_priced(0, num_tables=1, fill=0.2)
    twice = with_copies(priced, np.full_like(priced.shape_seconds, 1.01))
    sizes = twice.shape_bytes.copy()
    sizes[int(twice.shapes_of_family[1][2]) - 1] = 1e9
    assert prune(replace(twice, shape_bytes=sizes)).family_source.tolist() == [0, 1, 1, 2, 3]


def test_shapes_that_fit_nowhere_are_dropped_and_their_options() -> None:
    """12 of 16 columns do not fit any more, pieces of 4 and 8 do; whole tables neither."""
    priced = random_priced(0, num_tables=1)
    first = narrowest_shape(priced, 0, 1)
    limit = float(priced.shape_bytes[first + 2, 0]) - 1
    small = prune(replace(priced, capacity_bytes=np.full((4, 1), limit)))
    assert small.family_source.tolist() == [1, 2, 3]
    assert small.shape_columns.tolist() == [4, 8, 16, 16]
    assert [small.shape_columns[small.unit_shape[small.unit_option == o]].tolist() for o in range(2)] == [
        [8, 8],
        [8, 4, 4],
    ]
    smaller = prune(replace(priced, capacity_bytes=np.full((4, 1), float(priced.shape_bytes[first + 1, 0]) - 1)))
    assert 1 not in smaller.family_source, "4 + 4 + 4 is not 16: any cut has a piece of 8"


def test_the_roomiest_site() -> None:
    """A rank has its own bytes, a host and the world those of their smallest rank; forbidden ranks do not count."""
    priced = replace(random_priced(0, num_tables=1), capacity_bytes=np.array([[50.0], [90.0], [70.0], [80.0]]))
    assert roomiest_site(priced).ravel().tolist() == [90, 90, 90, 90, 70, 50]
    forbidden = np.array([[True, False, True, False]])
    limited = replace(priced, table_rank_allowed=forbidden)
    assert roomiest_site(limited).ravel().tolist() == [70, 70, 70, 70, -1, -1]
    assert set(prune(limited).family_scope.tolist()) == {Scope.RANK}


def test_pinned_shapes_may_not_be_lost() -> None:
    priced = random_priced(0, num_tables=1)
    pinned = replace(priced, pinned_shape=np.array([0]), pinned_site=np.array([2]))
    on_ranks = restrict(pinned, priced.family_scope == Scope.RANK)
    assert on_ranks.pinned_shape.tolist() == [0]
    with pytest.raises(ValueError, match="shapes of pinned tables"):
        restrict(pinned, priced.family_scope != Scope.RANK)


def test_restrict_renumbers() -> None:
    """Two tables: the column family of table 0 goes, and with it three shapes, two options and five units."""
    priced = random_priced(0, num_tables=2)
    keep = np.ones(priced.num_families, dtype=np.bool_)
    keep[1] = False
    pinned = replace(priced, pinned_shape=np.array([6]), pinned_site=np.array([3]))
    less = restrict(pinned, keep)
    assert less.family_source.tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert less.shape_family.tolist() == [0, 1, 2, 3, 4, 4, 4, 5, 6]
    assert less.option_family.tolist() == [0, 1, 2, 3, 4, 4, 5, 6]
    assert less.unit_option.tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 7]
    assert less.unit_shape.tolist() == [0, 1, 2, 3, 5, 5, 5, 4, 4, 7, 8]
    assert less.pinned_shape.tolist() == [3]
    assert np.array_equal(less.shape_seconds, priced.shape_seconds[[0, 4, 5, 6, 7, 8, 9, 10, 11]])


def preserved(problem: Problem) -> set[Scheme]:
    """Schemes that are left of a problem."""
    families = enumerate_families(problem)
    priced = prune(price(problem, families, ROOFLINE))
    return {families.families[int(source)].scheme for source in priced.family_source}


def test_schemes_that_are_the_same_on_one_host() -> None:
    """On one host table_row_wise is row_wise and table_column_wise is column_wise."""
    found = preserved(make_problem(make_table(dim=256, rows=10**6), cluster=make_cluster(1, 4)))
    assert Scheme.TABLE_ROW_WISE not in found
    assert Scheme.TABLE_COLUMN_WISE not in found
    assert {Scheme.TABLE_WISE, Scheme.COLUMN_WISE, Scheme.ROW_WISE} <= found


def test_the_solver_problem_of_a_problem() -> None:
    """128 columns on 2 hosts of 2 ranks: every shape is priced once, and a wider one is never smaller."""
    problem = make_problem(make_table("a", dim=128), make_table("b", rows=3, dim=64), cluster=make_cluster(2, 2))
    families = enumerate_families(problem)
    priced = price(problem, families, ROOFLINE)
    assert priced.table_columns.tolist() == [128, 64]
    first, last = priced.shapes_of_family
    for index, family in enumerate(families.families):
        shapes = slice(int(first[index]), int(last[index]))
        assert priced.family_table[index] == family.table
        assert priced.shape_columns[shapes].tolist() == family.widths.columns.tolist()
        assert priced.family_min_pieces[index] == family.geometry.min_pieces
        assert priced.family_max_pieces[index] == family.widths.max_pieces
        assert np.all(np.diff(priced.shape_bytes[shapes].sum(axis=1)) > 0)
    same_host = [family.scheme for family, one in zip(families.families, priced.family_same_host, strict=True) if one]
    assert set(same_host) == {Scheme.TABLE_COLUMN_WISE}
    assert np.all(priced.shape_total_bytes <= priced.shape_bytes * priced.shape_ranks[:, None])
    by_rows = [i for i, f in enumerate(families.families) if (f.table, f.scheme) == (1, Scheme.TABLE_ROW_WISE)]
    (shape,) = np.flatnonzero(np.isin(priced.shape_family, by_rows))
    assert priced.shape_total_bytes[shape].sum() < 2 * priced.shape_bytes[shape].sum(), "3 rows on 2 ranks: one missing"
