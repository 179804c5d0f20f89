"""The size of a cache of keys and values that a solve chooses is the best of all, and bounds hold for each."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from cost_models.vocabulary import Kernel
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import list_and_price
from planner.orchestration.sizes.candidates import Candidate
from planner.orchestration.sizes.kv_cache_sizes import kv_cache_sizes
from planner.pipeline import plan
from planner.pricing.price_options import prune
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.solver.problem import Reason
from planner.verification.verify import verify
from tests.support.planning.builders import brute_force, make_table
from tests.support.planning.kv_caches import CACHE, with_kv_cache
from tests.support.planning.serving_problems import SERVING, cards, serving_problem

LIMITS = SolveLimits(time_limit_seconds=900.0, work_limit_seconds=2.0, relative_gap=1e-9)
CACHED = TableConstraints(
    compute_kernels=frozenset({Kernel.FUSED, Kernel.FUSED_UVM_CACHING}), cache_load_factors=(0.1, 0.3, 0.6)
)
HOST = {"ddr_bytes": 1e9, "ddr_bytes_per_second": 5e10}


def random_problem(seed: int) -> Problem:
    """Two or three tables that may lie next to the cards of 8 MB, of which a cache takes up to 6."""
    rng = np.random.default_rng(seed)
    tables = [
        make_table(
            f"t{index}",
            int(rng.integers(2_000, 60_000)),
            16,
            pooling_factor=float(rng.uniform(1, 40)),
            constraints=CACHED,
        )
        for index in range(int(rng.integers(2, 4)))
    ]
    problem = serving_problem(*tables, cluster=cards(2, hbm_bytes=8e6, **HOST), samples=256)
    return with_kv_cache(problem, recompute_seconds=float(10 ** rng.uniform(-5, -3)))


def best_of(problem: Problem) -> float | None:
    """The least latency of all placements of one size, listed one by one."""
    listed = list_and_price(problem, SERVING)
    if isinstance(listed, Infeasibility):
        return None
    shards = brute_force(prune(listed[1]), listed=True)
    return None if shards is None else shards + seconds_without_shards(problem, shards)


def solved(problem: Problem, limits: SolveLimits = LIMITS) -> PlanResult:
    return plan(problem, cost_model=SERVING, partitioner=make_partitioner("portfolio"), limits=limits)


@pytest.mark.parametrize("seed", range(20))
def test_the_size_is_the_best_of_all_sizes_and_placements(seed: int) -> None:
    problem = random_problem(seed)
    assert problem.kv_cache is not None
    sizes = problem.kv_cache.sizes_bytes
    alone = {size: best_of(problem.of_kv_cache_size(size)) for size in sizes}
    best = min(seconds for seconds in alone.values() if seconds is not None)
    found = solved(problem)
    assert found.plan is not None
    assert found.plan.evaluation.objective_seconds <= best * (1 + 1e-6)
    assert found.lower_bound_seconds <= best * (1 + 1e-9)
    assert verify(problem, found.plan.placement) == ()
    assert [one.bytes for one in found.plan.kv_cache_sizes] == list(sizes)
    for one in found.plan.kv_cache_sizes:
        least = alone[one.bytes]
        if one.state == "infeasible":
            assert least is None
        elif least is not None:
            assert one.lower_bound_seconds <= least * (1 + 1e-9)
    of_shards = [  # what no placement next to a cache can undercut, none next to a larger one can
        one.lower_bound_seconds - one.seconds_per_request
        for one in found.plan.kv_cache_sizes
        if one.state != "infeasible"
    ]
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(of_shards))
    size = found.plan.placement.kv_cache_bytes
    chosen = next(one for one in found.plan.kv_cache_sizes if one.bytes == size)
    assert chosen.objective_seconds == found.plan.evaluation.objective_seconds


def test_examples_have_different_sizes() -> None:
    """Neither the largest cache nor the smallest is always best: a rule of thumb would fail the test above."""
    chosen = set()
    for seed in range(20):
        found = solved(random_problem(seed)).plan
        assert found is not None
        chosen.add(found.placement.kv_cache_bytes)
    assert len(chosen) >= 3


def test_bounds_of_small_caches_hold_for_larger_ones() -> None:
    """A bound of shards is carried to sizes with less room, with their own misses, and to no other."""
    problem = serving_problem(make_table("t", 1_000, 16), cluster=cards(2, hbm_bytes=8e6))
    sizes = kv_cache_sizes(with_kv_cache(problem))
    least_room, *_, most_room = sizes.problems
    assert (least_room, most_room) == (6e6, 0.0)
    assert sizes.is_nested
    fixed = {size: seconds_without_shards(one, 1.0) for size, one in sizes.problems.items()}
    larger = Candidate(size=least_room, problem=sizes.problems[least_room], bound_seconds=1e-4)
    larger.raise_bound(3e-4)
    assert larger.bound_seconds == pytest.approx(3e-4 + fixed[least_room])
    larger.raise_bound(2e-4)
    assert larger.bound_seconds == pytest.approx(3e-4 + fixed[least_room])
    assert fixed[least_room] == pytest.approx(2e-5 + 0.36 * 1e-3)  # 120 users: 64% of requests hit


def test_no_size_that_fits_is_proven() -> None:
    table = make_table("t", 200_000, 64)
    problem = with_kv_cache(serving_problem(table, cluster=cards(2, hbm_bytes=8e6)))
    found = solved(problem)
    assert found.plan is None
    assert found.reason == Reason.INFEASIBLE
    assert "4 sizes of the cache of keys and values" in found.detail
    assert found.shortfalls


def test_one_size_is_no_choice() -> None:
    problem = random_problem(0)
    found = solved(with_kv_cache(problem, 2e6)).plan
    assert found is not None
    assert found.kv_cache_sizes == ()
    assert found.placement.kv_cache_bytes == 2e6
    none = solved(replace(problem, serving=replace(problem.serving, kv_cache=None))).plan
    assert none is not None
    assert none.placement.kv_cache_bytes is None


def test_the_rate_rules_out_small_caches() -> None:
    """Without a cache every request takes 1 ms of recomputation, and 1,000 of them per second leave no time at all."""
    problem = serving_problem(make_table("t", 1_000, 16), cluster=cards(2, hbm_bytes=8e6), requests_per_second=1_000.0)
    found = solved(with_kv_cache(problem)).plan
    assert found is not None
    assert found.evaluation.kv_cache is not None
    by_size = {one.bytes: one.state for one in found.kv_cache_sizes}
    assert found.placement.kv_cache_bytes == max(CACHE.sizes_bytes)
    assert set(by_size.values()) <= {"planned", "ruled_out", "infeasible"}
