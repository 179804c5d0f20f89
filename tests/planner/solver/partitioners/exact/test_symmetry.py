from dataclasses import replace

import numpy as np
import pytest

from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.exact.columns import make_columns, values_of
from planner.solver.partitioners.exact.rows import make_rows
from planner.solver.partitioners.exact.symmetry import Symmetry, find_symmetry, in_order
from planner.solver.problem import SolverProblem
from tests.support.planning.builders import make_assignment, narrowest_shape, random_priced
from tests.support.planning.exhaustive import all_assignments
from tests.support.thorough import thorough


def members(symmetry: Symmetry) -> tuple[list[list[int]], list[list[int]]]:
    return [c.tolist() for c in symmetry.ranks], [c.tolist() for c in symmetry.hosts]


def test_all_are_alike_where_nothing_differs() -> None:
    assert members(find_symmetry(random_priced(0))) == ([[0, 1], [2, 3]], [[0, 1]])


def slower(priced: SolverProblem) -> SolverProblem:
    speed = np.ones((4, 2))
    speed[1, 0] = 1.5
    return replace(priced, rank_slowdown=speed)


def smaller(priced: SolverProblem) -> SolverProblem:
    capacity = priced.capacity_bytes.copy()
    capacity[1] -= 1
    return replace(priced, capacity_bytes=capacity)


def forbidden(priced: SolverProblem) -> SolverProblem:
    allowed = np.ones((3, 4), dtype=np.bool_)
    allowed[2, 1] = False
    return replace(priced, table_rank_allowed=allowed)


def pinned(priced: SolverProblem) -> SolverProblem:
    return replace(priced, pinned_shape=np.array([narrowest_shape(priced, 2, 0)]), pinned_site=np.array([1]))


@pytest.mark.parametrize("change", [slower, smaller, forbidden, pinned])
def test_a_rank_that_differs_is_in_no_class_and_neither_is_its_host(change: object) -> None:
    assert members(find_symmetry(change(random_priced(0)))) == ([[2, 3]], [])  # type: ignore[operator]


def test_a_piece_pinned_on_a_host_reports_hosts_apart_and_not_its_ranks() -> None:
    priced = random_priced(0)
    on_host = replace(priced, pinned_shape=np.array([narrowest_shape(priced, 0, 2)]), pinned_site=np.array([1]))
    assert members(find_symmetry(on_host)) == ([[0, 1], [2, 3]], [])


def test_hosts_that_are_alike_rank_by_rank() -> None:
    """Ranks 1 and 3 are slower: hosts may be exchanged, the ranks of one may not."""
    speed = np.ones((4, 2))
    speed[[1, 3]] = 2.0
    assert members(find_symmetry(replace(random_priced(0), rank_slowdown=speed))) == ([], [[0, 1]])


def test_order_of_first_use() -> None:
    """Table 1 is the dearest, then 0; they are on ranks 3 and 1: in order, on 0 and 2."""
    priced = random_priced(0, num_tables=2)
    symmetry = replace(find_symmetry(priced), table_place=np.array([1, 0]))
    whole = [narrowest_shape(priced, table, 0) for table in (0, 1)]
    twin = in_order(priced, symmetry, make_assignment([(whole[0], 1), (whole[1], 3)]))
    assert twin.piece_site.tolist() == [2, 0]


@thorough
@pytest.mark.parametrize("change", [lambda priced: priced, slower, forbidden])
def test_twins_cost_the_same_and_break_the_same_rules(change: object) -> None:
    priced = change(random_priced(2, num_tables=3, max_pieces=2))  # type: ignore[operator]
    symmetry = find_symmetry(priced)
    for index, assignment in enumerate(all_assignments(priced)):
        if index % 101:
            continue
        twin = in_order(priced, symmetry, assignment)
        assert objective_of(priced, twin) == pytest.approx(objective_of(priced, assignment), rel=1e-12)
        assert bool(violations(priced, twin)) == bool(violations(priced, assignment))
        again = in_order(priced, symmetry, twin)
        np.testing.assert_array_equal(again.piece_site, twin.piece_site)


def test_of_twins_only_the_one_in_order_keeps_all_rows() -> None:
    """One whole table on each of 4 equal ranks: only on the first one."""
    priced = random_priced(0, num_tables=1, fill=0.1)
    columns, symmetry = make_columns(priced), find_symmetry(priced)
    rows = list(make_rows(priced, columns, symmetry))

    def broken(rank: int) -> int:
        values = values_of(priced, columns, make_assignment([(narrowest_shape(priced, 0, 0), rank)]))
        totals = [(int(values[row.columns] @ row.coefficients), row) for row in rows]
        return sum(total > row.value or (row.is_equation and total != row.value) for total, row in totals)

    assert [broken(rank) > 0 for rank in range(4)] == [False, True, True, True]
