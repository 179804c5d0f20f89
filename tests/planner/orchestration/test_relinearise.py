"""Plans under a model that prices ranks as a whole: searched with additive models, judged by the model."""

from dataclasses import replace

import numpy as np
import pytest

from cost_models.analytic.additive import Additive
from cost_models.protocol import AssignmentModel, CostModel
from cost_models.vocabulary import Phase, Scheme
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import TablePlacement
from planner.domain.plan.plan import PlanResult
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.domain.problem.table import TableConstraints
from planner.orchestration.relinearise import plan_by_relinearisation
from planner.pipeline import plan
from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.portfolio import Portfolio
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.builders import ROOFLINE, TORCHREC, make_cluster, make_problem, make_table
from tests.support.planning.launching_model import SPREAD, LaunchingModel
from tests.support.planning.long_plans import to_document
from tests.support.thorough import thorough

#: Counted work ends the searches: the clock is far away, however busy the machine.
LIMITS = SolveLimits(time_limit_seconds=120.0, work_limit_seconds=0.03)
WHOLE = TableConstraints(sharding_types=frozenset({Scheme.TABLE_WISE}))
MODEL = LaunchingModel(launch_seconds=3e-7)


def whole_tables() -> Problem:
    """Tables of which the largest costs as much as all others together; cut into whole tables, for two ranks."""
    tables = [make_table(f"t{i}", rows=10_000, dim=128, pooling_factor=2.0) for i in range(6)]
    large = make_table("large", rows=10_000, dim=128, pooling_factor=22.5)
    tables = [replace(table, constraints=WHOLE) for table in (large, *tables)]
    return make_problem(*tables, cluster=make_cluster(1, 2), objective="max_rank_time")


def solve(problem: Problem, model: LaunchingModel = MODEL, **changes: object) -> PlanResult:
    arguments: dict[str, object] = {"partitioner": Portfolio(), "limits": LIMITS} | changes
    return plan(problem, cost_model=model, **arguments)  # type: ignore[arg-type]


def test_the_model_is_of_the_protocol() -> None:
    assert isinstance(MODEL, AssignmentModel)
    assert not isinstance(ROOFLINE, AssignmentModel)


def test_prices_near_the_first_plan_find_a_better_one() -> None:
    """By themselves shards seem to cost a launch each, so that their number is balanced and not their work."""
    problem = whole_tables()
    by_shards = plan(problem, cost_model=Additive(model=MODEL), partitioner=Portfolio(), limits=LIMITS).plan
    found = solve(problem).plan
    assert by_shards is not None
    assert found is not None
    assert found.surrogate is not None
    assert found.surrogate.round > 1
    rated = score(problem, by_shards.placement, MODEL).objective_seconds
    assert found.evaluation.objective_seconds < 0.99 * rated
    best = sum(score(problem, found.placement, ROOFLINE).ranks[0].seconds.values())
    assert found.evaluation.objective_seconds == pytest.approx(best + MODEL.launch_seconds, rel=0.01)


def test_it_is_never_worse_than_the_plan_that_was_constructed_first() -> None:
    problem = whole_tables()
    first = plan(problem, cost_model=Additive(model=MODEL), partitioner=Greedy(first_only=True), limits=LIMITS).plan
    found = solve(problem).plan
    assert first is not None
    assert found is not None
    assert found.evaluation.objective_seconds <= score(problem, first.placement, MODEL).objective_seconds


@thorough
def test_a_search_that_ends_worse_than_it_began_does_not_count() -> None:
    """Round by round, the plan that is kept is the best under the model, whatever the additive model says."""
    problem = whole_tables()
    good, bad = solve(problem), plan(problem, cost_model=Additive(model=MODEL), partitioner=Portfolio(), limits=LIMITS)
    answers = iter([good, bad, bad, bad])
    found = plan_by_relinearisation(
        problem, MODEL, LIMITS, lambda model, limits, report: next(answers), previous=None, on_result=None
    )
    assert found.plan is not None
    assert good.plan is not None
    assert found.plan.evaluation.objective_seconds == good.plan.evaluation.objective_seconds
    assert found.plan.surrogate is not None
    assert found.plan.surrogate.round == 1


