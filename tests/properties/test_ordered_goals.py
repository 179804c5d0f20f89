"""Ordered goals against all plans there are: limits hold, and no bound is above the best plan within them.

Values come from the geometry of each plan, by the code that checks plans: it knows neither columns nor searches.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from api.specs.request import SolveRequest
from cost_models.protocol import AssignmentModel
from planner.domain.plan.movement import Movement
from planner.domain.plan.plan import PlanResult
from planner.domain.problem.goals import CHECKPOINT_UPLOAD, FULLEST_RANK, MOVED_BYTES, STEP_TIME, Goal, Tolerance
from planner.domain.problem.problem import Problem
from planner.orchestration.limits.own_time import broken_limits
from planner.orchestration.placement.renamed import named_as_in
from planner.orchestration.placement.to_placement import to_placement
from planner.orchestration.previous_plan import locate_previous_plan, movement_of
from planner.pipeline import plan
from planner.solver.partitioners.base import RESOLUTION, SolveLimits
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.goal_values import goal_values
from planner.verification.verify import verify
from tests.support.brute_force.tiny_specs import tiny_request
from tests.support.brute_force.whole_optimum import Listed, listed_problems
from tests.support.planning.exhaustive import assignments_in_order
from tests.support.thorough import THOROUGH

_NUM_SPECS = 400 if THOROUGH else 8
_MOST_PLANS = 300
_LIMITS = SolveLimits(time_limit_seconds=600.0, work_limit_seconds=0.4, relative_gap=0.0)
_WITHIN = 1 + 1e-7
_REACHED = 0.8  # of the turns, at least, that end with the best value there is


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A solve with goals, and the values of all plans that it may choose from."""

    problem: Problem
    result: PlanResult
    values: tuple[dict[str, float], ...]


def requests() -> Iterator[tuple[int, SolveRequest]]:
    """Yield training specs under prices of shards, with few plans."""
    for number in itertools.count():
        request = tiny_request(number)
        if request.problem.serving is None and not isinstance(request.cost_model, AssignmentModel):
            yield number, request


def goals_of(number: int, request: SolveRequest) -> tuple[Goal, ...]:
    """Draw two goals or more, in any order, with tolerances of any kind."""
    rng = np.random.default_rng(number)
    names = [STEP_TIME, FULLEST_RANK]
    names += [CHECKPOINT_UPLOAD] if request.problem.checkpoint is not None else []
    names += [MOVED_BYTES] if request.previous is not None else []
    rng.shuffle(names)
    tolerances = [
        Tolerance(
            relative=float(rng.choice([0.0, 0.02, 0.3])),
            seconds=float(rng.choice([0.0, 1e-5])),
            bytes=float(rng.choice([0.0, 1e4])),
        )
        for _ in names
    ]
    return tuple(Goal(name=name, tolerance=one) for name, one in zip(names, tolerances, strict=True))


def all_values(request: SolveRequest, problem: Problem, listed: Listed) -> Iterator[dict[str, float]]:
    """Yield the values of every plan that the verifier accepts and that keeps the limits of its own time."""
    state = None
    if request.previous is not None:
        placement = named_as_in(problem, request.previous.placement)
        previous = replace(request.previous, placement=placement)
        state = locate_previous_plan(listed.problem, listed.families, previous, request.cost_model)
    for _, assignment in assignments_in_order(listed.priced):
        placement = to_placement(listed.problem, listed.families, listed.priced, assignment)
        if verify(listed.problem, placement):
            continue
        evaluation = score(listed.problem, placement, request.cost_model)
        if any(broken_limits(evaluation)):
            continue
        moved: Movement | None = None
        if state is not None:
            moved = movement_of(listed.problem, state, placement, evaluation, 0.0)
        yield goal_values(replace(listed.problem, goals=problem.goals), placement, evaluation, moved)


def case_of(number: int, request: SolveRequest) -> Case | None:
    problem = replace(request.problem, objective=STEP_TIME, goals=goals_of(number, request))
    listed = list(listed_problems(replace(request, problem=problem)))
    if len(listed) != 1 or sum(1 for _ in itertools.islice(assignments_in_order(listed[0].priced), 301)) > _MOST_PLANS:
        return None
    values = tuple(all_values(request, problem, listed[0]))
    if not values:
        return None
    limits = replace(_LIMITS, seed=request.limits.seed)
    result = plan(
        problem,
        cost_model=request.cost_model,
        partitioner=request.partitioner,
        limits=limits,
        previous=request.previous,
    )
    return Case(problem=problem, result=result, values=values)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    found = (case_of(number, request) for number, request in requests())
    return list(itertools.islice((one for one in found if one is not None and one.result.plan is not None), _NUM_SPECS))


def best_within(case: Case, name: str, limits: dict[str, float]) -> float:
    """Return the least value of a goal among the plans that keep limits."""
    within = (one for one in case.values if all(one[other] <= most * _WITHIN for other, most in limits.items()))
    return min((one[name] for one in within), default=math.inf)


def test_turns_end_within_limits_and_at_or_above_their_bounds(cases: list[Case]) -> None:
    reached = []
    for case in cases:
        assert case.result.plan is not None
        goals = case.result.plan.goals
        assert [one.name for one in goals] == [goal.name for goal in case.problem.goals]
        values = {one.name: one.value for one in goals}
        is_proven = all(one.value_at_turn <= one.lower_bound * (1 + 2 * RESOLUTION) for one in goals)
        assert (case.result.reason is Reason.OPTIMAL) == is_proven
        step = next(one for one in goals if one.name == STEP_TIME)
        assert step.lower_bound * _WITHIN >= case.result.lower_bound_seconds
        for goal in goals:
            least = best_within(case, goal.name, dict(goal.limits))
            assert goal.lower_bound <= least * _WITHIN
            assert goal.value_at_turn * _WITHIN >= least
            assert goal.value_at_turn <= goal.value_before * _WITHIN or goal.name == STEP_TIME
            reached.append(goal.value_at_turn <= least * _WITHIN + 1e-12)
            for point in goal.points:
                limits = {name: most for name, most in point.limits.items() if name not in point.weights}
                sums = [
                    sum(weight * one[name] for name, weight in point.weights.items())
                    for one in case.values
                    if all(one[name] <= most * _WITHIN for name, most in limits.items())
                ]
                assert point.least_sum <= min(sums, default=math.inf) * _WITHIN
        assert all(values[name] <= most * _WITHIN for name, most in goals[-1].limits.items())
    assert np.mean(reached) >= _REACHED


def test_the_cases_have_every_goal(cases: list[Case]) -> None:
    """What is above is of all of them, in first and in later places."""
    names = {goal.name for case in cases for goal in case.problem.goals}
    assert names == {STEP_TIME, FULLEST_RANK, CHECKPOINT_UPLOAD, MOVED_BYTES}
    assert {case.problem.goals[0].name for case in cases} >= {STEP_TIME, FULLEST_RANK}
