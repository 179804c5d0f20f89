"""Scenarios as one problem: its objective is the weighted sum of their steps, its memory that of all."""

from dataclasses import replace

import numpy as np
import pytest

from planner.domain.problem.problem import Problem
from planner.options.enumerate import enumerate_families
from planner.orchestration.scenarios.joined import NotAdditive, joined, target_of
from planner.pricing.price_options import price
from planner.solver.bounds.chain import lower_bound
from planner.solver.evaluate import objective_of, violations
from planner.solver.problem import SolverProblem
from tests.support.planning.builders import ROOFLINE, all_assignments, make_cluster, make_problem, make_table

ALL = np.ones(2, dtype=np.bool_)


def scenarios(objective: str = "step_time", **numbers: float) -> list[Problem]:
    """Two tables whose traffic swaps places, and one between them."""
    cluster = make_cluster(1, 2, **numbers)
    return [
        make_problem(
            make_table("a", 1_000, 8, pooling_factor=high),
            make_table("b", 1_000, 8, pooling_factor=low),
            make_table("c", 2_000, 8, pooling_factor=6.0),
            cluster=cluster,
            objective=objective,
        )
        for high, low in ((20.0, 2.0), (2.0, 20.0))
    ]


def priced(problems: list[Problem]) -> list[SolverProblem]:
    families = enumerate_families(problems[0])
    return [price(one, families, ROOFLINE) for one in problems]


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
def test_the_objective_is_the_weighted_sum_of_steps(objective: str) -> None:
    several = priced(scenarios(objective))
    weights = np.array([0.25, 3.0])
    together = joined(several, weights, ALL)
    for assignment in all_assignments(several[0]):
        steps = [objective_of(one, assignment) for one in several]
        assert objective_of(together, assignment) == pytest.approx(float(weights @ steps), rel=1e-12)


def test_windows_are_hidden_in_every_scenario_by_itself() -> None:
    several = [
        replace(one, phase_window_seconds=np.full(one.num_phases, window))
        for one, window in zip(priced(scenarios()), (1e-6, 1e-7), strict=True)
    ]
    together = joined(several, np.array([2.0, 1.0]), ALL)
    for assignment in all_assignments(several[0]):
        first, second = (objective_of(one, assignment) for one in several)
        assert objective_of(together, assignment) == pytest.approx(2 * first + second, rel=1e-12)


def test_a_scenario_without_weight_costs_nothing_and_must_fit_all_the_same() -> None:
    several = priced(scenarios())
    small = replace(several[1], capacity_bytes=np.zeros_like(several[1].capacity_bytes))
    assignment = next(iter(all_assignments(several[0])))
    weights = np.array([1.0, 0.0])
    strict, free = (joined([several[0], small], weights, must) for must in (ALL, np.array([True, False])))
    assert objective_of(free, assignment) == pytest.approx(objective_of(several[0], assignment))
    assert any("exceeds tier" in issue for issue in violations(strict, assignment))
    assert violations(free, assignment) == []


def test_memory_that_scenarios_agree_in_exists_once() -> None:
    several = priced(scenarios())
    assert joined(several, np.ones(2), ALL).num_tiers <= 2 * several[0].num_tiers
    assert joined([several[0], several[0]], np.ones(2), ALL).num_tiers <= several[0].num_tiers


def test_the_bound_of_a_weighted_sum_is_below_the_worst_scenario_of_every_plan() -> None:
    several = priced(scenarios())
    worst = min(max(objective_of(one, plan) for one in several) for plan in all_assignments(several[0]))
    own = [min(objective_of(one, plan) for plan in all_assignments(several[0])) for one in several]
    bound = lower_bound(joined(several, np.array([0.5, 0.5]), ALL)).seconds
    assert 0.8 * max(own) < bound <= worst * (1 + 1e-9)


def test_ranks_that_are_slow_in_one_phase_alone_have_no_sum_of_rank_times() -> None:
    several = priced(scenarios("max_rank_time"))
    slowdown = several[0].rank_slowdown.copy()
    slowdown[0, np.flatnonzero(several[0].phase_weight)[0]] = 2.0
    with pytest.raises(NotAdditive, match="slow in one phase"):
        joined([replace(one, rank_slowdown=slowdown) for one in several], np.ones(2), ALL)


def test_what_exceeds_a_target_is_added_and_plans_that_keep_all_cost_their_sum_alone() -> None:
    several = priced(scenarios())
    plans = list(all_assignments(several[0]))
    begin, weights = plans[0], np.array([0.1, 0.2])
    steps = [objective_of(one, begin) for one in several]
    loose, tight = (
        [target_of(several, index, begin, seconds=part * step, weight=3.0) for index, step in enumerate(steps)]
        for part in (1.0, 0.75)
    )
    alone, above, below = (joined(several, weights, ALL, targets) for targets in ((), loose, tight))
    assert objective_of(above, begin) == pytest.approx(objective_of(alone, begin), rel=1e-12)
    # A quarter of both steps is beyond, at three times its seconds.
    assert objective_of(below, begin) == pytest.approx(objective_of(alone, begin) + 3 * 0.25 * sum(steps), rel=1e-9)
    for plan in plans:
        if objective_of(below, plan) <= objective_of(alone, plan) * (1 + 1e-12):
            assert all(
                objective_of(one, plan) <= 0.75 * step * (1 + 1e-9) for one, step in zip(several, steps, strict=True)
            )
