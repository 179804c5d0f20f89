"""The highest peak of all ranks, and what fills it."""

from dataclasses import replace

from cost_models.analytic.roofline import RooflineModel
from planner.domain.plan.plan import Evaluation
from planner.domain.plan.step_memory import MemoryPhase
from planner.domain.problem.dense import Dense
from planner.output.explain.memory_peak import memory_peak
from planner.verification.evaluate_placement import score
from tests.planner.verification.test_evaluate_placement import one_table_plan
from tests.support.planning.builders import make_problem, make_table


def evaluated(dense: Dense) -> Evaluation:
    _, placement = one_table_plan()
    return score(make_problem(make_table(dim=128), dense=dense), placement, RooflineModel())


def test_the_peak_of_the_fullest_rank_is_named_with_what_fills_it() -> None:
    evaluation = evaluated(Dense(activation_bytes=20e9))
    peak = memory_peak(evaluation)
    assert peak is not None
    highest = max(load.step_memory.peak_bytes for load in evaluation.ranks if load.step_memory is not None)
    assert peak.peak_bytes == highest
    assert (peak.peak_phase, peak.largest_buffer) == (MemoryPhase.DENSE_BACKWARD, "activations")
    assert 20e9 < peak.buffer_bytes < peak.peak_bytes
    assert peak.to_document()["peak_phase"] == "dense_backward"


def test_requests_have_no_peak() -> None:
    evaluation = evaluated(Dense())
    without = tuple(replace(load, step_memory=None) for load in evaluation.ranks)
    assert memory_peak(replace(evaluation, ranks=without)) is None
