"""Whether ids are deduplicated is chosen as the better of both, with a bound over both."""

from dataclasses import replace

import pytest

from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.access import ZipfAccess
from planner.domain.problem.problem import Problem
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, make_cluster, make_problem, make_table

LIMITS = SolveLimits(time_limit_seconds=900.0, work_limit_seconds=0.5)


def problem(alpha: float, *, inter: float = 4e10, setting: bool | None = None) -> Problem:
    """Sequences on two hosts of two ranks, whose ids repeat more the larger ``alpha`` is."""
    access = ZipfAccess(alpha=alpha)
    tables = (
        make_table("clicked", 400_000, 128, pooling="none", pooling_factor=50.0, access=access, module_path="s"),
        make_table("seen", 300_000, 128, pooling="none", pooling_factor=20.0, access=access, module_path="s"),
    )
    cluster = make_cluster(2, 2, inter_host_bytes_per_second=inter)
    return make_problem(*tables, cluster=cluster, batch_size_per_rank=512, use_index_dedup=setting)


def solved(of: Problem, **options: object) -> PlanResult:
    return plan(of, cost_model=ROOFLINE, partitioner=make_partitioner("portfolio"), limits=LIMITS, **options)


@pytest.mark.parametrize(("alpha", "is_used"), [(1.2, True), (0.0, False)])
def test_the_better_setting_is_chosen(alpha: float, is_used: bool) -> None:
    found = solved(problem(alpha)).plan
    assert found is not None
    assert found.placement.use_index_dedup is is_used
    assert verify(problem(alpha), found.placement) == ()
    alone = {used: solved(problem(alpha, setting=used)).plan for used in (False, True)}
    best = min(one.evaluation.objective_seconds for one in alone.values())
    assert found.evaluation.objective_seconds <= best * (1 + LIMITS.relative_gap)
    assert found.lower_bound_seconds <= best * (1 + 1e-9)
    assert [one.use_index_dedup for one in found.index_dedup_settings] == [False, True]
    for one in found.index_dedup_settings:
        assert one.lower_bound_seconds <= alone[one.use_index_dedup].evaluation.objective_seconds * (1 + 1e-9)
    assert min(one.lower_bound_seconds for one in found.index_dedup_settings) == found.lower_bound_seconds
    load = found.evaluation.index_dedup
    assert load is not None
    used, other = load.objective_seconds_with, load.objective_seconds_without
    assert (used if is_used else other) == pytest.approx(found.evaluation.objective_seconds)
    assert (load.saved_seconds > 0) is is_used


def test_a_stated_setting_is_planned_alone() -> None:
    for setting in (False, True):
        found = solved(problem(1.2, setting=setting)).plan
        assert found is not None
        assert found.placement.use_index_dedup is setting
        assert found.index_dedup_settings == ()
        assert (found.evaluation.index_dedup is not None) is setting
        (issue,) = verify(problem(1.2, setting=not setting), found.placement)
        assert issue.code == "index-dedup-mismatch"
        assert issue.pointer == "/use_index_dedup"


def test_a_plan_that_runs_costs_what_it_costs_with_its_own_setting() -> None:
    before = solved(problem(1.2, setting=False)).plan
    assert before is not None
    previous = PreviousPlan(
        placement=before.placement, digest="sha256:" + "0" * 64, remaining_steps=10**9, min_relative_gain=0.0
    )
    found = solved(problem(1.2), previous=previous).plan
    assert found is not None
    assert found.placement.use_index_dedup
    assert found.movement is not None
    own = score(problem(1.2, setting=False), before.placement, ROOFLINE).objective_seconds
    assert found.movement.previous_seconds == pytest.approx(own)
    assert found.movement.previous_issue == ""


def test_both_settings_without_a_plan_are_reported_once() -> None:
    small = replace(problem(1.2), cluster=make_cluster(2, 2, hbm_bytes=1e6, ddr_bytes=0.0))
    found = solved(small)
    assert found.plan is None
    assert found.reason == Reason.INFEASIBLE
    assert found.detail.startswith("no plan with any of 2 settings of use_index_dedup; of 1: ")
