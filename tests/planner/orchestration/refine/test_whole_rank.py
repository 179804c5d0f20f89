"""Shards that go to other ranks because the model of whole ranks says it pays."""

import itertools
import math
import time
from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Scheme, Tier
from planner.domain.plan.placement import Placement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import Table, TableConstraints
from planner.orchestration.refine.whole_rank import RefinedPlacement, refine_whole_ranks
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.builders import make_cluster, make_problem, make_table
from tests.support.planning.launching_model import LaunchingModel
from tests.support.planning.whole_tables import on_ranks
from tests.support.thorough import thorough

MODEL = LaunchingModel(launch_seconds=3e-7)
RANKS = 3


def refined(
    problem: Problem, start: Placement, seed: int = 0, work_seconds: float = 0.02, until_seconds: float = math.inf
) -> RefinedPlacement:
    """Refine by some hundreds of changes, whatever the clock says."""
    return refine_whole_ranks(problem, start, MODEL, seed, work_seconds, until_seconds)


def tables(seed: int, count: int = 6) -> tuple[Table, ...]:
    rng = np.random.default_rng(seed)
    return tuple(
        make_table(f"t{i}", rows=int(rows), dim=64, pooling_factor=float(pooling))
        for i, (rows, pooling) in enumerate(
            zip(rng.integers(100, 9_000, count), rng.uniform(1, 40, count), strict=True)
        )
    )


def problem_of(*placed: Table, objective: str = "max_rank_time", ranks: int = RANKS, **changes: object) -> Problem:
    cluster = make_cluster(1, ranks, **changes)  # type: ignore[arg-type]
    return make_problem(*placed, cluster=cluster, objective=objective)


def ranks_of(placement: Placement) -> list[int]:
    ranks: list[int] = placement.all_shards().rank.tolist()
    return ranks


@thorough
@pytest.mark.parametrize("objective", ["max_rank_time", "step_time"])
@pytest.mark.parametrize("seed", range(3))
def test_from_one_rank_it_comes_to_the_best_of_all_plans(seed: int, objective: str) -> None:
    problem = problem_of(*tables(seed, count=5), objective=objective)
    everywhere = itertools.product(range(RANKS), repeat=5)
    best = min(score(problem, on_ranks(problem, *r), MODEL).objective_seconds for r in everywhere)
    found = refined(problem, on_ranks(problem, *[0] * 5)).placement
    assert score(problem, found, MODEL).objective_seconds == pytest.approx(best, rel=1e-9)
    assert verify(problem, found) == ()


@thorough
def test_equal_seeds_find_equal_plans_and_no_work_finds_none() -> None:
    problem = problem_of(*tables(7, count=9))
    start = on_ranks(problem, *[0] * 9)
    assert refined(problem, start, 3) == refined(problem, start, 3)
    assert refined(problem, start, 3, 0.0) == RefinedPlacement(start, False)
    assert refined(problem, start, 3, 1.0, time.monotonic()) == RefinedPlacement(start, True)


def test_what_cannot_get_better_stays_the_plan_it_was() -> None:
    equal = [make_table(f"t{i}", rows=1000, pooling_factor=10) for i in range(4)]
    problem = problem_of(*equal, ranks=4)
    start = on_ranks(problem, *[0, 1, 2, 3])
    assert refined(problem, start).placement is start
    alone = problem_of(*equal, ranks=1)
    start = on_ranks(alone, *[0] * 4)
    assert refined(alone, start).placement is start


def test_constraints_of_the_user_hold() -> None:
    first, second, *others = tables(1)
    first = replace(first, constraints=TableConstraints(ranks=frozenset({0, 2})))
    problem = problem_of(first, second, *others)
    problem = replace(problem, same_rank=(frozenset({1, 2}),), apart=(frozenset({3, 4}),))
    start = on_ranks(problem, *[0, 0, 0, 0, 1, 0])
    found = refined(problem, start).placement
    assert verify(problem, found) == ()
    assert score(problem, found, MODEL).objective_seconds < score(problem, start, MODEL).objective_seconds
    assert ranks_of(found)[1:5] == [0, 0, 0, 1]  # groups stay where they are


def test_memory_is_never_exceeded() -> None:
    """The largest table leaves no place next to it, and would be best next to a small one."""
    large = make_table("large", rows=60_000, dim=64, pooling_factor=1)
    rest = [make_table(f"t{i}", rows=20_000, dim=64, pooling_factor=20) for i in range(5)]
    capacity = 60_000 * 64 * 4 + 3e6
    problem = problem_of(large, *rest, hbm_bytes=capacity)
    start = on_ranks(problem, *[0, 1, 1, 1, 2, 2])
    assert verify(problem, start) == ()
    roomy = problem_of(large, *rest)
    assert ranks_of(refined(roomy, start).placement) != ranks_of(start)
    found = refined(problem, start).placement
    assert verify(problem, found) == ()
    assert ranks_of(found).count(ranks_of(found)[0]) == 1


def test_pieces_of_a_table_stay_on_different_ranks_and_row_cuts_where_they_are() -> None:
    cut, by_rows, *others = tables(2)
    problem = problem_of(cut, by_rows, *others)
    start = on_ranks(problem, *[0] * 6)
    pieces = Shards.of_columns(
        rank=[0, 1],
        row_offset=0,
        num_rows=cut.num_embeddings,
        column_offset=[0, 32],
        num_columns=32,
        tier=Tier.HBM,
    )
    block = -(-by_rows.num_embeddings // RANKS)
    offsets = np.arange(RANKS) * block
    blocks = Shards.of_columns(
        rank=np.arange(RANKS),
        row_offset=offsets,
        num_rows=np.minimum(block, by_rows.num_embeddings - offsets),
        column_offset=0,
        num_columns=64,
        tier=Tier.HBM,
    )
    start = replace(
        start,
        tables=(
            replace(start.tables[0], sharding_type=Scheme.COLUMN_WISE, shards=pieces),
            replace(start.tables[1], sharding_type=Scheme.ROW_WISE, shards=blocks),
            *start.tables[2:],
        ),
    )
    assert verify(problem, start) == ()
    found = refined(problem, start).placement
    assert verify(problem, found) == ()
    assert found.tables[1] == start.tables[1]
    assert len(set(found.tables[0].shards.rank.tolist())) == 2
    assert score(problem, found, MODEL).objective_seconds < score(problem, start, MODEL).objective_seconds
