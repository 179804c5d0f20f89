"""Baselines: made of the plan's prices, scored and verified as the plan is."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Kernel, Scheme
from planner.domain.plan.baseline import (
    ILLEGAL,
    LEGAL,
    NO_PLAN,
    NOT_MADE,
    PREVIOUS_PLAN,
    TABLE_WISE_BY_SIZE,
    TORCHREC_GREEDY,
    Baseline,
)
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.plan import Plan
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import PinnedPiece, PinnedTable, Table, TableConstraints
from planner.orchestration.baselines import compare
from planner.orchestration.baselines.compare import with_baselines
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=1.0)


def planned(problem: Problem, previous: PreviousPlan | None = None) -> Plan:
    found = plan(problem, cost_model=ROOFLINE, partitioner=Greedy(), limits=LIMITS, previous=previous).plan
    assert found is not None
    return with_baselines(found, problem, ROOFLINE)


def baselines_of(problem: Problem) -> dict[str, Baseline]:
    return {one.name: one for one in planned(problem).baselines}


def tables(count: int, rows: int = 100_000, **changes: object) -> list[Table]:
    return [make_table(f"t{number}", rows=rows * (number + 1), dim=128, **changes) for number in range(count)]  # type: ignore[arg-type]


def test_whole_tables_go_to_the_rank_with_the_fewest_bytes() -> None:
    problem = make_problem(*tables(3), cluster=make_cluster(ranks_per_host=2))
    whole = [
        replace(table, constraints=TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE})))
        for table in problem.tables
    ]
    found = planned(replace(problem, tables=tuple(whole)))
    # the largest alone on rank 0, the others, which are as large together, on rank 1
    ranks = {"t2": 0, "t1": 1, "t0": 1}
    placement = found.placement
    moved = []
    for one in placement.tables:
        (shard,) = one.shards
        moved.append(replace(one, shards=Shards.of([replace(shard, rank=ranks[one.name])])))
    expected = score(problem, replace(placement, tables=tuple(moved)), ROOFLINE).objective_seconds
    baseline = {one.name: one for one in found.baselines}[TABLE_WISE_BY_SIZE]
    assert (baseline.state, baseline.objective_seconds) == (LEGAL, pytest.approx(expected, rel=1e-12))


def test_torchrecs_plan_is_scored_with_the_plans_prices() -> None:
    only = make_table("t", rows=1_000_000, dim=128)
    problem = make_problem(only, cluster=make_cluster(ranks_per_host=2))
    # one table on two ranks: TorchRec takes the fastest slowest rank of the schemes that it lists, all of which we list
    schemes = (Scheme.DATA_PARALLEL, Scheme.TABLE_WISE, Scheme.ROW_WISE, Scheme.TABLE_ROW_WISE)
    of_schemes = []
    for scheme in schemes:
        one = replace(only, constraints=TableConstraints(sharding_types=frozenset({scheme})))
        evaluation = planned(replace(problem, tables=(one,))).evaluation
        of_schemes.append((evaluation.max_rank_time_seconds, evaluation.objective_seconds))
    baseline = baselines_of(problem)[TORCHREC_GREEDY]
    assert baseline.state == LEGAL
    assert baseline.objective_seconds == pytest.approx(min(of_schemes)[1], rel=1e-12)
    assert "proposals, from grid" in baseline.detail


def test_a_baseline_that_does_not_fit_says_so() -> None:
    # 15.4 GB of weights on ranks of 8 GB: rows are cut, whole tables do not fit
    problem = make_problem(
        make_table("large", rows=30_000_000, dim=128), cluster=make_cluster(ranks_per_host=4, hbm_bytes=8e9)
    )
    found = baselines_of(problem)
    whole = found[TABLE_WISE_BY_SIZE]
    assert whole.state == ILLEGAL
    assert "rank 0 needs" in whole.issue
    assert found[TORCHREC_GREEDY].state == LEGAL  # by rows


def test_a_packing_that_ends_without_a_plan_says_so() -> None:
    # units of 1 GB: the largest first, 3 | 3, then 2 | 2, and the last 2 fits nowhere, but for 3 + 3 | 2 + 2 + 2
    only_whole = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
    units = [
        replace(make_table(f"t{number}", rows=gigabytes * 2_000_000, dim=128), constraints=only_whole)
        for number, gigabytes in enumerate((3, 3, 2, 2, 2))
    ]
    problem = make_problem(*units, cluster=make_cluster(ranks_per_host=2, hbm_bytes=6.6e9))
    found = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS).plan
    assert found is not None
    greedy, whole = with_baselines(found, problem, ROOFLINE).baselines
    assert (greedy.state, greedy.objective_seconds) == (NO_PLAN, None)
    assert "fits in device memory" in greedy.issue
    assert (whole.state, whole.objective_seconds is None) == (ILLEGAL, False)


def test_what_takes_too_long_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "MAX_PLACED_TABLES", 3)
    found = baselines_of(make_problem(*tables(3), cluster=make_cluster()))
    assert found[TORCHREC_GREEDY].state == NOT_MADE
    assert "takes too long" in found[TORCHREC_GREEDY].issue
    assert found[TABLE_WISE_BY_SIZE].state == LEGAL


def test_torchrecs_plan_is_made_for_jobs_of_torchrec_alone() -> None:
    found = baselines_of(make_problem(*tables(3), cluster=make_cluster(), runtime="hugectr"))
    assert found[TORCHREC_GREEDY].state == NOT_MADE


def test_the_plan_that_runs_now_is_a_baseline() -> None:
    problem = make_problem(*tables(4), cluster=make_cluster())
    first = planned(problem)
    again = planned(problem, PreviousPlan(placement=first.placement))
    running = {one.name: one for one in again.baselines}[PREVIOUS_PLAN]
    assert (running.state, running.objective_seconds) == (LEGAL, first.evaluation.objective_seconds)
    assert PREVIOUS_PLAN not in {one.name for one in first.baselines}


def test_pinned_tables_are_not_placed_elsewhere() -> None:
    piece = PinnedPiece(column_offset=0, num_columns=128, site=1)
    pinned = PinnedTable(sharding_type=Scheme.TABLE_WISE, compute_kernel=Kernel.FUSED, pieces=(piece,))
    first, *others = tables(2)
    problem = make_problem(
        replace(first, constraints=TableConstraints(pinned=pinned)), *others, cluster=make_cluster(ranks_per_host=2)
    )
    assert {one.state for one in planned(problem).baselines} == {NOT_MADE}