def test_a_plan_of_the_analytic_model_counts_too() -> None:
    """Nothing that the learned model's additive prices lead to is worse than what the analytic model alone finds."""
    problem = whole_tables()
    good = plan(problem, cost_model=ROOFLINE, partitioner=Portfolio(), limits=LIMITS)
    bad = plan(problem, cost_model=Additive(model=MODEL), partitioner=Greedy(first_only=True), limits=LIMITS)
    none = SolveLimits(time_limit_seconds=1e-9)  # nothing is moved afterwards

    def search(model: CostModel, *_: object) -> PlanResult:
        return good if model is MODEL.analytic else bad

    found = plan_by_relinearisation(problem, MODEL, none, search, previous=None, on_result=None).plan
    assert found is not None
    assert found.surrogate is not None
    assert good.plan is not None
    assert found.placement == good.plan.placement
    assert found.surrogate.round == found.surrogate.num_rounds == 4
    assert found.surrogate.moved_shards == 0
    assert found.limit == "time"  # the clock left nothing for it


def test_shards_move_at_last_as_the_model_says() -> None:
    """What a poor search left is mended; both numbers and the moved shards are told."""
    problem = whole_tables()
    bad = plan(problem, cost_model=Additive(model=MODEL), partitioner=Greedy(first_only=True), limits=LIMITS)
    assert bad.plan is not None
    everywhere_first = replace(bad.plan.placement, tables=tuple(map(_on_first, bad.plan.placement.tables)))
    poor = replace(bad, plan=replace(bad.plan, placement=everywhere_first))
    reported: list[PlanResult] = []
    found = plan_by_relinearisation(
        problem, MODEL, LIMITS, lambda *_: poor, previous=None, on_result=reported.append
    ).plan
    assert found is not None
    assert found.surrogate is not None
    assert found.surrogate.moved_shards > 0
    assert verify(problem, found.placement) == ()
    assert found.evaluation.objective_seconds < 0.6 * score(problem, everywhere_first, MODEL).objective_seconds
    additive = score(problem, found.placement, Additive(model=MODEL)).objective_seconds
    assert found.surrogate.seconds == pytest.approx(additive)
    assert reported[-1].plan is not None
    assert reported[-1].plan.placement == found.placement


def _on_first(placed: TablePlacement) -> TablePlacement:
    columns = placed.shards.columns.copy()
    columns[0] = 0
    return replace(placed, shards=Shards(columns))


def test_parts_of_the_limit_add_up_to_it() -> None:
    seen: list[SolveLimits] = []
    result = solve(whole_tables())

    def search(model: object, limits: SolveLimits, report: object) -> PlanResult:
        seen.append(limits)
        assert result.plan is not None
        longer = replace(result.plan, placement=result.plan.placement)
        return replace(result, plan=longer)

    limits = SolveLimits(time_limit_seconds=1e-3, work_limit_seconds=5e-4)
    plan_by_relinearisation(whole_tables(), MODEL, limits, search, previous=None, on_result=None)
    assert len(seen) == 3  # the same plan again ends it, and the analytic model's prices come last
    assert all(one.work_limit_seconds == pytest.approx(one.time_limit_seconds / 2) for one in seen)
    assert sum(one.time_limit_seconds for one in seen) <= 1e-3


def test_plans_are_reported_as_they_get_better_and_repeat() -> None:
    reported: list[float] = []

    def report(result: PlanResult) -> None:
        assert result.plan is not None
        reported.append(result.plan.evaluation.objective_seconds)

    found, again = solve(whole_tables(), on_result=report).plan, solve(whole_tables()).plan
    assert found is not None
    assert again is not None
    assert reported == sorted(reported, reverse=True)
    assert reported[-1] == found.evaluation.objective_seconds
    assert to_text(found) == to_text(again)


def to_text(found: object) -> object:
    document = to_document(found, name="m", spec_digest="sha256:s", hardware_profile="test")  # type: ignore[arg-type]
    return {**document, "provenance": None}


def test_no_bound_is_claimed_and_both_numbers_are_reported() -> None:
    found = solve(whole_tables()).plan
    assert found is not None
    assert found.surrogate is not None
    document = to_document(found, name="m", spec_digest="sha256:s", hardware_profile="test")
    assert document["objective"]["relative_gap"] is None  # type: ignore[index]
    assert document["objective"]["lower_bound_seconds"] == 0  # type: ignore[index]
    assert document["termination"]["reason"] == "FEASIBLE"  # type: ignore[index]
    surrogate = document["surrogate"]
    assert isinstance(surrogate, dict)
    assert surrogate["seconds"] >= surrogate["lower_bound_seconds"] > 0


