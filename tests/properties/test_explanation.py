"""Explanations of any plan: alternatives are legal, priced as the score prices them, and no better than an optimum."""

import pytest
from hypothesis import assume, given

from planner.domain.problem.problem import Problem
from planner.orchestration.placement.listed_plan import find_plan
from planner.orchestration.placement.to_placement import to_placement
from planner.output.explain.alternatives import Alternatives
from planner.output.explain.explanation import explain
from planner.output.explain.text.explanation import explanation_text
from planner.output.explain.text.layout import WIDTH
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.properties.problems import problems
from tests.properties.test_optimum import CAREFUL
from tests.support.planning.builders import ROOFLINE
from tests.support.thorough import thorough

LIMITS = SolveLimits(time_limit_seconds=5.0, work_limit_seconds=0.3, relative_gap=0.0)


@thorough
@CAREFUL
@given(problems())
def test_alternatives_are_plans_and_an_optimum_has_no_better_one(problem: Problem) -> None:
    solved = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assume(solved is not None)
    assert solved is not None
    found = find_plan(problem, solved.placement, ROOFLINE)
    assert to_placement(found.problem, found.families, found.priced, found.assignment) == solved.placement
    alternatives = Alternatives(found)
    for table in range(len(problem.tables)):
        for one in alternatives.of_table(table):
            placement = to_placement(found.problem, found.families, found.priced, one.assignment)
            codes = {issue.code for issue in verify(found.problem, placement)}
            assert codes <= {"memory"} if one.excess_bytes > 0 else not codes
            seconds = score(found.problem, placement, ROOFLINE).objective_seconds
            assert one.objective_seconds == pytest.approx(seconds)
            assert seconds - solved.evaluation.objective_seconds == pytest.approx(one.change_seconds, abs=1e-12)
            if one.excess_bytes == 0:
                assert seconds >= solved.lower_bound_seconds * (1 - 1e-9)
                if solved.reason == Reason.OPTIMAL:
                    assert one.change_seconds >= -2e-6 * seconds


@thorough
@CAREFUL
@given(problems())
def test_every_plan_can_be_reported(problem: Problem) -> None:
    solved = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assume(solved is not None)
    assert solved is not None
    text = explanation_text(explain(problem, solved.placement, ROOFLINE), name="any")
    assert max(map(len, text.splitlines())) <= WIDTH
