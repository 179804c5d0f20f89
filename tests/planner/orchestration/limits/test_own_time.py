"""Limits that a plan's own time decides: which plans keep them, and that one is found wherever there is one."""

import math
from dataclasses import replace

import numpy as np
import pytest

from cost_models.vocabulary import Kernel, Scheme, Tier
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.problem import Dense, Problem
from planner.domain.problem.table import PinnedPiece, PinnedTable, TableConstraints
from planner.options.enumerate import enumerate_families
from planner.orchestration.limits.own_time import StepsToTry, broken_limits, keeps_limits, with_limits
from planner.orchestration.limits.tier_bandwidth import overloaded
from planner.orchestration.placement.to_placement import to_placement
from planner.pipeline import plan
from planner.pricing.price_options import price
from planner.solver.evaluate import busy_seconds, objective_of, violations
from planner.solver.partitioners.base import Partitioner, SolveLimits
from planner.solver.partitioners.exact.cp_sat import CpSat
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.ldm.ldm import Ldm
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.partitioners.portfolio import Portfolio
from planner.solver.problem import Assignment, SolverProblem
from planner.verification.evaluate_placement import score
from tests.support.planning.builders import TORCHREC, all_assignments, make_cluster, make_problem, make_table
from tests.support.planning.serving_problems import SERVING, cards, serving_problem

LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=0.3, relative_gap=0.0)
ON_HOST = frozenset({Kernel.FUSED, Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING})
WHOLE = frozenset({Scheme.TABLE_WISE})


def slow_host(power: float, *, objective: str = "step_time") -> Problem:
    """Two tables on two ranks that hold neither whole, by TorchRec; ddr has ten to this power bytes per second."""
    wanted = TableConstraints(sharding_types=WHOLE, compute_kernels=ON_HOST, cache_load_factors=(0.1, 0.5))
    tables = [make_table(f"t{i}", 20_000, 64, pooling_factor=16.0 + 16 * i, constraints=wanted) for i in range(2)]
    cluster = make_cluster(1, 2, hbm_bytes=4.5e6, ddr_bytes_per_second=10**power)
    return make_problem(*tables, cluster=cluster, objective=objective)


def legal_plans(problem: Problem, priced: SolverProblem) -> list[Assignment]:
    """All plans that keep their own step, as the scores of their placements have it."""
    families = enumerate_families(problem)
    return [
        assignment
        for assignment in all_assignments(priced)
        if not violations(priced, assignment)
        and not any(overloaded(score(problem, to_placement(problem, families, priced, assignment), TORCHREC)))
    ]


@pytest.mark.parametrize("objective", ["step_time", "max_rank_time"])
def test_the_exact_search_finds_the_best_plan_that_keeps_its_own_step(objective: str) -> None:
    """Where no plan does, a proof comes back. Brute force says which plans do, and agrees with the check of pieces."""
    num_found = 0
    for power in (6.0, 9.0, 10.0, 10.5, 11.0):
        problem = slow_host(power, objective=objective)
        priced = price(problem, enumerate_families(problem), TORCHREC)
        legal = legal_plans(problem, priced)
        assert len(legal) == sum(
            keeps_limits(problem, priced, assignment)
            for assignment in all_assignments(priced)
            if not violations(priced, assignment)
        )
        outcome = CpSat().solve(with_limits(priced, problem, step_seconds=None), LIMITS)
        assert (outcome.assignment is not None) == bool(legal)
        if outcome.assignment is not None:
            num_found += 1
            best = min(objective_of(priced, assignment) for assignment in legal)
            assert objective_of(priced, outcome.assignment) == pytest.approx(best, rel=1e-6)
    assert 1 <= num_found < 5


@pytest.mark.parametrize("partitioner", [Portfolio(), LocalSearch(), Greedy(), Ldm(), CpSat()])
def test_a_plan_is_found_wherever_there_is_one_whatever_searches(partitioner: Partitioner) -> None:
    for power in (6.0, 9.0, 10.5):
        problem = slow_host(power)
        priced = price(problem, enumerate_families(problem), TORCHREC)
        result = plan(problem, cost_model=TORCHREC, partitioner=partitioner, limits=LIMITS)
        assert (result.plan is not None) == bool(legal_plans(problem, priced))
        assert result.plan is None or not any(broken_limits(result.plan.evaluation))


