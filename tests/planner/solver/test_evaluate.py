"""Arithmetic of loads and objectives, and one test per way to be illegal."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from planner.solver.evaluate import max_rank_time, objective_of, objective_seconds, rank_loads, step_time, violations
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.planning.builders import (
    all_assignments,
    best_assignment,
    brute_force,
    make_assignment,
    random_priced,
)


def two_tables() -> SolverProblem:
    """Two hosts of two ranks, and two tables of 16 columns.

    Table 0: whole on a rank (shape 0), in two or three pieces of 4, 8 or 12 columns (shapes 1, 2, 3), or
    everywhere (shape 4). Table 1: on a host (shape 5).
    """
    return SolverProblem(
        objective=Objective.STEP_TIME,
        table_columns=np.array([16, 16]),
        family_table=np.array([0, 0, 0, 1]),
        family_scope=np.array([Scope.RANK, Scope.RANK, Scope.WORLD, Scope.HOST], dtype=np.int8),
        family_same_host=np.zeros(4, dtype=np.bool_),
        family_min_pieces=np.array([1, 2, 1, 1]),
        family_max_pieces=np.array([1, 3, 1, 1]),
        shape_family=np.array([0, 1, 1, 1, 2, 3]),
        shape_columns=np.array([16, 4, 8, 12, 16, 16]),
        shape_seconds=np.array([[5.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0], [2.0, 2.0], [3.0, 4.0]]),
        shape_bytes=np.array([[10.0], [3.0], [5.0], [8.0], [10.0], [4.0]]),
        shape_total_bytes=np.array([[10.0], [3.0], [5.0], [8.0], [40.0], [8.0]]),
        option_family=np.array([0, 1, 2, 3]),
        unit_option=np.array([0, 1, 1, 2, 3]),
        unit_shape=np.array([0, 2, 2, 4, 5]),
        capacity_bytes=np.full((4, 1), 12.0),
        host_of_rank=np.array([0, 0, 1, 1]),
        rank_slowdown=np.ones((4, 2)),
        table_rank_allowed=np.ones((2, 4), dtype=np.bool_),
        phase_weight=np.ones(2),
        phase_window_seconds=np.zeros(2),
    )


APART = make_assignment([(0, 0), (5, 1)])  # table 0 on rank 0, table 1 on host 1 (ranks 2 and 3)


def test_loads_of_each_scope() -> None:
    loads = rank_loads(two_tables(), APART)
    assert loads.seconds.tolist() == [[5, 1], [0, 0], [3, 4], [3, 4]]
    assert loads.bytes.ravel().tolist() == [10, 0, 4, 4]
    everywhere = rank_loads(two_tables(), make_assignment([(4, 0), (5, 1)]))
    assert everywhere.seconds.tolist() == [[2, 2], [2, 2], [5, 6], [5, 6]]


def test_unequal_pieces_add_up_where_they_meet() -> None:
    """8 + 4 + 4 columns, the two narrow ones on rank 3: 2 x 2 + 3 of the host's table."""
    loads = rank_loads(two_tables(), make_assignment([(2, 0), (1, 3), (1, 3), (5, 1)]))
    assert loads.seconds.tolist() == [[3, 1], [0, 0], [3, 4], [7, 6]]
    assert loads.bytes.ravel().tolist() == [5, 0, 4, 10]


def test_a_slow_rank_takes_longer_for_seconds_and_holds_the_same_bytes() -> None:
    slowdown = np.ones((4, 2))
    slowdown[2] = [2.0, 1.0]
    loads = rank_loads(replace(two_tables(), rank_slowdown=slowdown), APART)
    assert loads.seconds.tolist() == [[5, 1], [0, 0], [6, 4], [3, 4]]
    assert loads.bytes.ravel().tolist() == [10, 0, 4, 4]


def test_objectives() -> None:
    """Step time: max(5, 3) + max(1, 4) = 9; slowest rank: max(5 + 1, 3 + 4) = 7."""
    priced = two_tables()
    seconds = rank_loads(priced, APART).seconds
    assert step_time(priced, seconds) == 9
    assert max_rank_time(priced, seconds) == 7
    assert objective_seconds(priced, seconds) == objective_of(priced, APART) == 9
    slowest = replace(priced, objective=Objective.MAX_RANK_TIME)
    assert objective_seconds(slowest, seconds) == objective_of(slowest, APART) == 7


