"""One plan for all scenarios, against all plans there are."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.arrays import Floats
from planner.domain.problem.problem import Problem
from planner.domain.problem.replica_groups import ReplicaGroups
from planner.options.enumerate import enumerate_families
from planner.orchestration.scenarios.evaluate_all import evaluate_all, move
from planner.orchestration.scenarios.search import Together, plan_together
from planner.orchestration.scenarios.spread import Spread
from planner.pricing.price_options import price
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from tests.support.planning.builders import ROOFLINE, all_assignments, make_cluster, make_problem, make_table
from tests.support.thorough import THOROUGH

LIMITS = SolveLimits(time_limit_seconds=20.0, work_limit_seconds=0.2)


def at_random(seed: int, num_scenarios: int = 3) -> list[Problem]:
    """Scenarios of four small tables on two ranks, each table with traffic of its own in every scenario."""
    random = np.random.default_rng(seed)
    return [
        make_problem(
            *(make_table(f"t{i}", 2_000, 8, pooling_factor=float(random.uniform(1.0, 30.0))) for i in range(4)),
            cluster=make_cluster(1, 2),
        )
        for _ in range(num_scenarios)
    ]


def steps_of_all_plans(problems: list[Problem]) -> Floats:
    """Steps of every legal plan in every scenario, (num_plans, S)."""
    families = enumerate_families(problems[0])
    priced = [price(one, families, ROOFLINE) for one in problems]
    return np.array(
        [
            [objective_of(one, plan) for one in priced]
            for plan in all_assignments(priced[0])
            if not any(violations(one, plan) for one in priced)
        ]
    )


def together(
    problems: list[Problem], *, quantile: float = 1.0, units: Floats | None = None, memory_share: float = 1.0
) -> Together:
    return plan_together(
        problems,
        spread=Spread(weights=np.ones(len(problems)), quantile=quantile),
        unit_seconds=np.ones(len(problems)) if units is None else units,
        memory_share=memory_share,
        cost_model=ROOFLINE,
        partitioner=make_partitioner("local_search"),
        limits=LIMITS,
        num_rounds=6,
    )


@pytest.mark.parametrize("seed", range(4) if THOROUGH else [0])
@pytest.mark.parametrize("is_relative", [False, True])
def test_the_worst_scenario_is_close_to_the_least_there_is_and_never_below_the_bound(
    seed: int, is_relative: bool
) -> None:
    problems = at_random(seed)
    everything = steps_of_all_plans(problems)
    units = everything.min(axis=0) if is_relative else np.ones(len(problems))
    least = (everything / units).max(axis=1).min()
    found = together(problems, units=units)
    assert found.placement is not None
    evaluated = evaluate_all(problems, [found.placement], [ROOFLINE] * len(problems))
    worst = (evaluated.seconds[0] / units).max()
    assert evaluated.is_legal.all()
    assert least * (1 - 1e-9) <= worst <= least * 1.02
    assert 0.8 * least <= found.bound <= least * (1 + 1e-9)


def test_of_a_quantile_one_scenario_may_be_slow_and_no_bound_is_claimed() -> None:
    problems = at_random(7, num_scenarios=4)
    spread = Spread(weights=np.ones(4), quantile=0.75)
    everything = steps_of_all_plans(problems)
    least = min(spread.cost(steps) for steps in everything)
    found = together(problems, quantile=0.75)
    assert found.placement is not None
    assert found.bound == 0.0
    steps = evaluate_all(problems, [found.placement], [ROOFLINE] * 4).seconds[0]
    assert least * (1 - 1e-9) <= spread.cost(steps) <= least * 1.02
    assert least < everything.max(axis=1).min()  # leaving one scenario out helps here


def test_a_plan_of_other_ranks_is_none_of_a_scenario() -> None:
    two, four = at_random(0), [make_problem(*at_random(0)[0].tables, cluster=make_cluster(1, 4))]
    found = together(two)
    assert found.placement is not None
    evaluated = evaluate_all([two[0], four[0]], [found.placement], [ROOFLINE] * 2)
    assert np.isfinite(evaluated.seconds[0]).tolist() == [True, False]
    assert evaluated.is_legal[0].tolist() == [True, False]
    assert "the plan is for 2 ranks" in evaluated.issues[0, 1]


def test_moving_to_the_same_plan_is_free_and_to_another_is_not() -> None:
    problems = at_random(0)
    found, other = together(problems).placement, together(at_random(3)).placement
    assert found is not None
    assert other is not None
    assert move(problems[0], found, found).moved_bytes == 0
    there, back = move(problems[0], found, other), move(problems[0], other, found)
    assert there.moved_bytes > 0
    assert there.seconds is not None
    assert there.seconds > 0
    assert back.moved_bytes > 0


def test_memory_may_be_short_in_scenarios_of_a_share_of_the_weight_and_then_no_bound_is_claimed() -> None:
    problems = at_random(1, num_scenarios=4)
    # Outputs of a batch this large fill both ranks, whatever the plan.
    problems[2] = replace(problems[2], batch_size_per_rank=2**36)
    alone = together(problems, memory_share=1.0)
    assert alone.placement is None
    assert "fits" in alone.detail
    rarely = together(problems, memory_share=0.75)
    assert rarely.placement is not None
    assert rarely.bound == 0.0
    found = evaluate_all(problems, [rarely.placement], [ROOFLINE] * 4)
    assert found.is_legal[0].tolist() == [True, True, False, True]


def test_scenarios_of_sharding_groups_without_a_size_are_not_searched_together() -> None:
    cluster = make_cluster(2, 2)
    groups = ReplicaGroups(job=cluster, sizes=(2, 4))
    problem = replace(at_random(0)[0], cluster=cluster, replica_groups=groups)
    assert "size of sharding groups" in together([problem, problem]).detail
