from dataclasses import replace

import numpy as np
import pytest

from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.exact import lns
from planner.solver.partitioners.exact.lns import Lns
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Objective
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import brute_force, random_priced


class TestLns(PartitionerContract):
    partitioner = Lns()
    limits = replace(LIMITS, work_limit_seconds=0.5)


@pytest.mark.parametrize("objective", list(Objective))
def test_it_improves_a_start_that_it_cannot_solve_at_once(objective: Objective) -> None:
    priced = random_priced(3, num_tables=24, num_hosts=2, ranks_per_host=4, objective=objective)
    start = Greedy(first_only=True).solve(priced, LIMITS).assignment
    assert start is not None
    outcome = Lns().solve(priced, replace(LIMITS, work_limit_seconds=4.0), start=start)
    assert outcome.assignment is not None
    assert violations(priced, outcome.assignment) == []
    assert objective_of(priced, outcome.assignment) < 0.985 * objective_of(priced, start)


def test_a_problem_that_is_one_neighbourhood_is_solved_over_the_listed_cuts() -> None:
    for seed in range(3):
        priced = random_priced(seed)
        start = Greedy(first_only=True).solve(priced, LIMITS).assignment
        best = brute_force(priced, listed=True)
        assert best is not None
        outcome = Lns().solve(priced, replace(LIMITS, work_limit_seconds=20.0), start=start)
        assert outcome.assignment is not None
        assert objective_of(priced, outcome.assignment) <= best * (1 + 2e-4)
        assert outcome.termination.limit == "iterations"


def test_where_every_table_is_pinned_the_start_comes_back() -> None:
    priced = random_priced(0)
    start = Greedy().solve(priced, LIMITS).assignment
    assert start is not None
    pinned = replace(priced, pinned_shape=start.piece_shape, pinned_site=start.piece_site)
    outcome = Lns().solve(pinned, LIMITS, start=start)
    assert outcome.assignment is start
    assert outcome.termination.limit == "iterations"


def test_where_no_model_is_small_enough_the_start_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lns, "MAX_PLACEMENTS", 3)
    priced = random_priced(0, num_tables=6)
    start = Greedy().solve(priced, LIMITS).assignment
    outcome = Lns().solve(priced, LIMITS, start=start)
    assert outcome.assignment is start
    assert outcome.termination.limit == "iterations"


def test_a_plan_within_the_gap_ends_the_search() -> None:
    priced = random_priced(2, num_tables=6)
    start = Greedy().solve(priced, LIMITS).assignment
    assert start is not None
    outcome = Lns().solve(priced, LIMITS, start=start, lower_bound_seconds=objective_of(priced, start))
    assert outcome.assignment is start
    assert outcome.termination.limit == "gap"


def test_by_the_clock_it_ends_in_time_with_a_plan() -> None:
    priced = random_priced(4, num_tables=30, num_hosts=2, ranks_per_host=4)
    outcome = Lns().solve(priced, replace(LIMITS, time_limit_seconds=1.0, reproducible=False))
    assert outcome.assignment is not None
    assert outcome.termination.limit == "time"


def test_another_seed_is_another_search() -> None:
    """Not the plan itself, but the way to it: what is told before the end."""
    priced = random_priced(3, num_tables=24, num_hosts=2, ranks_per_host=4)
    start = Greedy(first_only=True).solve(priced, LIMITS).assignment
    ways = []
    for seed in (0, 0, 1):
        told: list[float] = []
        limits = replace(LIMITS, work_limit_seconds=2.0, seed=seed)
        Lns().solve(priced, limits, start=start, on_incumbent=lambda one, told=told: told.append(one.objective_seconds))
        ways.append(told)
    assert np.array_equal(ways[0], ways[1])
    assert not np.array_equal(ways[0], ways[2])