def test_windows_and_weights() -> None:
    """Two seconds of phase 0 are hidden (5 - 2 = 3); phase 1 does not count."""
    priced = replace(two_tables(), phase_window_seconds=np.array([2.0, 9.0]), phase_weight=np.array([1.0, 0.0]))
    seconds = rank_loads(priced, APART).seconds
    assert step_time(priced, seconds) == 3
    assert max_rank_time(priced, seconds) == 5  # hidden time counts in full


@pytest.mark.parametrize(
    "valid",
    [
        APART,
        make_assignment([(2, 1), (2, 0), (5, 1)]),
        make_assignment([(1, 0), (3, 1), (5, 1)]),  # 4 + 12 columns, which is not a listed cut
        make_assignment([(1, 2), (2, 0), (1, 1), (5, 1)]),  # in any order of widths
        make_assignment([(2, 0), (2, 0), (5, 1)]),  # two pieces on one rank
    ],
)
def test_a_valid_assignment_has_no_faults(valid: Assignment) -> None:
    assert violations(two_tables(), valid) == []


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (make_assignment([(6, 0), (5, 1)]), "a shape that does not exist"),
        (make_assignment([(-1, 0), (5, 1)]), "a shape that does not exist"),
        (make_assignment([(0, 4), (5, 1)]), "a site that does not exist"),
        (make_assignment([(0, -1), (5, 1)]), "a site that does not exist"),
        (make_assignment([(0, 0), (5, 2)]), "a site that does not exist"),  # there are two hosts
        (make_assignment([(4, 1), (5, 1)]), "a site that does not exist"),  # the world is one site
        (make_assignment([(0, 0)]), "missing"),
        (make_assignment([(5, 1), (0, 0)]), "not next to each other"),  # tables in the wrong order
        (make_assignment([(2, 0), (5, 1), (2, 0)]), "not next to each other"),
        (make_assignment([(2, 0), (0, 1), (5, 1)]), "mixes pieces of several families"),
        (make_assignment([(2, 0), (1, 1), (5, 1)]), "do not add up"),  # 12 columns of 16
        (make_assignment([(0, 0), (0, 1), (5, 1)]), "do not add up"),  # 32 columns
        (make_assignment([(1, 0), (1, 1), (1, 2), (1, 3), (5, 1)]), "a number of pieces"),  # four, at most three
        (make_assignment([(0, 2), (5, 1)]), "rank 2 exceeds tier 0 by 2 bytes"),
    ],
)
def test_each_illegal_assignment(broken: Assignment, fault: str) -> None:
    (found,) = violations(two_tables(), broken)
    assert fault in found


def test_too_few_pieces() -> None:
    wide = replace(two_tables(), family_min_pieces=np.array([1, 3, 1, 1]))
    assert violations(wide, make_assignment([(2, 0), (1, 1), (1, 0), (5, 1)])) == []
    (found,) = violations(wide, make_assignment([(2, 0), (2, 1), (5, 1)]))
    assert "a number of pieces" in found


def test_ranks_that_a_table_may_not_use() -> None:
    """Every rank that a piece touches counts, not only the site it is named by."""
    priced = two_tables()
    for table, rank in ((0, 0), (1, 2), (1, 3)):
        forbidden = priced.table_rank_allowed.copy()
        forbidden[table, rank] = False
        (found,) = violations(replace(priced, table_rank_allowed=forbidden), APART)
        assert "may not use" in found
    forbidden = priced.table_rank_allowed.copy()
    forbidden[0, 1] = False
    limited = replace(priced, table_rank_allowed=forbidden, capacity_bytes=np.full((4, 1), 99.0))
    assert violations(limited, APART) == []
    assert "may not use" in violations(limited, make_assignment([(4, 0), (5, 1)]))[0]


def test_tables_that_share_one_rank() -> None:
    priced = replace(two_whole_tables(), same_rank=(np.array([0, 1]),))
    assert violations(priced, make_assignment([(0, 3), (1, 3)])) == []
    assert "share one rank" in violations(priced, make_assignment([(0, 3), (1, 2)]))[0]


