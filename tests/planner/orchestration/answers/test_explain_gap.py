"""What plans say of their gap: parts that add up, nothing of proven plans, and how the solve went."""

import time
from dataclasses import replace

import pytest

from planner.domain.plan.plan import Plan
from planner.domain.problem.problem import Problem
from planner.orchestration.answers import explain_gap
from planner.orchestration.answers.explain_gap import late_gain, parts_of_gap
from planner.orchestration.answers.finish_plan import within_bound
from planner.pipeline import plan
from planner.solver.bounds.chain import Bound, lower_bound
from planner.solver.partitioners.base import Incumbent, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from tests.support.planning.begun_solves import begun_solve
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=20.0, work_limit_seconds=0.5, relative_gap=0.0)


def uneven() -> Problem:
    """Five tables on four ranks: no plan of whole tables is even."""
    tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=10.0 + i) for i in range(5)]
    return make_problem(*tables, cluster=make_cluster(1, 4, intra_host_latency_seconds=1e-6))


def planned(limits: SolveLimits = LIMITS) -> Plan:
    found = plan(uneven(), cost_model=ROOFLINE, partitioner=Greedy(), limits=limits).plan
    assert found is not None
    return found


def test_parts_add_up_to_the_gap() -> None:
    found = planned()
    parts = found.gap_parts
    assert found.reason == "FEASIBLE"
    assert parts is not None
    gap_seconds = found.evaluation.objective_seconds - found.lower_bound_seconds
    total = parts.balance_seconds + parts.packing_seconds + parts.choice_seconds
    assert total == pytest.approx(gap_seconds, rel=1e-6)
    assert parts.refuted_seconds >= 0
    assert found.late_gain_seconds is None or found.late_gain_seconds >= 0


def test_plans_that_are_proven_or_compared_with_another_bound_have_none() -> None:
    assert planned(replace(LIMITS, relative_gap=1.0)).gap_parts is None
    found = planned()
    assert within_bound(found, 0.9 * found.lower_bound_seconds, 0.0).gap_parts is None


def test_a_search_that_proves_its_plan_has_no_gap_to_explain() -> None:
    problem = make_problem(make_table("one", 1000, 64), cluster=make_cluster(1, 2))
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert found is not None
    assert found.reason == "OPTIMAL"
    assert found.gap_parts is None


def test_a_longer_solve_may_raise_bounds_that_branch_on_or_are_of_other_plans() -> None:
    solve = begun_solve(uneven(), LIMITS)
    context, first = solve.context, solve.first
    assignment = first.outcome.assignment
    assert assignment is not None
    low, high = lower_bound(first.priced).seconds, 0.99 * first.seconds
    final = Bound(seconds=high, hint=None, relaxed_seconds=low, is_final=True)

    def explained(*bounds: Bound, is_exact: bool = False) -> tuple[float, bool]:
        parts = parts_of_gap(context, first.priced, assignment, high, list(bounds), is_exact=is_exact)
        assert parts is not None
        return parts.refuted_seconds, parts.is_bound_final

    assert explained(final) == (pytest.approx(high - low), True)
    assert explained(final, replace(final, seconds=2 * high, is_final=False)) == (pytest.approx(high - low), True)
    assert explained(replace(final, is_final=False)) == (pytest.approx(high - low), False)
    assert explained(final, is_exact=True) == (pytest.approx(high - low), False)
    assert explained() == (0.0, False)


@pytest.mark.parametrize(("before", "gain"), [(None, None), (1.5, 0.5), (1.0005, 0.0), (1.0, 0.0)])
def test_what_the_second_half_of_a_solve_gained(
    monkeypatch: pytest.MonkeyPatch, before: float | None, gain: float | None
) -> None:
    """In parts of the plan's seconds; gains that searches do not report while they run count as none."""
    solve = begun_solve(uneven(), LIMITS)
    context, first, reporter = solve.context, solve.first, solve.reporter
    assignment = first.outcome.assignment
    assert assignment is not None
    if before is not None:
        seconds = before * first.seconds
        reporter.report(first.priced, Incumbent(assignment=assignment, objective_seconds=seconds, partitioner="x"))
    reported = time.monotonic()
    later = Incumbent(assignment=assignment, objective_seconds=first.seconds * (1 - 1e-9), partitioner="x")
    reporter.report(first.priced, later)

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return 2 * reported - context.began_seconds  # half of the solve ended before the later plan

    monkeypatch.setattr(explain_gap, "time", Clock)
    late = late_gain(context, reporter, first.seconds)
    assert late is None if gain is None else late == pytest.approx(gain * first.seconds, rel=1e-3)


def test_a_gap_is_not_divided_after_the_time_limit() -> None:
    solve = begun_solve(uneven(), LIMITS)
    first, bound = solve.first, lower_bound(solve.first.priced)
    assert first.outcome.assignment is not None

    def divided(began_seconds: float) -> bool:
        context = replace(solve.context, began_seconds=began_seconds)
        assert first.outcome.assignment is not None
        parts = parts_of_gap(context, first.priced, first.outcome.assignment, bound.seconds, [bound], is_exact=False)
        return parts is not None

    now = time.monotonic()
    assert divided(now)
    assert not divided(now - LIMITS.time_limit_seconds)
