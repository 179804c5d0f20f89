"""Sets that begin with a plan that is known, where they hold it and where they have less room."""

from dataclasses import replace

import numpy as np

from planner.orchestration.family_sets.family_set import started
from planner.solver.evaluate import rank_loads, violations
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import Assignment, Scope
from tests.support.planning.begun_solves import BegunSolve, begun_solve
from tests.support.planning.builders import make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=100.0, work_limit_seconds=8.0, relative_gap=0.0)


def begun() -> tuple[BegunSolve, Assignment]:
    """A solve of eight tables, and a plan that has all of them on one rank."""
    solve = begun_solve(make_problem(*[make_table(f"t{i}", 20_000) for i in range(8)], cluster=make_cluster()), LIMITS)
    priced = solve.first.priced
    on_rank = priced.shape_scope == Scope.RANK
    whole = [
        np.flatnonzero(on_rank & (priced.shape_table == table) & (priced.shape_columns == 64))[0] for table in range(8)
    ]
    return solve, Assignment(piece_shape=np.array(whole), piece_site=np.zeros(8, dtype=np.int64))


def test_a_plan_is_taken_as_it_is() -> None:
    solve, plan = begun()
    priced = solve.first.priced
    found = started(solve.context, priced, priced, plan)
    assert found is not None
    assert found.outcome.assignment is not None
    np.testing.assert_array_equal(found.outcome.assignment.piece_site, plan.piece_site)


def test_pieces_move_where_a_set_has_less_room() -> None:
    solve, plan = begun()
    priced = solve.first.priced
    used = rank_loads(priced, plan).bytes.max(axis=0)
    less = replace(priced, capacity_bytes=np.minimum(priced.capacity_bytes, np.where(used > 0, used / 2, np.inf)))
    found = started(solve.context, less, priced, plan)
    assert found is not None
    assert found.outcome.assignment is not None
    assert not violations(less, found.outcome.assignment)


def test_a_set_without_any_room_begins_with_nothing() -> None:
    solve, plan = begun()
    priced = solve.first.priced
    assert started(solve.context, replace(priced, capacity_bytes=priced.capacity_bytes * 1e-9), priced, plan) is None
