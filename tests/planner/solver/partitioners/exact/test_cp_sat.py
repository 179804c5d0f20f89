from dataclasses import replace

import numpy as np
import pytest

from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import SearchOptions, SolveLimits
from planner.solver.partitioners.exact import cp_sat
from planner.solver.problem import Objective, Outcome, Reason, Scope, SolverProblem
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import brute_force, random_priced


class TestCpSat(PartitionerContract):
    partitioner = cp_sat.CpSat()
    exact = True
    limits = replace(LIMITS, work_limit_seconds=1.5)


def test_large_models_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a start there is nothing to return, with one there is."""
    monkeypatch.setattr(cp_sat, "MAX_PLACEMENTS", 3)
    priced = random_priced(0, num_tables=2, fill=0.3)
    outcome = cp_sat.CpSat().solve(priced, LIMITS)
    assert outcome.reason is Reason.NO_SOLUTION_FOUND
    assert outcome.limit == "size"
    monkeypatch.undo()
    start = cp_sat.CpSat().solve(priced, LIMITS).assignment
    monkeypatch.setattr(cp_sat, "MAX_PLACEMENTS", 3)
    preserved = cp_sat.CpSat().solve(priced, LIMITS, SearchOptions(start=start))
    assert preserved.assignment is start
    assert (preserved.reason, preserved.limit) == (Reason.FEASIBLE, "size")


def test_rounding_keeps_the_bound_admissible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even with ticks so coarse that most costs round away, the bound stays below the optimum."""
    for objective in Objective:
        priced = random_priced(9, num_tables=2, objective=objective, slowdown=True, windows=True)
        best = brute_force(priced, listed=True)
        assert best is not None
        for ticks in (4, 16, 64, 1024):
            monkeypatch.setattr(cp_sat, "TICKS", ticks)
            outcome = cp_sat.CpSat().solve(priced, LIMITS, SearchOptions(lower_bound_seconds=best))
            assert outcome.bound_seconds <= best
            assert outcome.assignment is not None  # neither does a caller's bound cut off what rounding made cheaper
        assert outcome.bound_seconds > 0.9 * best


def proven_coarsely(priced: SolverProblem, limits: SolveLimits, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """What CP-SAT returns without its second run in fine ticks."""
    with monkeypatch.context() as patched:
        patched.setattr(cp_sat, "_is_coarse", lambda *_: False)
        return cp_sat.CpSat().solve(priced, limits)


@pytest.mark.parametrize("objective", Objective)
def test_what_coarse_ticks_prove_is_proven_again_in_fine_ones(
    monkeypatch: pytest.MonkeyPatch, objective: Objective
) -> None:
    monkeypatch.setattr(cp_sat, "TICKS", 256)
    priced = random_priced(9, num_tables=2, objective=objective, slowdown=True, windows=True)
    best = brute_force(priced, listed=True)
    assert best is not None
    exact = replace(LIMITS, relative_gap=0.0)
    coarse = proven_coarsely(priced, exact, monkeypatch)
    assert coarse.reason is Reason.OPTIMAL
    assert coarse.bound_seconds < best * 0.999
    fine = cp_sat.CpSat().solve(priced, exact)
    assert fine.reason is Reason.OPTIMAL
    assert best * (1 - 1e-6) <= fine.bound_seconds <= best
    assert fine.assignment is not None
    assert objective_of(priced, fine.assignment) == pytest.approx(best, rel=1e-9)


def test_the_second_proof_stays_within_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is left for it, plan and bound of the first stand, and the limit is named."""
    monkeypatch.setattr(cp_sat, "TICKS", 256)
    monkeypatch.setattr(cp_sat._Budget, "spend", lambda budget, _: setattr(budget, "_work_seconds", 0.0))  # noqa: SLF001
    priced = random_priced(9, num_tables=2, slowdown=True, windows=True)
    exact = replace(LIMITS, relative_gap=0.0)
    first = proven_coarsely(priced, exact, monkeypatch)
    outcome = cp_sat.CpSat().solve(priced, exact)
    assert outcome.assignment is not None
    assert first.bound_seconds <= outcome.bound_seconds < objective_of(priced, outcome.assignment) * 0.999
    assert (outcome.reason, outcome.limit) == (Reason.FEASIBLE, "deterministic_time")


def test_deterministic_limit_is_named() -> None:
    priced = random_priced(11, num_tables=12, num_hosts=2, ranks_per_host=4)
    limits = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.02, relative_gap=0.0, reproducible=True)
    outcome = cp_sat.CpSat().solve(priced, limits)
    assert outcome.limit == "deterministic_time"


def test_pieces_on_every_rank_need_every_rank() -> None:
    """Unpruned: the world-wide option of a table that may not use rank 3 must not be chosen."""
    priced = random_priced(2, num_tables=2)
    allowed = np.ones((2, 4), dtype=np.bool_)
    allowed[0, 3] = False
    world = priced.shape_seconds.copy()
    world[priced.shape_scope == Scope.WORLD] *= 1e-3  # what everyone would choose
    limited = replace(priced, table_rank_allowed=allowed, shape_seconds=world)
    outcome = cp_sat.CpSat().solve(limited, LIMITS)
    assert outcome.assignment is not None
    assert violations(limited, outcome.assignment) == []


def test_pinned_tables_cost_no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbourhood of one table in a plan of many is a small model."""
    priced = random_priced(4, num_tables=12, fill=0.3)
    whole = cp_sat.CpSat().solve(priced, replace(LIMITS, work_limit_seconds=0.5)).assignment
    assert whole is not None
    others = priced.shape_table[whole.piece_shape] > 0
    pinned = replace(priced, pinned_shape=whole.piece_shape[others], pinned_site=whole.piece_site[others])
    monkeypatch.setattr(cp_sat, "MAX_PLACEMENTS", 14)  # 4 whole, 4 of each of two widths, 2 per host
    outcome = cp_sat.CpSat().solve(pinned, LIMITS, SearchOptions(start=whole))
    assert outcome.reason is Reason.OPTIMAL
    assert outcome.assignment is not None
    assert violations(pinned, outcome.assignment) == []
    assert objective_of(pinned, outcome.assignment) <= objective_of(priced, whole)
