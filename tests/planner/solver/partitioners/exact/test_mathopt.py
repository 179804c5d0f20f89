from dataclasses import replace

import numpy as np
import pytest
from ortools.math_opt.python import mathopt as solvers

from planner.errors import SolverDefect
from planner.pricing.price_options import restrict
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import SearchOptions, SolveLimits
from planner.solver.partitioners.exact import mathopt
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.exact.mathopt_model import build, read
from planner.solver.problem import Objective, Reason, SolverProblem
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import brute_force, random_priced
from tests.support.thorough import thorough


class TestMathOpt(PartitionerContract):
    partitioner = mathopt.MathOpt()
    exact = True


@thorough
class TestScip(PartitionerContract):
    """The fallback keeps the same promises."""

    partitioner = mathopt.MathOpt()
    exact = True

    @pytest.fixture(autouse=True)
    def _scip_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(mathopt, "SOLVERS", (solvers.SolverType.GSCIP,))


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_it_agrees_with_cp_sat(seed: int) -> None:
    """Three tables with all that may differ, too many plans to try them all."""
    priced = random_priced(seed, windows=True, same_host=True, slowdown=seed > 1, equal_capacity=seed % 2 == 0)
    ours, theirs = (one.solve(priced, replace(LIMITS, work_limit_seconds=20.0)) for one in (mathopt.MathOpt(), CpSat()))
    assert ours.assignment is not None
    assert theirs.assignment is not None
    assert objective_of(priced, ours.assignment) == pytest.approx(objective_of(priced, theirs.assignment), rel=1e-5)
    assert ours.bound_seconds <= objective_of(priced, theirs.assignment)


def test_the_bound_is_close_to_the_optimum() -> None:
    for objective in Objective:
        priced = random_priced(9, num_tables=2, objective=objective, slowdown=True, windows=True)
        best = brute_force(priced, listed=True)
        assert best is not None
        outcome = mathopt.MathOpt().solve(priced, LIMITS, SearchOptions(lower_bound_seconds=best))
        assert best * (1 - 1e-5) <= outcome.bound_seconds <= best


def two_tables(over_bytes: float) -> SolverProblem:
    """Two whole tables of 40 GB, cheaper together: their rank is that many bytes too small for both."""
    priced = random_priced(0, num_tables=2, num_hosts=1, ranks_per_host=2)
    whole = restrict(priced, np.isin(np.arange(priced.num_families), priced.families_of_table[0]))
    sizes = np.full((2, 1), 40e9)
    speed = np.array([[1.0, 1.0], [50.0, 50.0]])  # both on the fast rank, where they fit
    capacity = np.array([[80e9 - over_bytes], [80e9]])
    return replace(whole, shape_bytes=sizes, shape_total_bytes=sizes, capacity_bytes=capacity, rank_slowdown=speed)


def test_a_tolerance_lets_no_byte_too_many_through() -> None:
    """A byte of 80 GB is below every solver's tolerance: the plan is solved again, and says so."""
    fits = mathopt.MathOpt().solve(two_tables(0), LIMITS)
    assert fits.assignment is not None
    assert fits.assignment.piece_site.tolist() == [0, 0]
    tight = two_tables(1)
    best = brute_force(tight)
    outcome = mathopt.MathOpt().solve(tight, LIMITS)
    assert outcome.assignment is not None
    assert best is not None
    assert violations(tight, outcome.assignment) == []
    assert objective_of(tight, outcome.assignment) == pytest.approx(best)
    assert outcome.reason is Reason.FEASIBLE
    assert "memory" in outcome.detail
    assert outcome.bound_seconds <= best


def test_nothing_is_returned_where_leaving_memory_free_does_not_help() -> None:
    tight = two_tables(1)
    smaller = replace(tight, capacity_bytes=np.array([[80e9 - 1], [1.0]]))
    outcome = mathopt.MathOpt().solve(smaller, LIMITS)
    assert outcome.assignment is None
    assert outcome.reason is Reason.NO_SOLUTION_FOUND


def test_values_that_break_a_row_are_no_plan() -> None:
    model = build(random_priced(0, num_tables=1), 0.0, 0.0)
    assert read(model, dict.fromkeys(model.variables, 0.0)) is None


def test_large_models_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mathopt, "MAX_PLACEMENTS", 3)
    outcome = mathopt.MathOpt().solve(random_priced(0), LIMITS)
    assert (outcome.reason, outcome.limit) == (Reason.NO_SOLUTION_FOUND, "size")


@thorough
def test_a_reproducible_search_is_limited_in_nodes() -> None:
    priced = random_priced(11, num_tables=10, num_hosts=2, ranks_per_host=4)
    limits = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.1, relative_gap=0.0)
    outcome = mathopt.MathOpt().solve(priced, limits)
    assert outcome.limit == "deterministic_time"


def test_the_clock_ends_other_searches() -> None:
    priced = random_priced(11, num_tables=10, num_hosts=2, ranks_per_host=4)
    limits = SolveLimits(time_limit_seconds=0.5, relative_gap=0.0, reproducible=False)
    assert mathopt.MathOpt().solve(priced, limits).limit == "time"


def test_scip_takes_over_where_highs_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[solvers.SolverType] = []
    solve = solvers.solve

    def fail(model: solvers.Model, solver: solvers.SolverType, **options: object) -> solvers.SolveResult:
        tried.append(solver)
        if solver == solvers.SolverType.HIGHS:
            raise AttributeError("'StatusNotOk' object has no attribute 'canonical_code'")
        return solve(model, solver, **options)

    monkeypatch.setattr(mathopt.mathopt, "solve", fail)
    outcome = mathopt.MathOpt().solve(random_priced(0, num_tables=2), LIMITS)
    assert outcome.reason is Reason.OPTIMAL
    assert tried == [solvers.SolverType.HIGHS, solvers.SolverType.GSCIP]


def test_solvers_that_all_fail_are_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AttributeError("broken")

    monkeypatch.setattr(mathopt.mathopt, "solve", fail)
    with pytest.raises(SolverDefect, match="broken"):
        mathopt.MathOpt().solve(random_priced(0, num_tables=2), LIMITS)


def test_solvers_are_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """Standard output belongs to whoever asked for a plan."""
    mathopt.MathOpt().solve(random_priced(0, num_tables=2), LIMITS)
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")
