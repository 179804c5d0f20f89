from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.evaluate import rank_loads, touched_ranks, violations
from planner.solver.partitioners.exact.neighbourhoods import around_ranks, around_tables
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import narrowest_shape, random_priced

Make = Callable[[SolverProblem, Assignment, int, np.random.Generator], SolverProblem]
KINDS: list[Make] = [around_ranks, around_tables]


def planned(priced: SolverProblem) -> Assignment:
    plan = Greedy(first_only=True).solve(priced, LIMITS).assignment
    assert plan is not None
    return plan


def bound(seed: int, objective: Objective) -> SolverProblem:
    """Ten tables with every kind of constraint."""
    priced = random_priced(seed, num_tables=10, objective=objective, fill=0.2, same_host=True, windows=True)
    allowed = np.ones((10, 4), dtype=np.bool_)
    allowed[5] = [True, True, False, False]
    narrowest = narrowest_shape(priced, 0, 1)
    return replace(
        priced,
        table_rank_allowed=allowed,
        same_rank=(np.array([1, 2]),),
        apart=(np.array([3, 4]),),
        pinned_shape=np.array([narrowest + 2, narrowest]),
        pinned_site=np.array([3, 1]),
    )


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("objective", list(Objective))
def test_the_plan_is_one_of_its_neighbours_and_others_keep_every_rule(make: Make, objective: Objective) -> None:
    rng = np.random.default_rng(0)
    for seed in range(4):
        priced = bound(seed, objective)
        plan = planned(priced)
        for size in (1, 4, 9):
            part = make(priced, plan, size, rng)
            assert violations(part, plan) == []
            assert np.all(part.table_is_pinned[priced.table_is_pinned])
            assert not np.any(part.table_rank_allowed & ~priced.table_rank_allowed)
            free = ~part.table_is_pinned
            assert 1 <= np.count_nonzero(free) <= size + 1  # a group comes whole
            assert free[1] == free[2]


@pytest.mark.parametrize("objective", list(Objective))
def test_ranks_free_tables_of_the_heaviest_rank_and_keep_them_on_a_few(objective: Objective) -> None:
    priced = random_priced(1, num_tables=40, num_hosts=4, ranks_per_host=4, objective=objective, fill=0.2)
    priced = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    plan = planned(priced)
    seconds = rank_loads(priced, plan).seconds
    heaviest = np.argmax(seconds, axis=0) if objective is Objective.STEP_TIME else [np.argmax(seconds.sum(axis=1))]
    for seed in range(10):
        part = around_ranks(priced, plan, 6, np.random.default_rng(seed))
        free = ~part.table_is_pinned
        assert np.count_nonzero(free) == 6
        assert touched_ranks(priced, plan)[free][:, heaviest].any()
        assert 1 < np.count_nonzero(part.table_rank_allowed[free].any(axis=0)) < 10


def test_tables_may_go_anywhere_also_those_that_lie_on_all_ranks() -> None:
    priced = random_priced(2, num_tables=12, fill=0.2)
    everywhere = restrict(priced, priced.family_scope == Scope.WORLD)
    plan = planned(everywhere)
    assert np.all(around_ranks(everywhere, plan, 4, np.random.default_rng(0)).table_is_pinned)
    part = around_tables(everywhere, plan, 4, np.random.default_rng(0))
    assert np.count_nonzero(~part.table_is_pinned) == 4
    assert part.table_rank_allowed.all()


def test_no_two_are_alike() -> None:
    priced = random_priced(1, num_tables=40, num_hosts=4, ranks_per_host=4, fill=0.2)
    plan, rng = planned(priced), np.random.default_rng(0)
    for make in KINDS:
        assert len({make(priced, plan, 8, rng).pinned_shape.tobytes() for _ in range(10)}) > 8
