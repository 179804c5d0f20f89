"""Dense compute hides the next batch's id exchange and what is fetched ahead for it, and only with a pipeline."""

import pytest

from cost_models.vocabulary import NUM_PHASES, Phase
from planner.domain.problem.dense import Dense
from planner.domain.problem.problem import PIPELINES
from planner.pricing.step.phases import phase_windows
from tests.support.planning.builders import make_problem, make_table


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_only_what_a_pipeline_does_ahead_is_hidden(pipeline: str) -> None:
    """4 ms forward + 8 ms backward."""
    dense = Dense(forward_seconds=0.004, backward_seconds=0.008)
    windows = phase_windows(make_problem(make_table(), pipeline=pipeline, dense=dense))
    expected = [0.0] * NUM_PHASES
    if pipeline != "none":
        expected[Phase.INPUT_COMM] = pytest.approx(0.012)
    if pipeline == "train_prefetch_sparse_dist":
        expected[Phase.PREFETCH] = pytest.approx(0.012)
    assert windows.tolist() == expected


@pytest.mark.parametrize(
    ("dense", "seconds"),
    [(Dense(), 0.0), (Dense(forward_seconds=0.004), 0.004), (Dense(backward_seconds=0.008), 0.008)],
)
def test_what_the_spec_leaves_out_hides_nothing(dense: Dense, seconds: float) -> None:
    windows = phase_windows(make_problem(make_table(), pipeline="train_sparse_dist", dense=dense))
    assert windows.sum() == pytest.approx(seconds)
