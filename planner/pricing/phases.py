"""Which phases a plan has, and which part of each is hidden under the dense part of the model."""

import numpy as np

from cost_models.arrays import Bools, Floats
from cost_models.vocabulary import NUM_PHASES, STEP_PHASES, Phase
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem


def phases_of(problem: Problem) -> tuple[Phase, ...]:
    """Return the phases of a step, and what checkpoints cost where the problem asks to balance that."""
    balanced = problem.checkpoint is not None and problem.checkpoint.balance
    return tuple(Phase) if balanced else STEP_PHASES


def phase_windows(problem: Problem) -> Floats:
    """Seconds of each phase that a pipeline hides under dense compute, shape (NUM_PHASES,).

    A pipelined trainer exchanges the next batch's ids while the dense part of this one runs, and one that fetches ahead
    also fills its caches then; without a pipeline, or where the spec gives no dense times, nothing is hidden.
    """
    windows = np.zeros(NUM_PHASES)
    if problem.pipeline != "none":
        windows[Phase.INPUT_COMM] = problem.dense.window_seconds
    if problem.pipeline == PREFETCH_PIPELINE:
        windows[Phase.PREFETCH] = problem.dense.window_seconds
    return windows


def exposed_seconds(problem: Problem, counted: Bools, seconds: Floats) -> Floats:
    """Return what each counted phase adds to a step: its slowest rank, less what dense compute hides.

    ``seconds`` are those of every rank and phase, (..., num_ranks, NUM_PHASES); the result has shape (..., NUM_PHASES).
    """
    return np.where(counted, np.maximum(seconds.max(axis=-2) - phase_windows(problem), 0.0), 0.0)


def objective_of_ranks(problem: Problem, counted: Bools, seconds: Floats) -> Floats:
    """Return the objective of the seconds of every rank and phase, (..., num_ranks, NUM_PHASES) to (...)."""
    if problem.objective == "step_time":
        return np.asarray(np.sum(exposed_seconds(problem, counted, seconds), axis=-1))
    return np.asarray(np.max(seconds @ counted.astype(np.float64), axis=-1))
