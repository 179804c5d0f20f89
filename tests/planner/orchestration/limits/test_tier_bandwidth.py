"""No plan keeps a tier busy for longer than its own step, whatever the cost model hides."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner import pipeline
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.checkpoint import Checkpoint
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.options.enumerate import enumerate_families
from planner.orchestration.answers.finish_plan import result_of
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.limits.own_time import with_limits
from planner.orchestration.limits.tier_bandwidth import overloaded, shortest_step
from planner.orchestration.placement.to_placement import to_placement
from planner.pipeline import plan
from planner.pricing.price_options import price
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import Incumbent, SolveLimits
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Reason, SolverProblem
from planner.verification.evaluate_placement import score
from planner.verification.plan_from_placement import plan_of_placement
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, TORCHREC, all_assignments, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=60.0, work_limit_seconds=0.5)
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
    assert verify(problem, result.plan.placement) == ()


def test_a_tier_that_nothing_can_serve_is_named() -> None:
    problem = tight(hidden_traffic(1e7))
    result = plan(problem, cost_model=TORCHREC, partitioner=Portfolio(), limits=LIMITS)
    assert (result.plan, result.limit) == (None, "tier_bandwidth")
    (short,) = result.shortfalls
    assert short.resource == "ddr_bytes_per_second"
    assert short.required_bytes > short.available_bytes
    assert "ddr" in short.message
    assert short.hint  # ways out that were solved, if any


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_plan_met_on_the_way_is_the_answer_if_no_other_leaves_tiers_time(
    monkeypatch: pytest.MonkeyPatch, is_streamed: bool
) -> None:
    """The search goes on to a faster plan, which no tier serves, and finds none within the limits.

    Whether anyone listens makes no difference.
    """
    problem = tight(hidden_traffic(12e9, dense=Dense(forward_seconds=1e-4, backward_seconds=1e-4)))
    families = enumerate_families(problem)
    priced = price(problem, families, TORCHREC)
    free = Portfolio().solve(priced, LIMITS)
    good = Portfolio().solve(with_limits(priced, problem, step_seconds=2e-4), LIMITS)
    assert free.assignment is not None
    assert good.assignment is not None
    wrong = plan_of_placement(problem, to_placement(problem, families, priced, free.assignment), TORCHREC)
    right = to_placement(problem, families, priced, good.assignment)
    assert any(overloaded(wrong.evaluation))

    def search(_: object, searched: SolverProblem, __: object, reporter: IncumbentReporter) -> PlanResult:
        if searched.num_tiers > priced.num_tiers:
            return PlanResult(plan=None, reason=Reason.INFEASIBLE, limit=None, detail="", lower_bound_seconds=0.0)
        for seconds, found in ((2.0, good.assignment), (1.0, free.assignment)):
            assert found is not None
            reporter.report(priced, Incumbent(assignment=found, objective_seconds=seconds, partitioner="x"))
        return result_of(wrong)

    monkeypatch.setattr(pipeline, "explore", search)
    streamed: list[PlanResult] = []
    result = plan(
        problem,
        cost_model=TORCHREC,
        partitioner=Portfolio(),
        limits=LIMITS,
        on_result=streamed.append if is_streamed else None,
    )
    assert result.plan is not None
    assert result.plan.placement == right
    assert result.limit == "tier_bandwidth"
    assert [one.plan is not None and one.plan.placement == right for one in streamed] == [True] * is_streamed


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
    limited = with_limits(priced, problem, step_seconds=shortest_step(problem, 6e-4))
    assert limited.num_tiers == priced.num_tiers + 1
    busy_seconds = limited.shape_bytes[:, -1] / limited.capacity_bytes[0, -1] * 1e-3
    cached = np.isfinite([one.storage.cache_load_factor or np.nan for one in families.families])
    assert np.all(busy_seconds[~cached[priced.shape_family]] == 0)
    # a cache of a tenth: 0.9 x 4,096 rows of 256 B each way at 1 GB/s
    smallest = [one.storage.cache_load_factor == 0.1 for one in families.families]
    np.testing.assert_allclose(busy_seconds[np.array(smallest)[priced.shape_family]], 0.9 * 4096 * 512 / 1e9)


def test_longer_steps_are_tried_where_the_shortest_serves_no_plan() -> None:
    """Two tables on two ranks, kernels that read host memory as TorchRec prices them: brute force finds the plans that
    keep their own step, and a plan is found wherever there is one.
    """
    kernels = frozenset({Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING})
    wanted = TableConstraints(
        sharding_types=frozenset({Scheme.TABLE_WISE}), compute_kernels=kernels, cache_load_factors=(0.1, 0.5)
    )
    found = 0
    for power in (9.0, 10.0, 10.5, 11.0, 11.5):
        tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=16.0 + 16 * i, constraints=wanted) for i in range(2)]
        cluster = make_cluster(1, 2, hbm_bytes=5.5e6, ddr_bytes_per_second=10**power)
        problem = make_problem(*tables, cluster=cluster)
        families = enumerate_families(problem)
        priced = price(problem, families, TORCHREC)
        legal = [
            assignment
            for assignment in all_assignments(priced)
            if not violations(priced, assignment)
            and not any(overloaded(score(problem, to_placement(problem, families, priced, assignment), TORCHREC)))
        ]
        result = plan(problem, cost_model=TORCHREC, partitioner=Portfolio(), limits=LIMITS)
        assert (result.plan is not None) == bool(legal), power
        if result.plan is not None:
            found += 1
            assert not any(overloaded(result.plan.evaluation))
            best = min(objective_of(priced, assignment) for assignment in legal)
            assert result.plan.lower_bound_seconds <= best * (1 + 1e-9)
    assert found >= 2


def test_a_step_longer_than_the_shortest_has_the_only_plan() -> None:
    """Two tables on one rank of 2 MB, objective max_rank_time, which says nothing of the 0.2 ms of dense compute.

    The shortest step is these 0.2 ms, and no plan keeps ddr busy for less than 0.306 ms. One plan leaves it time: t0 in
    fused_uvm and t1 behind a cache of 0.3, busy for 0.396 ms of a step of 0.457 ms. The four cheaper plans take 0.297
    ms to 0.407 ms, and are busy for 2% to 20% longer than that.
    """
    on_host = frozenset({Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING})
    table_wise = frozenset({Scheme.TABLE_WISE})
    tables = [
        make_table(
            name,
            20_000,
            columns,
            pooling_factor=pooling_factor,
            access=ZipfAccess(alpha=alpha),
            constraints=TableConstraints(
                sharding_types=table_wise, compute_kernels=kernels, cache_load_factors=cached_shares
            ),
        )
        for name, columns, pooling_factor, alpha, kernels, cached_shares in (
            ("t0", 16, 16.0, 0.8, on_host | {Kernel.FUSED}, (0.02, 0.5)),
            ("t1", 64, 4.0, 0.0, on_host, (0.3, 0.9)),
        )
    ]
    problem = make_problem(
        *tables,
        cluster=make_cluster(1, 1, hbm_bytes=2e6, ddr_bytes_per_second=6.4e8),
        pipeline="train_sparse_dist",
        objective="max_rank_time",
        dense=Dense(forward_seconds=1e-4, backward_seconds=1e-4),
    )
    result = plan(problem, cost_model=TORCHREC, partitioner=Portfolio(), limits=LIMITS)
    assert result.plan is not None
    assert [table.cache_load_factor for table in result.plan.placement.tables] == [None, 0.3]
    (load,) = result.plan.evaluation.tiers
    assert shortest_step(problem, result.plan.lower_bound_seconds) == pytest.approx(2e-4)
    assert load.busy_seconds == pytest.approx(3.957e-4, rel=1e-3)
    assert load.utilization == pytest.approx(0.8655, rel=1e-3)


def test_checkpoints_are_no_part_of_a_step() -> None:
    checkpoint = Checkpoint(interval_steps=1000, balance=True)
    problem = hidden_traffic(1e9, dense=Dense(forward_seconds=2e-4, backward_seconds=2e-4))
    assert shortest_step(problem, 6e-4) == pytest.approx(1e-3)
    assert shortest_step(replace(problem, checkpoint=checkpoint), 6e-4) == pytest.approx(4e-4)
