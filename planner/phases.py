"""Which part of which phase is hidden under the dense part of the model."""

import numpy as np
from numpy.typing import NDArray

from cost_models.vocabulary import NUM_PHASES, Phase
from planner.domain.problem import Problem


def phase_windows(problem: Problem) -> NDArray[np.float64]:
    """Seconds of each phase that a pipeline hides under dense compute, shape (NUM_PHASES,).

    A pipelined trainer exchanges the next batch's ids while the dense part of this one runs;
    without a pipeline, or where the spec gives no dense times, nothing is hidden.
    """
    windows = np.zeros(NUM_PHASES)
    if problem.pipeline != "none":
        windows[Phase.INPUT_COMM] = problem.dense.window_seconds
    return windows
