"""Diagnoses of made-up problems without a plan, against exact solves."""

import math

from hypothesis import HealthCheck, given, settings

from planner.diagnosis.constraints import constraints_of, with_only
from planner.domain.problem.problem import Problem
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from tests.properties.problems import optimum, problems
from tests.support.planning.builders import ROOFLINE
from tests.support.thorough import thorough

#: Counted work ends all; the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=2.0)


@thorough
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(problems())
def test_every_constraint_of_a_conflict_is_needed(problem: Problem) -> None:
    """With all of them there is no plan where that is called proven; with all but any one there is one.

    Where the work ran out the conflict claims no more than the first of these.
    """
    diagnosis = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS).diagnosis
    if diagnosis is None or diagnosis.conflict is None:
        return
    pointers = {constraint.pointer for constraint in diagnosis.conflict.constraints}
    found = [constraint for constraint in constraints_of(problem) if constraint.pointer in pointers]
    assert len(found) == len(pointers)
    if diagnosis.conflict.is_proven:
        assert optimum(with_only(problem, found)) == math.inf
    for spared in found if diagnosis.conflict.is_irreducible else []:
        rest = with_only(problem, [constraint for constraint in found if constraint != spared])
        assert plan(rest, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS).plan is not None


@thorough
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(problems())
def test_fixed_problems_fit(problem: Problem) -> None:
    """No fix is offered whose plan overfills a rank, and none for a problem that has a plan."""
    result = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS)
    if result.plan is not None:
        assert result.diagnosis is None
        return
    assert result.diagnosis is not None
    for fix in result.diagnosis.fixes:
        assert fix.changes
        # Nothing of the accelerators, where the memory of hosts is offered and takes all.
        assert 0 <= fix.plan.used_bytes <= fix.plan.capacity_bytes
        assert fix.plan.fullest_rank_fraction <= 1
