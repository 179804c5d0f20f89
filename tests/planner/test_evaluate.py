"""Arithmetic of loads and objectives, and one test per way to be illegal."""

from dataclasses import replace

import numpy as np
import pytest

from planner.evaluate import max_rank_time, objective_seconds, rank_loads, step_time, violations
from planner.priced import Assignment, Objective, PricedOptions


def two_tables() -> PricedOptions:
    """Two hosts of two ranks. Table 0: whole (5, 1) or everywhere (2, 2). Table 1: on a host (3, 4)."""
    return PricedOptions(
        objective=Objective.STEP_TIME,
        option_table=np.array([0, 0, 1]),
        option_same_host=np.array([False, False, False]),
        unit_option=np.array([0, 1, 2]),
        unit_scope=np.array([0, 2, 1], dtype=np.int8),
        unit_seconds=np.array([[5.0, 1.0], [2.0, 2.0], [3.0, 4.0]]),
        unit_bytes=np.array([[10.0], [10.0], [4.0]]),
        unit_total_bytes=np.array([[10.0], [40.0], [8.0]]),
        capacity_bytes=np.full((4, 1), 12.0),
        host_of_rank=np.array([0, 0, 1, 1]),
        table_rank_allowed=np.ones((2, 4), dtype=np.bool_),
        phase_weight=np.ones(2),
        phase_window_seconds=np.zeros(2),
    )


def assignment(chosen: list[int], sites: list[int]) -> Assignment:
    return Assignment(chosen_option=np.array(chosen), unit_site=np.array(sites))


APART = assignment([0, 2], [0, -1, 1])  # table 0 on rank 0, table 1 on host 1 (ranks 2 and 3)


def test_loads_of_each_scope() -> None:
    loads = rank_loads(two_tables(), APART)
    assert loads.seconds.tolist() == [[5, 1], [0, 0], [3, 4], [3, 4]]
    assert loads.bytes.ravel().tolist() == [10, 0, 4, 4]
    everywhere = rank_loads(two_tables(), assignment([1, 2], [-1, 0, 1]))
    assert everywhere.seconds.tolist() == [[2, 2], [2, 2], [5, 6], [5, 6]]


def test_objectives() -> None:
    """Step time: max(5, 3) + max(1, 4) = 9; slowest rank: max(5 + 1, 3 + 4) = 7."""
    priced = two_tables()
    seconds = rank_loads(priced, APART).seconds
    assert step_time(priced, seconds) == 9
    assert max_rank_time(priced, seconds) == 7
    assert objective_seconds(priced, seconds) == 9
    assert objective_seconds(replace(priced, objective=Objective.MAX_RANK_TIME), seconds) == 7


def test_windows_and_weights() -> None:
    """Two seconds of phase 0 are hidden (5 - 2 = 3); phase 1 does not count."""
    priced = replace(two_tables(), phase_window_seconds=np.array([2.0, 9.0]), phase_weight=np.array([1.0, 0.0]))
    assert step_time(priced, rank_loads(priced, APART).seconds) == 3


def test_a_valid_assignment_has_no_faults() -> None:
    assert violations(two_tables(), APART) == []


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (assignment([0, 1], [0, -1, 1]), "no option of its own"),
        (assignment([0, 2], [-1, -1, 1]), "not the units"),
        (assignment([0, 2], [0, 0, 1]), "not the units"),
        (assignment([0, 2], [4, -1, 1]), "does not exist"),
        (assignment([0, 2], [0, -1, 2]), "does not exist"),
        (assignment([0, 2], [2, -1, 1]), "exceeds tier 0 by 2 bytes"),
    ],
)
def test_each_illegal_assignment(broken: Assignment, fault: str) -> None:
    assert any(fault in found for found in violations(two_tables(), broken))


def test_user_constraints() -> None:
    priced = two_tables()
    forbidden = priced.table_rank_allowed.copy()
    forbidden[1, 3] = False
    assert "may not use" in violations(replace(priced, table_rank_allowed=forbidden), APART)[0]
    assert "share one rank" in violations(replace(priced, same_rank=(np.array([0, 1]),)), APART)[0]
    together = assignment([0, 2], [2, -1, 1])
    roomy = replace(priced, capacity_bytes=np.full((4, 1), 20.0))
    assert violations(replace(roomy, apart=(np.array([0, 1]),)), APART) == []
    assert "stay apart" in violations(replace(roomy, apart=(np.array([0, 1]),)), together)[0]


def test_pieces_of_one_host() -> None:
    priced = replace(
        two_tables(),
        option_table=np.array([0, 1]),
        option_same_host=np.array([True, False]),
        unit_option=np.array([0, 0, 1]),
        unit_scope=np.array([0, 0, 1], dtype=np.int8),
    )
    assert violations(priced, assignment([0, 1], [0, 1, 1])) == []
    assert "one host" in violations(priced, assignment([0, 1], [0, 2, 0]))[-1]