def test_tables_that_stay_apart() -> None:
    priced = replace(two_whole_tables(), apart=(np.array([0, 1]),))
    assert violations(priced, make_assignment([(0, 3), (1, 2)])) == []
    assert "stay apart" in violations(priced, make_assignment([(0, 3), (1, 3)]))[0]
    roomy = replace(two_tables(), apart=(np.array([0, 1]),), capacity_bytes=np.full((4, 1), 99.0))
    assert violations(roomy, APART) == []
    assert violations(roomy, make_assignment([(2, 0), (2, 0), (5, 1)])) == []  # a table may meet itself
    for meeting in ([(0, 2), (5, 1)], [(2, 0), (2, 3), (5, 1)], [(4, 0), (5, 1)]):
        assert "stay apart" in violations(roomy, make_assignment(meeting))[0]


def two_whole_tables() -> SolverProblem:
    """Two tables, each whole on a rank."""
    return SolverProblem(
        objective=Objective.STEP_TIME,
        table_columns=np.array([16, 16]),
        family_table=np.array([0, 1]),
        family_scope=np.zeros(2, dtype=np.int8),
        family_same_host=np.zeros(2, dtype=np.bool_),
        family_min_pieces=np.ones(2, dtype=np.int64),
        family_max_pieces=np.ones(2, dtype=np.int64),
        shape_family=np.array([0, 1]),
        shape_columns=np.array([16, 16]),
        shape_seconds=np.ones((2, 1)),
        shape_bytes=np.ones((2, 1)),
        shape_total_bytes=np.ones((2, 1)),
        option_family=np.array([0, 1]),
        unit_option=np.array([0, 1]),
        unit_shape=np.array([0, 1]),
        capacity_bytes=np.full((4, 1), 2.0),
        host_of_rank=np.array([0, 0, 1, 1]),
        rank_slowdown=np.ones((4, 1)),
        table_rank_allowed=np.ones((2, 4), dtype=np.bool_),
        phase_weight=np.ones(1),
        phase_window_seconds=np.zeros(1),
    )


def test_pieces_of_one_host() -> None:
    priced = replace(two_tables(), family_same_host=np.array([False, True, False, False]))
    assert violations(priced, make_assignment([(2, 0), (2, 1), (5, 1)])) == []
    assert violations(priced, make_assignment([(0, 0), (5, 1)])) == []
    (found,) = violations(priced, make_assignment([(2, 0), (2, 2), (5, 1)]))
    assert found == "table 0 must keep its pieces on one host"


def test_pinned_tables() -> None:
    priced = replace(two_tables(), pinned_shape=np.array([1, 3]), pinned_site=np.array([2, 0]))
    assert violations(priced, make_assignment([(1, 2), (3, 0), (5, 1)])) == []
    for moved in ([(1, 1), (3, 0), (5, 1)], [(3, 0), (1, 2), (5, 1)], [(2, 0), (2, 2), (5, 1)], [(0, 0), (5, 1)]):
        assert "not where it was pinned" in violations(priced, make_assignment(moved))[-1]


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hosts": 1},
        {"num_hosts": 1, "objective": Objective.MAX_RANK_TIME, "windows": True, "fill": 0.9},
        {"num_tables": 1, "same_host": True, "slowdown": True, "equal_capacity": False},
    ],
)
def test_brute_force_agrees_with_one_by_one(changes: dict[str, Any]) -> None:
    """The tests' own optimum, which adds tables up array by array, against every plan evaluated alone."""
    priced = random_priced(1, **({"num_tables": 2, "fill": 0.4} | changes))
    pinned = replace(priced, pinned_shape=priced.unit_shape[:1].copy(), pinned_site=np.array([1]))
    tied = replace(priced, apart=(np.arange(priced.num_tables),))
    together = replace(priced, same_rank=(np.arange(priced.num_tables),))
    forbidden = priced.table_rank_allowed.copy()
    forbidden[0, 0] = False
    limited = replace(priced, table_rank_allowed=forbidden)
    for one in (priced, pinned, tied, together, limited):
        for listed in (False, True):
            legal = [a for a in all_assignments(one, listed=listed) if not violations(one, a)]
            best = best_assignment(one, listed=listed)
            assert (best is None) is (not legal)
            if best is not None:
                assert violations(one, best) == []
                want = min(objective_of(one, a) for a in legal)
                assert brute_force(one, listed=listed) == pytest.approx(want, rel=1e-12)
