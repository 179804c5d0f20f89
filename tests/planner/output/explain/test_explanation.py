"""The whole explanation of a plan, as values, as a document and as text."""

from dataclasses import replace

import pytest

from cost_models.vocabulary import Scheme
from planner.domain.problem.table import TableConstraints
from planner.errors import InvalidProblem
from planner.output.explain.explanation import Explanation, explain
from planner.output.explain.text.explanation import explanation_text
from planner.output.explain.text.layout import WIDTH
from tests.planner.output.explain.test_alternatives import solved, three_tables
from tests.support.planning.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table

FAST_MEMORY = "hbm_bytes_per_second"


def explained(**options: int) -> Explanation:
    problem = three_tables()
    return explain(problem, solved(problem).placement, ROOFLINE, **options)


def test_it_agrees_with_the_plan() -> None:
    problem = three_tables()
    plan = solved(problem)
    found = explain(problem, plan.placement, ROOFLINE)
    assert found.objective_seconds == pytest.approx(plan.evaluation.objective_seconds)
    assert sum(phase.exposed_seconds for phase in found.phases) == pytest.approx(found.objective_seconds)
    assert sum(phase.objective_share for phase in found.phases) == pytest.approx(1.0)
    by_phase = {phase.phase: phase for phase in plan.evaluation.phases}
    for phase in found.phases:
        reported = by_phase[phase.phase]
        assert phase.seconds == pytest.approx(reported.seconds)
        assert phase.mean_seconds == pytest.approx(reported.mean_seconds)
        assert phase.evidence is reported.evidence
        assert reported.slowest_rank in phase.ranks
    assert 0 < found.bound_seconds <= found.objective_seconds


def test_the_heaviest_tables_come_first_and_no_more_than_asked_for() -> None:
    problem = three_tables()
    placement = solved(problem).placement  # of one solve: two may end at equally good plans
    every = explain(problem, placement, ROOFLINE)
    weights = [table.binding_seconds for table in every.tables]
    assert (len(weights), every.num_tables) == (3, 3)
    assert weights == sorted(weights, reverse=True)
    (heaviest,) = explain(problem, placement, ROOFLINE, max_tables=1).tables
    assert heaviest.name == every.tables[0].name
    assert explain(problem, placement, ROOFLINE, max_tables=0).tables == ()


def test_ranks_of_alternatives_are_where_the_table_would_be() -> None:
    for table in explained().tables:
        for one, ranks in table.alternatives:
            everywhere = one.scheme in (Scheme.ROW_WISE, Scheme.DATA_PARALLEL)
            assert len(ranks) == 4 if everywhere else len(ranks) >= 1


def test_what_must_not_be_used_is_not_explained() -> None:
    problem = three_tables()
    placement = solved(problem).placement
    with pytest.raises(InvalidProblem):
        explain(problem, replace(placement, tables=placement.tables[1:]), ROOFLINE)


def test_it_takes_the_cost_model_that_it_is_given() -> None:
    problem = three_tables()
    found = explain(problem, solved(problem).placement, TORCHREC)
    assert found.cost_model.startswith("torchrec@")


def test_text_has_all_of_it_within_the_terminal() -> None:
    found = explained()
    text = explanation_text(found, name="a model of ours" * 10)
    assert max(map(len, text.splitlines())) <= WIDTH
    for table in found.tables:
        assert f"{table.name} (" in text
    for word in ("What binds", "forward_compute", "What more hardware would buy", "at least", "Why tables are cut so"):
        assert word in text
    assert "hbm_bytes, 1 GB more on every rank of one host: saves nothing" in " ".join(text.split())
    assert "Why tables" not in explanation_text(replace(found, tables=()), name="x")


def test_text_of_a_price_that_no_one_knows() -> None:
    found = explained()
    unknown = replace(found.shadow_prices[0], saved_seconds=None, note="nothing is known")
    short = replace(found.shadow_prices[0], saved_seconds=0.002)
    unknown = replace(unknown, evidence=None)
    faster = [replace(price, saved_seconds=0.003) for price in found.shadow_prices if price.resource == FAST_MEMORY]
    text = explanation_text(replace(found, shadow_prices=(unknown, short, *faster)), name="x")
    assert "one host: nothing is known\n" in text
    assert "one host: saves at most 2 ms (estimated); " in " ".join(text.split())
    assert f"{FAST_MEMORY}  at least 3 ms (estimated)\n" in text
    lacking = replace(faster[0], saved_seconds=None, evidence=None, note="no such number")
    assert f"{FAST_MEMORY}  no such number\n" in explanation_text(replace(found, shadow_prices=(lacking,)), name="x")


def test_text_names_what_it_rests_on() -> None:
    text = explanation_text(explained(), name="x")
    assert f"as {ROOFLINE.name}@{ROOFLINE.version} predicts it" in text
    assert "a quick bound, above which the search may have proven more" in " ".join(text.split())
    assert "each phase lasts as long as its slowest rank" in text
    problem = three_tables(objective="max_rank_time")
    other = explanation_text(explain(problem, solved(problem).placement, ROOFLINE), name="x")
    assert "the rank whose phases add up to most" in other
    assert "hidden: " not in other


def test_text_of_a_plan_that_serves_has_no_step() -> None:
    found = explained()
    busy = replace(found.tiers[0], busiest_rank=0, busy_seconds=0.001)
    trained = replace(found, tiers=(busy,))
    assert "and move in a step on the busiest" in explanation_text(trained, name="x")
    text = explanation_text(replace(trained, objective="request_latency"), name="x")
    assert "the rank whose phases add up to most" in text
    assert "and move in a request on the busiest" in text
    assert "step" not in text
    assert "dense" not in text


def test_text_of_many_ranks_ends_between_them() -> None:
    found = explained()
    phase = replace(found.phases[0], ranks=(0, 2, 4, 10, 12, 14))
    text = explanation_text(replace(found, phases=(phase,)), name="x")
    assert "  0, 2, 4, ...\n" in text
    assert "  0, 2, 4, 10\n" in explanation_text(
        replace(found, phases=(replace(phase, ranks=phase.ranks[:4]),)), name="x"
    )


def test_a_table_that_could_be_nothing_else_is_reported_so() -> None:
    problem = make_problem(
        make_table("a", constraints=TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))),
        cluster=make_cluster(1, 1),
    )
    (table,) = explain(problem, solved(problem).placement, ROOFLINE).tables
    assert "no other cut is allowed" in table.reason
