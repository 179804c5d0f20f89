"""The lowest step that helps, and what happens when the work runs out."""

from dataclasses import dataclass, field

import pytest

from planner.diagnosis.fixes.ladder import Ladder, Step, lowest_fix
from planner.diagnosis.trial_solves import Attempt, Attempts, OutOfWork
from planner.domain.plan.diagnosis import SpecChange, VerifiedPlan
from planner.domain.problem.problem import Problem
from tests.support.planning.builders import make_problem

PLAN = VerifiedPlan(used_bytes=1.0, capacity_bytes=2.0, fullest_rank_fraction=0.5)


@dataclass
class Threshold(Attempts):
    """Problems with at least so many samples have a plan; only so many are looked at."""

    enough: int
    most: int = 100
    asked: list[int] = field(default_factory=list)

    def solve(self, problem: Problem) -> Attempt:
        if len(self.asked) == self.most:
            raise OutOfWork
        self.asked.append(problem.batch_size_per_rank)
        plan = PLAN if problem.batch_size_per_rank >= self.enough else None
        return Attempt(placement=None, plan=plan)


def samples(num_steps: int, guess: int = 0, failing: int = 0) -> Ladder:
    """Step n has n samples per rank."""

    def step(number: int) -> Step:
        changes = (SpecChange(pointer="/model/batch_size_per_rank", value=number),)
        return Step(problem=make_problem(batch_size_per_rank=number), message=f"{number} samples", changes=changes)

    return Ladder(kind="memory", num_steps=num_steps, step=step, guess=guess, failing=failing)


@pytest.mark.parametrize("guess", [0, 1, 15, 16, 17, 40, 500])
@pytest.mark.parametrize("enough", [1, 2, 16, 39, 40])
def test_the_lowest_step_that_helps_is_found(enough: int, guess: int) -> None:
    fix = lowest_fix(samples(40, guess), Threshold(enough=enough))
    assert fix is not None
    assert fix.message == f"{enough} samples"
    assert fix.changes[0].value == enough
    assert fix.plan == PLAN


def test_no_step_is_tried_twice_and_few_are() -> None:
    attempts = Threshold(enough=100)
    assert lowest_fix(samples(512, guess=97), attempts) is not None
    assert len(attempts.asked) == len(set(attempts.asked)) <= 12


@pytest.mark.parametrize("guess", [0, 3, 99])
def test_steps_that_are_known_to_fail_are_not_tried(guess: int) -> None:
    attempts = Threshold(enough=100)
    fix = lowest_fix(samples(512, guess=guess, failing=98), attempts)
    assert fix is not None
    assert fix.message == "100 samples"
    assert min(attempts.asked) > 98


def test_where_the_top_does_not_help_nothing_is_offered_after_one_solve() -> None:
    attempts = Threshold(enough=41)
    assert lowest_fix(samples(40), attempts) is None
    assert attempts.asked == [40]


@pytest.mark.parametrize(("most", "found"), [(0, None), (1, "40 samples")])
def test_where_the_work_runs_out_the_lowest_until_then_is_offered(most: int, found: str | None) -> None:
    fix = lowest_fix(samples(40), Threshold(enough=3, most=most))
    assert (fix and fix.message) == found
