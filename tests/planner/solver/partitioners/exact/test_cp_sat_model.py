"""The integer program says yes to exactly the valid plans, up to names of equal sites, and counts their ticks."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from ortools.sat.python import cp_model

from planner.pricing.price_options import restrict
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.exact.cp_sat_model import Model, build, hint, read
from planner.solver.partitioners.exact.symmetry import find_symmetry, in_order
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.planning.builders import brute_force, make_assignment, narrowest_shape, random_priced
from tests.support.planning.exhaustive import all_assignments
from tests.support.thorough import thorough

TICKS = 2**27


def solve(
    priced: SolverProblem, *, bound_seconds: float = 0.0, only: Assignment | None = None, num_ticks: int = TICKS
) -> tuple[cp_model.CpSolverStatus, float, Assignment | None]:
    """Solve to the end; ``only`` fixes every variable to an assignment."""
    model = build(priced, num_ticks, bound_seconds)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if only is not None:
        hint(model, only)
        solver.parameters.fix_variables_to_their_hinted_value = True
    status = solver.solve(model.proto)
    if status != cp_model.OPTIMAL:
        return status, float("inf"), None
    return status, solver.objective_value * model.ticks.tick_seconds, read(model, solver.value)


def plain(priced: SolverProblem) -> SolverProblem:
    return priced


def apart(priced: SolverProblem) -> SolverProblem:
    return replace(restrict(priced, priced.family_scope != Scope.WORLD), apart=(np.array([0, 1]),))


def same_rank(priced: SolverProblem) -> SolverProblem:
    return replace(priced, same_rank=(np.array([0, 1]),))


def forbidden(priced: SolverProblem) -> SolverProblem:
    allowed = np.ones((2, 4), dtype=np.bool_)
    allowed[0, 1] = allowed[1, 3] = False
    return replace(priced, table_rank_allowed=allowed)


def pinned(priced: SolverProblem) -> SolverProblem:
    four = narrowest_shape(priced, 0, 1)
    return replace(priced, pinned_shape=np.array([four + 1, four + 1]), pinned_site=np.array([0, 2]))


def pinned_and_apart(priced: SolverProblem) -> SolverProblem:
    return replace(pinned(priced), apart=(np.array([0, 1]),))


@thorough
@pytest.mark.parametrize("change", [plain, apart, same_rank, forbidden, pinned, pinned_and_apart])
@pytest.mark.parametrize("objective", list(Objective))
def test_every_valid_plan_has_a_twin_that_costs_the_same(
    change: Callable[[SolverProblem], SolverProblem], objective: Objective
) -> None:
    """A sample of all plans, each with all its variables fixed, loads included; no variable contradicts another."""
    priced = change(
        random_priced(1, num_tables=2, objective=objective, windows=True, same_host=True, fill=0.2, max_pieces=2)
    )
    valid = [a for a in all_assignments(priced, listed=True) if not violations(priced, a)]
    assert valid
    for assignment in valid[:: max(1, len(valid) // 8)]:
        status, cost, found = solve(priced, only=assignment)
        assert status == cp_model.OPTIMAL
        assert found is not None
        assert objective_of(priced, assignment) * (1 - 1e-5) <= cost + 1e-6
        assert cost <= objective_of(priced, assignment)
        twin = in_order(priced, find_symmetry(priced), assignment)
        assert sorted(zip(found.piece_shape, found.piece_site, strict=True)) == sorted(
            zip(twin.piece_shape, twin.piece_site, strict=True)
        )


@pytest.mark.parametrize("change", [plain, apart, same_rank, forbidden, pinned, pinned_and_apart])
@pytest.mark.parametrize("seed", range(2))
def test_the_best_plan_is_valid_and_the_best_of_all(
    change: Callable[[SolverProblem], SolverProblem], seed: int
) -> None:
    priced = change(random_priced(seed, num_tables=2, same_host=True, fill=0.2, max_pieces=2))
    best = brute_force(priced, listed=True)
    status, cost, found = solve(priced)
    assert status == cp_model.OPTIMAL
    assert found is not None
    assert violations(priced, found) == []
    assert best is not None
    assert cost <= best
    assert objective_of(priced, found) == pytest.approx(best, rel=1e-6)


def impossible_pin(priced: SolverProblem) -> SolverProblem:
    allowed = np.ones((2, 4), dtype=np.bool_)
    allowed[0, 2] = False  # rank 2 holds a pinned piece
    return replace(pinned(priced), table_rank_allowed=allowed)


def pins_beyond_memory(priced: SolverProblem) -> SolverProblem:
    return replace(pinned(priced), capacity_bytes=np.full((4, 1), 1.0))


def pins_on_two_ranks_of_a_group(priced: SolverProblem) -> SolverProblem:
    return same_rank(pinned(priced))


@pytest.mark.parametrize("change", [impossible_pin, pins_beyond_memory, pins_on_two_ranks_of_a_group])
def test_pins_that_leave_no_plan(change: Callable[[SolverProblem], SolverProblem]) -> None:
    assert solve(change(random_priced(0, num_tables=2)))[0] == cp_model.INFEASIBLE


def test_everything_pinned() -> None:
    priced = random_priced(0, num_tables=2, fill=0.1)
    only = make_assignment([(narrowest_shape(priced, 0, 0), 1), (narrowest_shape(priced, 1, 3), 0)])
    fixed = replace(priced, pinned_shape=only.piece_shape.copy(), pinned_site=only.piece_site.copy())
    _, cost, found = solve(fixed)
    assert found is not None
    np.testing.assert_array_equal(found.piece_shape, only.piece_shape)
    np.testing.assert_array_equal(found.piece_site, only.piece_site)
    assert cost == pytest.approx(objective_of(priced, only), rel=1e-6)


def two_tables(size: float, capacity: float) -> SolverProblem:
    """Two tables that are one piece each, on two ranks; the first costs nothing."""
    priced = random_priced(0, num_tables=2, num_hosts=1, ranks_per_host=2)
    whole = restrict(priced, np.isin(np.arange(priced.num_families), priced.families_of_table[0]))
    seconds = whole.shape_seconds.copy()
    seconds[0] = 0
    sizes = np.full((2, 1), size)
    return replace(
        whole,
        shape_seconds=seconds,
        shape_bytes=sizes,
        shape_total_bytes=sizes,
        capacity_bytes=np.full((2, 1), capacity),
    )


def test_a_fraction_of_a_byte_is_rounded_against_the_plan() -> None:
    """Two tables of 4.5 bytes on a rank of 9.5 are counted as 5 + 5, and of 10.5 as 10."""
    for capacity, fit in ((9.5, False), (10.5, True)):
        priced = replace(two_tables(4.5, capacity), same_rank=(np.array([0, 1]),))
        assert solve(priced)[0] == (cp_model.OPTIMAL if fit else cp_model.INFEASIBLE)


def test_more_memory_than_integers_hold() -> None:
    assert solve(two_tables(5.0, 1e30))[0] == cp_model.OPTIMAL


def test_a_bound_is_preserved_with_room_for_rounding() -> None:
    """Two pieces, and a tick each for pins and for the window, in each of 2 phases: 8 ticks.

    With ticks this coarse, the optimum's own value as a bound would cut off all plans, were it not lowered.
    """
    priced = two_tables(5.0, 100.0)
    best = brute_force(priced)
    assert best is not None
    for num_ticks in (5, 50, 500):
        free, preserved = (solve(priced, bound_seconds=b, num_ticks=num_ticks) for b in (0.0, best))
        assert preserved[:2] == free[:2]
    tick = build(priced, 500, 0.0).ticks.tick_seconds
    in_ticks = free[1] / tick
    high = solve(priced, bound_seconds=(in_ticks + 9.5) * tick, num_ticks=500)
    assert high[1] == pytest.approx(free[1] + tick)  # as if nothing below were worth a look


def test_equal_pieces_are_counted_not_distinguished() -> None:
    """8 + 8 and 8 + 4 + 4 columns: two shapes of a family and one of each other, on 4 ranks and 2 hosts."""
    model: Model = build(random_priced(0, num_tables=1, fill=0.1), TICKS, 0.0)
    assert np.unique(model.columns.shape).tolist() == [0, 1, 2, 4]
    assert model.columns.upper[len(model.columns.option) :].tolist() == [1] * 4 + [2] * 4 + [2] * 4 + [1] * 2
