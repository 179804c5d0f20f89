"""No plan keeps a tier busy for longer than its own step, whatever the cost model hides."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.busy_tiers import overloaded, with_limits
from planner.domain.access import ZipfAccess
from planner.domain.problem import Dense, Problem
from planner.domain.table import TableConstraints
from planner.enumerate import enumerate_families
from planner.memory import TORCHREC as TORCHREC_LEDGER
from planner.partitioners.base import SolveLimits
from planner.partitioners.portfolio import Portfolio
from planner.pipeline import plan
from planner.placing import to_placement
from planner.pricing import price
from planner.score import score
from planner.verify import verify
from tests.planner.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=2.0)
CACHED = TableConstraints(
    sharding_types=frozenset({Scheme.TABLE_WISE}),
    compute_kernels=frozenset({Kernel.FUSED, Kernel.FUSED_UVM_CACHING}),
    cache_load_factors=(0.1, 0.5, 0.9),
)


def hidden_traffic(ddr_bytes_per_second: float, **changes: object) -> Problem:
    """Tables of which nothing is known, filled ahead: TorchRec takes a cache of any size for the device's own memory.

    Two ranks of 60 MB hold four tables of 25.6 MB, two on each. With caches of a tenth nine tenths of up to 4,096
    distinct rows are missed per table: 2 tables x 3,686 rows x 256 B, there and back, are 3.8 MB a step.
    """
    tables = [make_table(f"t{i}", 100_000, 64, pooling_factor=32.0, constraints=CACHED) for i in range(4)]
    cluster = make_cluster(1, 2, hbm_bytes=60e6, ddr_bytes_per_second=ddr_bytes_per_second)
    return make_problem(*tables, cluster=cluster, pipeline="train_prefetch_sparse_dist", **changes)


def tight(problem: Problem) -> Problem:
    """The same on ranks where only caches of a tenth fit for all tables, or larger ones for some."""
    hardware = problem.cluster.hardware.with_overrides({"hbm_bytes": 35e6}, {"hbm_bytes": "bytes"})
    return replace(problem, cluster=replace(problem.cluster, hardware=hardware))


def test_without_the_limit_a_model_that_hides_traffic_gives_a_plan_that_no_tier_serves() -> None:
    problem = tight(hidden_traffic(2e9))
    families = enumerate_families(problem)
    priced = price(problem, families, TORCHREC)
    free = Portfolio().solve(priced, LIMITS)
    assert free.assignment is not None
    wrong = score(problem, to_placement(problem, families, priced, free.assignment), TORCHREC)
    (issue,) = overloaded(wrong)
    assert (issue.code, wrong.tiers[0].tier) == ("tier-bandwidth", Tier.DDR)
    assert wrong.tiers[0].utilization > 1


def test_the_plan_that_is_given_leaves_every_tier_time() -> None:
    """Two caches of a tenth on a rank are busy for 0.31 ms of a step of 0.2 ms; two of a half, for 0.17 ms.

    TorchRec's prices like both as much, and without the limit it is the first that comes out.
    """
    problem = tight(hidden_traffic(12e9, dense=Dense(forward_seconds=1e-4, backward_seconds=1e-4)))
    families = enumerate_families(problem)
    priced = price(problem, families, TORCHREC)
    free = Portfolio().solve(priced, LIMITS)
    assert free.assignment is not None
    wrong = score(problem, to_placement(problem, families, priced, free.assignment), TORCHREC)
    assert wrong.tiers[0].utilization == pytest.approx(2 * 0.9 * 4096 * 512 / 12e9 / 2.043e-4, rel=1e-3)
    result = plan(problem, cost_model=TORCHREC, partitioner=Portfolio(), limits=LIMITS)
    assert result.plan is not None
    assert list(overloaded(result.plan.evaluation)) == []
    assert 0.5 < result.plan.evaluation.tiers[0].utilization <= 1
    assert verify(problem, result.plan.placement, rules=TORCHREC_LEDGER) == ()


def test_a_tier_that_nothing_can_serve_is_named() -> None:
    problem = tight(hidden_traffic(1e7))
    result = plan(problem, cost_model=TORCHREC, partitioner=Portfolio(), limits=LIMITS)
    assert (result.plan, result.limit) == (None, "tier_bandwidth")
    (short,) = result.shortfalls
    assert short.resource == "ddr_bytes_per_second"
    assert short.required_bytes > short.available_bytes
    assert "ddr" in short.hint


@pytest.mark.parametrize("pipeline", ["none", "train_sparse_dist", "train_prefetch_sparse_dist"])
@pytest.mark.parametrize("ddr_bytes_per_second", [1e8, 5e10])
def test_prices_that_hold_the_time_of_tiers_keep_the_limit(pipeline: str, ddr_bytes_per_second: float) -> None:
    dense = Dense(forward_seconds=1e-4, backward_seconds=2e-4)
    problem = replace(tight(hidden_traffic(ddr_bytes_per_second, dense=dense)), pipeline=pipeline)
    tables = tuple(
        replace(table, access=ZipfAccess(alpha=1.0), constraints=replace(CACHED, compute_kernels=kernels))
        for table, kernels in zip(
            problem.tables,
            [frozenset({Kernel.FUSED_UVM_CACHING}), frozenset({Kernel.FUSED_UVM})] * 2,
            strict=True,
        )
    )
    result = plan(replace(problem, tables=tables), cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS)
    assert result.plan is not None
    (load,) = result.plan.evaluation.tiers
    assert 0 < load.utilization <= 1


def test_the_limit_is_one_more_column_that_every_plan_within_it_keeps() -> None:
    """In a step of 1 ms, of which the dense part takes 0.4 ms, a tier may be busy for 1 ms."""
    problem = hidden_traffic(1e9, dense=Dense(forward_seconds=2e-4, backward_seconds=2e-4))
    families = enumerate_families(problem)
    priced = price(problem, families, TORCHREC)
    limited = with_limits(priced, problem, families, lower_bound_seconds=6e-4)
    assert limited.num_tiers == priced.num_tiers + 1
    busy_seconds = limited.shape_bytes[:, -1] / limited.capacity_bytes[0, -1] * 1e-3
    cached = np.isfinite([one.storage.cache_load_factor or np.nan for one in families.families])
    assert np.all(busy_seconds[~cached[priced.shape_family]] == 0)
    # a cache of a tenth: 0.9 x 4,096 rows of 256 B each way at 1 GB/s
    smallest = [one.storage.cache_load_factor == 0.1 for one in families.families]
    np.testing.assert_allclose(busy_seconds[np.array(smallest)[priced.shape_family]], 0.9 * 4096 * 512 / 1e9)
