"""A whole step: what is in it, and what overlaps under each pipeline."""

from dataclasses import replace

import pytest

from cost_models.analytic.roofline import RooflineModel
from cost_models.vocabulary import Evidence, Phase
from planner.domain.plan.whole_step import WholeStep
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import PIPELINES, Problem
from planner.pricing.step.whole_step import dense_all_reduce, whole_step
from planner.verification.evaluate_placement import score
from tests.planner.verification.test_evaluate_placement import one_table_plan
from tests.support.planning.builders import make_problem, make_table

ROOFLINE = RooflineModel()


def step_of(dense: Dense, *, pipeline: str = "none", **hidden: float) -> WholeStep:
    problem = make_problem(make_table(), dense=dense, pipeline=pipeline)
    found = whole_step(
        problem,
        problem.cluster.hardware,
        sparse_seconds=0.003,
        hidden_seconds={Phase.from_label(name): seconds for name, seconds in hidden.items()},
        sparse_evidence=Evidence.MEASURED,
    )
    assert found is not None
    return found


def all_reduce(problem: Problem) -> float:
    return float(dense_all_reduce(problem, problem.cluster.hardware).seconds[0])


def test_a_step_is_the_sum_of_what_sticks_out() -> None:
    """64 samples on each of 4 ranks; 3 ms of embeddings, 1 + 2 ms of dense compute."""
    step = step_of(Dense(forward_seconds=0.001, backward_seconds=0.002))
    assert step.seconds == pytest.approx(0.006 + step.overhead_seconds)
    assert step.samples_per_second == pytest.approx(256 / step.seconds)
    assert (step.sparse_seconds, step.dense_forward_seconds, step.dense_backward_seconds) == (0.003, 0.001, 0.002)
    assert step.dense_all_reduce_seconds == step.hidden_all_reduce_seconds == 0


def test_the_all_reduce_hides_under_the_backward_pass_alone() -> None:
    dense = Dense(forward_seconds=1.0, backward_seconds=0.0, parameter_bytes=1e9)
    longest = step_of(dense)
    reduced = all_reduce(make_problem(make_table(), dense=dense))
    assert longest.dense_all_reduce_seconds == reduced > 0
    assert longest.hidden_all_reduce_seconds == 0
    half = step_of(replace(dense, backward_seconds=reduced / 2))
    assert half.hidden_all_reduce_seconds == reduced / 2
    assert half.seconds == pytest.approx(longest.seconds)  # what is computed is no longer waited for
    assert step_of(replace(dense, backward_seconds=2 * reduced)).hidden_all_reduce_seconds == reduced


def test_seconds_that_hide_ids_do_not_hide_gradients() -> None:
    """Both use the network: of 1 + 1 s, 1.5 s hide ids, and 0.5 s are left."""
    dense = Dense(forward_seconds=1.0, backward_seconds=1.0, parameter_bytes=1e12)
    step = step_of(dense, pipeline="train_sparse_dist", input_comm=1.5)
    assert step.hidden_all_reduce_seconds == pytest.approx(0.5)
    assert step.hidden_sparse_seconds == 1.5
    ahead = step_of(dense, pipeline="train_prefetch_sparse_dist", prefetch=1.5)
    assert ahead.hidden_all_reduce_seconds == 1.0  # the host link is another


def test_gradients_of_another_type_are_smaller() -> None:
    dense = Dense(forward_seconds=0.0, parameter_bytes=1e9, gradient_bytes=5e8)
    full = make_problem(make_table(), dense=replace(dense, gradient_bytes=None))
    assert step_of(dense).dense_all_reduce_seconds < all_reduce(full)


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_plans_state_their_whole_step(pipeline: str) -> None:
    """A pipeline hides the ids; the step is the objective, dense compute and what the hardware adds to each."""
    _, placement = one_table_plan()
    dense = Dense(forward_seconds=0.5, backward_seconds=1.0)
    problem = make_problem(make_table(dim=128), dense=dense, pipeline=pipeline)
    evaluation = score(problem, placement, ROOFLINE)
    step = evaluation.whole_step
    assert step is not None
    assert evaluation.step_time_seconds is not None
    assert step.sparse_seconds == evaluation.step_time_seconds
    assert step.seconds == pytest.approx(evaluation.step_time_seconds + 1.5 + step.overhead_seconds)
    assert (step.hidden_sparse_seconds > 0) is (pipeline != "none")


def test_nothing_is_stated_without_dense_seconds() -> None:
    _, placement = one_table_plan()
    for dense in (Dense(), Dense(parameter_bytes=1e6)):
        assert score(make_problem(make_table(dim=128), dense=dense), placement, ROOFLINE).whole_step is None


def test_the_evidence_is_that_of_the_weakest_number() -> None:
    dense = Dense(forward_seconds=0.1, evidence=Evidence.ESTIMATED)
    assert step_of(dense).evidence is Evidence.ESTIMATED