def pinned(kernel: Kernel, rank: int) -> TableConstraints:
    piece = PinnedPiece(column_offset=0, num_columns=64, site=rank)
    share = 0.1 if kernel is Kernel.FUSED_UVM_CACHING else None
    return TableConstraints(
        pinned=PinnedTable(
            sharding_type=Scheme.TABLE_WISE, compute_kernel=kernel, cache_load_factor=share, pieces=(piece,)
        )
    )


@pytest.mark.parametrize("kernel", [Kernel.FUSED_UVM, Kernel.FUSED_UVM_CACHING])
@pytest.mark.parametrize("power", [8.0, 12.0])
def test_a_pin_in_a_slow_tier_is_planned_around_or_what_is_short_is_named(kernel: Kernel, power: float) -> None:
    problem = slow_host(power)
    first, second = problem.tables
    problem = replace(problem, tables=(replace(first, constraints=pinned(kernel, 1)), second))
    result = plan(problem, cost_model=TORCHREC, partitioner=Portfolio(), limits=LIMITS)
    if power < 10:
        assert (result.plan, result.limit) == (None, "tier_bandwidth")
        assert result.shortfalls[0].resource == f"{Tier.DDR.label}_bytes_per_second"
    else:
        assert result.plan is not None
        assert result.plan.placement.tables[0].shards.rank.tolist() == [1]


def test_fixed_steps_close_in_on_those_that_leave_a_plan_and_let_it_keep_the_limit() -> None:
    """Of steps between 1 ms and 100 ms only those near 4 ms do: six tries find one."""
    problem = slow_host(9.0)
    priced = price(problem, enumerate_families(problem), TORCHREC)
    families = enumerate_families(problem)
    scores = (
        score(problem, to_placement(problem, families, priced, found), TORCHREC) for found in all_assignments(priced)
    )
    evaluation = next(one for one in scores if one.tiers)
    (load,) = evaluation.tiers
    busy = [replace(evaluation, tiers=(replace(load, busy_seconds=seconds),)) for seconds in (0.1, 0.099)]
    still = replace(priced, shape_busy_seconds=np.full((priced.num_shapes, 1), 1e-9))
    steps, tried = StepsToTry(still, 1e-3, busy[0]), []
    while True:
        tried.append(steps.step_seconds)
        if 3.5e-3 < steps.step_seconds < 5e-3:
            break
        assert steps.learn(None if steps.step_seconds < 4e-3 else busy[1])
    assert tried[:2] == [1e-3, pytest.approx(1e-2)]
    assert len(tried) <= 6


def test_busy_seconds_add_up_to_what_the_score_counts() -> None:
    problem = replace(slow_host(10.0), dense=Dense(forward_seconds=1e-4))
    families = enumerate_families(problem)
    priced = price(problem, families, TORCHREC)
    for found in list(all_assignments(priced))[::7]:
        evaluation = score(problem, to_placement(problem, families, priced, found), TORCHREC)
        most = max((load.busy_seconds for load in evaluation.tiers), default=0.0)
        assert np.max(busy_seconds(priced, found), initial=0.0) == pytest.approx(most)


def test_a_replan_that_must_move_to_sustain_the_rate_moves_however_dear_that_is() -> None:
    """Two tables on one of two cards run, and requests come faster now than one card serves.

    To move is charged more than it saves: the plan of least charge stays, and does not sustain the rate.
    """
    tables = [make_table(f"t{i}", 4000, 64, pooling_factor=8.0) for i in range(2)]
    problem = serving_problem(*tables, cluster=cards(2))

    def served(problem: Problem, previous: PreviousPlan | None = None) -> PlanResult:
        return plan(problem, cost_model=SERVING, partitioner=Portfolio(), limits=LIMITS, previous=previous)

    on_one = TableConstraints(sharding_types=WHOLE, ranks=frozenset({0}))
    together = served(replace(problem, tables=tuple(replace(table, constraints=on_one) for table in problem.tables)))
    apart = served(problem)
    assert together.plan is not None
    assert apart.plan is not None
    slow, fast = together.plan.evaluation.objective_seconds, apart.plan.evaluation.objective_seconds
    assert problem.serving is not None
    serving = replace(problem.serving, requests_per_second=0.8 / math.sqrt(slow * fast), utilization_limit=0.8)
    runs = PreviousPlan(placement=together.plan.placement, remaining_steps=1, min_relative_gain=1.0)
    dear = served(replace(problem, serving=serving), runs)
    assert dear.plan is not None
    assert list(broken_limits(dear.plan.evaluation)) == []
    assert dear.plan.movement is not None
    assert dear.plan.movement.moved_bytes > 0
    stays = served(problem, runs)
    assert stays.plan is not None
    assert stays.plan.placement == together.plan.placement
