from dataclasses import replace

import numpy as np
import pytest

from planner.pricing.price_options import restrict
from planner.solver.evaluate import rank_loads, violations
from planner.solver.partitioners.base import SearchOptions
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.ldm.ldm import Ldm
from planner.solver.problem import Assignment, Objective, Reason, Scope, SolverProblem
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import random_priced


class TestLdm(PartitionerContract):
    partitioner = Ldm()


def whole_tables(seed: int, num_tables: int, *, objective: Objective, fill: float = 0.3) -> SolverProblem:
    """Tables that go onto one of eight ranks each."""
    priced = random_priced(seed, num_tables=num_tables, num_hosts=2, ranks_per_host=4, objective=objective, fill=fill)
    return restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))


def imbalance(priced: SolverProblem, partitioner: Greedy | Ldm) -> float:
    """How far the slowest rank is above the mean, relative."""
    outcome = partitioner.solve(priced, LIMITS)
    assert outcome.assignment is not None
    seconds = rank_loads(priced, outcome.assignment).seconds.sum(axis=1)
    return float(seconds.max() / seconds.mean() - 1)


def test_many_pieces_on_each_rank_come_far_closer_to_the_mean_than_by_greedy() -> None:
    for seed in range(3):
        priced = whole_tables(seed, 300, objective=Objective.MAX_RANK_TIME)
        assert imbalance(priced, Ldm()) < imbalance(priced, Greedy()) / 30


@pytest.mark.parametrize("objective", list(Objective))
def test_memory_that_is_almost_full(objective: Objective) -> None:
    """Forty tables fill the ranks to 97%: without regard to memory some rank would overflow."""
    for seed in range(3):
        priced = whole_tables(seed, 40, objective=objective, fill=0.97)
        outcome = Ldm().solve(priced, LIMITS)
        assert outcome.assignment is not None
        assert violations(priced, outcome.assignment) == []


def test_a_start_that_overflows_is_no_plan_but_something_to_repair() -> None:
    """Whole tables all on rank 0: differencing spreads them."""
    priced = whole_tables(0, 12, objective=Objective.STEP_TIME)
    everything = Assignment(piece_shape=np.arange(12), piece_site=np.zeros(12, dtype=np.int64))
    assert violations(priced, everything) != []
    outcome = Ldm().solve(priced, replace(LIMITS, work_limit_seconds=1e-4), SearchOptions(start=everything))
    assert outcome.assignment is not None
    assert violations(priced, outcome.assignment) == []


def test_where_no_plan_exists_it_says_so_and_ends() -> None:
    priced = whole_tables(0, 12, objective=Objective.STEP_TIME)
    outcome = Ldm().solve(replace(priced, capacity_bytes=np.full((8, 1), 9.0)), LIMITS)
    assert outcome.reason is Reason.NO_SOLUTION_FOUND
    assert outcome.limit == "deterministic_time"
