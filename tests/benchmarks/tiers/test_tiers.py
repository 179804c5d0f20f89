"""Models larger than the accelerators' memory, small enough for a test."""

import numpy as np
import pytest

from benchmarks.peers.recshard import GatherOnly, milp_seconds, problem_of
from benchmarks.tiers.tier_heuristics import best_rule
from benchmarks.tiers.tiers import (
    Limits,
    heuristic_line,
    ledger_line,
    ledger_problem,
    made_up_tables,
    solve,
    wide_problem,
)
from cost_models.registry import make_cost_model
from cost_models.vocabulary import Tier
from planner.options.enumerate import enumerate_families
from planner.pipeline import plan
from planner.pricing.price_options import price
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.registry import make_partitioner
from tests.support.thorough import thorough

LIMITS = Limits(partitioner="greedy", time_limit_seconds=5.0)


@thorough
def test_twelve_trillion_parameters_fit_as_halves_alone() -> None:
    """12e12 x 4 B are 48 TB, twice with a state for each weight; 128 x (40 + 187.5) GB are 29.1 TB, of which halves
    with 4 B a row take 24.2.
    """
    for optimizer in ("adagrad", "rowwise_adagrad"):
        line = ledger_line("fp32", optimizer, LIMITS)
        assert "INFEASIBLE" in line
        assert "ddr short of" in line
    line = ledger_line("fp16", "rowwise_adagrad", LIMITS)
    assert "24.2 TB, 83% of hbm+ddr; ddr binds" in line
    parameters = sum(t.num_embeddings * t.embedding_dim for t in ledger_problem("fp16", "rowwise_adagrad").tables)
    assert parameters == pytest.approx(12e12)


def test_a_plan_beats_the_rules_of_thumb() -> None:
    """Scored alike: the line tells both, and the rule's plan is within memory."""
    problem = wide_problem(made_up_tables(40), 4, 8e9, "fp32")
    model = make_cost_model("roofline")
    rule, (result, _) = best_rule(problem, model), solve(problem, LIMITS)
    assert rule is not None
    assert result.plan is not None
    assert result.plan.evaluation.objective_seconds < rule[1]
    assert sum(table.weight_bytes for table in problem.tables) > 4 * 8e9
    assert f"{rule[1] * 1e3:8.3f} ms" in heuristic_line(problem, LIMITS)


def test_no_rule_is_better_where_everything_fits_near() -> None:
    """With memory for all, equal caches of nine tenths lose to the tables themselves."""
    problem = wide_problem(made_up_tables(20), 4, 2e11, "fp32")
    rule = best_rule(problem, make_cost_model("roofline"))
    assert rule is not None
    assert "first tables in hbm" in rule[0]


def test_recshard_s_problem_is_solved_to_its_program_s_optimum() -> None:
    problem = problem_of(6, 2, 4, 0)
    model = GatherOnly()
    limits = SolveLimits(time_limit_seconds=20.0, relative_gap=1e-5)
    result = plan(problem, cost_model=model, partitioner=make_partitioner("mathopt"), limits=limits)
    assert result.plan is not None
    assert result.reason == "OPTIMAL"
    best = milp_seconds(price(problem, enumerate_families(problem), model), 20.0)
    assert best is not None
    assert result.plan.evaluation.objective_seconds == pytest.approx(best, rel=1e-5)
    assert any(placed.hot_rows > 0 for placed in result.plan.placement.tables)
    used = np.array([[rank.bytes[tier] for tier in (Tier.HBM, Tier.DDR)] for rank in result.plan.evaluation.ranks])
    assert np.all(used.sum(axis=0) > 0)