def test_the_prediction_has_limits_and_shares() -> None:
    problem = whole_tables()
    found = solve(problem).plan
    assert found is not None
    reported = found.evaluation.prediction
    assert reported is not None
    objective = found.evaluation.objective_seconds
    assert reported.lower_seconds == pytest.approx((1 - SPREAD) * objective)
    assert reported.upper_seconds == pytest.approx((1 + SPREAD) * objective)
    total = sum(sum(rank.seconds.values()) for rank in found.evaluation.ranks)
    assert reported.learned_share == pytest.approx(2 * MODEL.launch_seconds / total)
    assert reported.learned_share + reported.measured_share + reported.analytic_share == pytest.approx(1.0)
    assert reported.fallbacks == ()
    assert score(problem, found.placement, TORCHREC).prediction is None


def test_tables_outside_the_measured_range_are_named() -> None:
    problem = whole_tables()
    model = LaunchingModel(launch_seconds=3e-7, most_lookups=10 * problem.samples_per_rank)
    found = solve(problem, model).plan
    assert found is not None
    assert found.evaluation.prediction is not None
    assert [(one.table, one.num_shards) for one in found.evaluation.prediction.fallbacks] == [("large", 1)]


def test_collectives_that_the_model_does_not_price_are_reported_of_the_shards_that_are_placed() -> None:
    problem = whole_tables()
    found = solve(problem).plan
    assert found is not None
    assert found.evaluation.prediction is not None
    reported = [(one.phase, one.reason) for one in found.evaluation.prediction.analytic_phases]
    reason = "all_to_all is not priced"
    assert reported == [(phase, reason) for phase in (Phase.INPUT_COMM, Phase.FORWARD_COMM, Phase.BACKWARD_COMM)]


def test_what_moves_is_rated_by_the_model_too() -> None:
    problem = whole_tables()
    before = plan(problem, cost_model=Additive(model=MODEL), partitioner=Portfolio(), limits=LIMITS).plan
    assert before is not None
    previous = PreviousPlan(placement=before.placement, remaining_steps=10**6)
    found = solve(problem, previous=previous).plan
    assert found is not None
    assert found.movement is not None
    rated = score(problem, before.placement, MODEL).objective_seconds
    assert found.movement.previous_seconds == rated
    assert found.movement.saved_seconds_per_step == pytest.approx(rated - found.evaluation.objective_seconds)


def test_an_infeasible_problem_has_its_diagnosis() -> None:
    problem = make_problem(
        make_table("t", rows=10**9, dim=128), cluster=make_cluster(1, 2, ddr_bytes=0.0), objective="max_rank_time"
    )
    result = solve(problem)
    assert result.plan is None
    assert result.reason == "INFEASIBLE"
    assert result.diagnosis is not None


def test_loads_of_ranks_are_those_of_the_model() -> None:
    problem = whole_tables()
    found = solve(problem).plan
    assert found is not None
    by_shards = score(problem, found.placement, ROOFLINE)
    for rank, other in zip(found.evaluation.ranks, by_shards.ranks, strict=True):
        extra = sum(rank.seconds.values()) - sum(other.seconds.values())
        assert extra == pytest.approx(MODEL.launch_seconds)
    assert np.isfinite(found.evaluation.objective_seconds)


def test_a_plan_that_gains_less_than_is_asked_for_is_no_answer() -> None:
    """Plans are compared with the price of moving, as every search compares them."""
    problem = whole_tables()
    found = solve(problem).plan
    assert found is not None
    worse = replace(found.placement, tables=(*found.placement.tables[:-1], _swapped(found.placement.tables[-1])))
    previous = PreviousPlan(placement=worse, min_relative_gain=0.0, remaining_steps=10**12)
    stays, moves = solve(problem, previous=replace(previous, min_relative_gain=1.0)), solve(problem, previous=previous)
    assert moves.plan is not None
    assert moves.plan.movement is not None
    dear = replace(moves.plan.movement, charged_seconds=moves.plan.evaluation.objective_seconds)
    for charged, placement in ((moves.plan.movement, moves.plan.placement), (dear, worse)):
        answers = iter([stays, *[replace(moves, plan=replace(moves.plan, movement=charged))] * 3])
        again = plan_by_relinearisation(
            problem, MODEL, LIMITS, lambda *_, answers=answers: next(answers), previous=previous, on_result=None
        ).plan
        assert again is not None
        assert again.placement == placement


def _swapped(placed: TablePlacement) -> TablePlacement:
    """The table on the other of two ranks."""
    columns = placed.shards.columns.copy()
    columns[0] = 1 - columns[0]
    return replace(placed, shards=Shards(columns))
