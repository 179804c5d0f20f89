"""No plan that any search finds beats a bound."""

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.pricing.price_options import prune
from planner.solver.bounds.chain import lower_bound, quick_bound
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import Incumbent, SearchOptions, SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Objective, SolverProblem
from tests.support.planning.builders import random_priced
from tests.support.thorough import THOROUGH

LIMITS = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.2, relative_gap=0.0)


@st.composite
def instances(draw: st.DrawFn) -> SolverProblem:
    """More tables and ranks than can be tried one by one."""
    num_hosts, ranks_per_host = draw(st.sampled_from(((1, 2), (1, 8), (2, 2), (3, 2), (4, 1))))
    return random_priced(
        draw(st.integers(0, 2**31)),
        num_tables=draw(st.integers(1, 9)),
        num_hosts=num_hosts,
        ranks_per_host=ranks_per_host,
        num_phases=draw(st.integers(1, 4)),
        fill=draw(st.sampled_from((0.2, 0.6, 0.9))),
        objective=draw(st.sampled_from(Objective)),
        windows=draw(st.booleans()),
        columns=draw(st.sampled_from((12, 16, 32))),
        max_pieces=draw(st.integers(2, 8)),
        same_host=draw(st.booleans()),
        slowdown=draw(st.booleans()),
        equal_capacity=draw(st.booleans()),
    )


@settings(max_examples=30 if THOROUGH else 12, derandomize=True, deadline=None, database=None)
@given(instances())
def test_no_plan_beats_its_bound(priced: SolverProblem) -> None:
    """Neither the plans on the way nor the last one, and dropping families loses nothing."""
    reported: list[Incumbent] = []
    outcome = Portfolio().solve(priced, LIMITS, SearchOptions(on_incumbent=reported.append))
    pruned = prune(priced)
    if len(set(pruned.family_table.tolist())) < priced.num_tables:
        assert outcome.assignment is None, "a table that fits nowhere has no plan"
        return
    bounds = [bound(one) for bound in (quick_bound, few_boxes, many_boxes) for one in (priced, pruned)]
    for found in reported:
        assert violations(priced, found.assignment) == []
        value = objective_of(priced, found.assignment)
        assert all(bound <= value * (1 + 1e-12) for bound in bounds)
        if found.partitioner == CpSat.name:  # whose cuts are listed
            assert outcome.bound_seconds <= value * (1 + 1e-12)
    assert bool(reported) is (outcome.assignment is not None)


def few_boxes(priced: SolverProblem) -> float:
    """The bound of the relaxation."""
    return lower_bound(priced).seconds


def many_boxes(priced: SolverProblem) -> float:
    """The bound after branching."""
    return lower_bound(priced, max_boxes=15).seconds
