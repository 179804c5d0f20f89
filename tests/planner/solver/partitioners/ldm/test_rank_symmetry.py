from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.evaluate import objective_of, rank_loads, violations
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.ldm.rank_symmetry import Balance, interchanged
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from tests.support.contracts.partitioner import LIMITS
from tests.support.planning.builders import narrowest_shape, random_priced

BALANCE = Balance(sharpness=15.0, memory=0.0)


def whole_tables(num_tables: int, **changes: object) -> SolverProblem:
    """Tables that go onto one of four ranks each, with room for all of them on any rank."""
    priced = random_priced(0, num_tables=num_tables, fill=0.2)
    whole = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    roomy = replace(whole, capacity_bytes=np.full((4, 1), 1e9))
    return replace(roomy, **changes)  # type: ignore[arg-type]


def on_one_rank(priced: SolverProblem, rank: int = 0) -> Assignment:
    return Assignment(piece_shape=np.arange(priced.num_tables), piece_site=np.full(priced.num_tables, rank))


@pytest.mark.parametrize("objective", list(Objective))
def test_pieces_leave_a_rank_that_carries_everything(objective: Objective) -> None:
    priced = whole_tables(24, objective=objective)
    plan = interchanged(priced, on_one_rank(priced), BALANCE)
    assert violations(priced, plan) == []
    assert objective_of(priced, plan) < objective_of(priced, on_one_rank(priced)) / 3.5


def test_ranks_of_one_speed_keep_their_pieces() -> None:
    """Two fast ranks and two slow ones: nothing says how much each should have but the plan itself."""
    priced = whole_tables(24, rank_slowdown=np.array([[1.0, 1.0], [2.0, 2.0]] * 2))
    plan = interchanged(priced, on_one_rank(priced, rank=1), BALANCE)
    assert set(plan.piece_site.tolist()) == {1, 3}


def test_tables_that_may_use_some_ranks_stay_there_and_others_even_them_out() -> None:
    allowed = np.ones((24, 4), dtype=np.bool_)
    allowed[:12] = [True, True, False, False]
    priced = whole_tables(24, table_rank_allowed=allowed)
    plan = interchanged(priced, on_one_rank(priced), BALANCE)
    assert violations(priced, plan) == []
    loads = rank_loads(priced, plan).seconds.sum(axis=1)
    assert loads.max() < 1.2 * loads.mean()


def test_phases_that_are_hidden_do_not_keep_others_from_balance() -> None:
    """A first phase that takes a hundred times as long as the second, and dense compute that hides it."""
    priced = whole_tables(24)
    seconds = np.random.default_rng(0).uniform(0.1, 1.0, (24, 2)) * [100.0, 1.0]
    shown = replace(priced, shape_seconds=seconds)
    hidden = replace(shown, phase_window_seconds=np.array([1e4, 0.0]))
    values = [objective_of(hidden, interchanged(one, on_one_rank(one), BALANCE)) for one in (shown, hidden)]
    assert values[1] < 1.02 * seconds[:, 1].sum() / 4
    assert values[0] > 1.02 * values[1]


def test_memory_counts_where_it_is_reported_to() -> None:
    """Three slow tables and four large ones of a quarter of their time: seconds alone put the large ones together."""
    priced = whole_tables(7)
    sizes = np.repeat([90.0, 1.0], [4, 3])[:, None]
    seconds = np.repeat([2.0, 8.0], [4, 3])[:, None] * np.ones(2)
    tight = replace(
        priced, shape_bytes=sizes, shape_total_bytes=sizes, shape_seconds=seconds, capacity_bytes=np.full((4, 1), 100.0)
    )
    start = on_one_rank(tight)
    assert violations(tight, interchanged(tight, start, BALANCE)) != []
    assert violations(tight, interchanged(tight, start, replace(BALANCE, memory=0.5))) == []


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("seed", range(4))
def test_no_rule_but_memory_is_broken(objective: Objective, seed: int) -> None:
    """Every kind of constraint at once: pins, ranks, groups that share or keep apart, pieces of one host."""
    priced = random_priced(
        seed, num_tables=10, objective=objective, fill=0.2, same_host=True, slowdown=seed % 2 == 1, windows=seed > 1
    )
    allowed = np.ones((10, 4), dtype=np.bool_)
    allowed[5] = [True, True, False, False]
    allowed[6, 2] = False
    narrowest = narrowest_shape(priced, 0, 1)
    bound = replace(
        priced,
        capacity_bytes=np.full((4, 1), 1e9),
        table_rank_allowed=allowed,
        same_rank=(np.array([1, 2]),),
        apart=(np.array([3, 4]),),
        pinned_shape=np.array([narrowest + 2, narrowest]),
        pinned_site=np.array([3, 1]),
    )
    start = Greedy(first_only=True).solve(bound, LIMITS).assignment
    assert start is not None
    for sharpness in (4.0, 60.0):
        plan = interchanged(bound, start, Balance(sharpness=sharpness, memory=0.5))
        assert violations(bound, plan) == []
        assert np.array_equal(plan.piece_shape, start.piece_shape)
