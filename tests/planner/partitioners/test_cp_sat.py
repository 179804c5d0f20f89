from dataclasses import replace

import numpy as np
import pytest

from planner.evaluate import violations
from planner.partitioners import cp_sat
from planner.partitioners.base import SolveLimits
from planner.priced import Reason
from tests.contracts.partitioner import LIMITS, PartitionerContract
from tests.planner.builders import brute_force, random_priced


class TestCpSat(PartitionerContract):
    partitioner = cp_sat.CpSat()
    exact = True


def test_large_models_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp_sat, "MAX_PLACEMENTS", 3)
    outcome = cp_sat.CpSat().solve(random_priced(0), LIMITS)
    assert outcome.termination.reason is Reason.NO_SOLUTION_FOUND
    assert outcome.termination.limit == "size"


def test_rounding_keeps_the_bound_admissible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with ticks so coarse that most costs round away, the bound stays below the optimum."""
    priced = random_priced(9, num_tables=2)
    best = brute_force(priced)
    assert best is not None
    for ticks in (4, 16, 64):
        monkeypatch.setattr(cp_sat, "TICKS", ticks)
        outcome = cp_sat.CpSat().solve(priced, LIMITS)
        assert outcome.bound_seconds <= best
    assert outcome.bound_seconds > 0.5 * best


def test_a_caller_s_bound_does_not_cut_off_the_optimum() -> None:
    priced = random_priced(3, num_tables=2)
    best = brute_force(priced)
    assert best is not None
    outcome = cp_sat.CpSat().solve(priced, LIMITS, lower_bound_seconds=best)
    assert outcome.termination.reason is Reason.OPTIMAL


def test_deterministic_limit_is_named() -> None:
    priced = random_priced(11, num_tables=12, num_hosts=2, ranks_per_host=4)
    limits = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.02, relative_gap=0.0, reproducible=True)
    outcome = cp_sat.CpSat().solve(priced, limits)
    assert outcome.termination.limit == "deterministic_time"


def test_options_on_every_rank_need_every_rank() -> None:
    """Unpruned: the world-wide option of a table that may not use rank 3 must not be chosen."""
    priced = random_priced(2, num_tables=2)
    allowed = np.ones((2, 4), dtype=np.bool_)
    allowed[0, 3] = False
    world = priced.unit_seconds.copy()
    world[priced.unit_scope == 2] *= 1e-3  # what everyone would choose
    limited = replace(priced, table_rank_allowed=allowed, unit_seconds=world)
    outcome = cp_sat.CpSat().solve(limited, LIMITS)
    assert outcome.assignment is not None
    assert violations(limited, outcome.assignment) == []


def test_more_memory_than_an_integer_holds() -> None:
    """Capacities are clipped to what all options together could ever take."""
    priced = random_priced(1, num_tables=2)
    endless = replace(priced, capacity_bytes=np.full((4, 1), 1e30))
    assert cp_sat.CpSat().solve(endless, LIMITS).termination.reason is Reason.OPTIMAL
