"""Which phases a plan has, and which part of each is hidden under the dense part of the model."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Floats
from cost_models.protocol import CostModel
from cost_models.vocabulary import NUM_PHASES, STEP_PHASES, Phase
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem

_Number = TypeVar("_Number", bound=np.generic)


def phases_of(problem: Problem) -> tuple[Phase, ...]:
    """Return the phases of a step, and what checkpoints cost where the problem asks to balance that."""
    balanced = problem.checkpoint is not None and problem.checkpoint.balance
    return (*step_phases_of(problem), *((Phase.CHECKPOINT,) if balanced else ()))


def step_phases_of(problem: Problem) -> tuple[Phase, ...]:
    """Return the phases of a step, or of a request.

    Averages over replicas are one where the job has several groups, recomputation where keys and values are cached.
    """
    if problem.kv_cache is not None:
        return (*STEP_PHASES, Phase.KV_RECOMPUTE)
    return (*STEP_PHASES, Phase.REPLICA_SYNC) if problem.is_replicated else STEP_PHASES


def num_phases(problem: Problem) -> int:
    """Return how many phases, in their order, prices of a problem have: those of cost models, and its own."""
    return max(NUM_PHASES, 1 + max(step_phases_of(problem)))


def in_phases_of(problem: Problem, values: NDArray[_Number], fill: float) -> NDArray[_Number]:
    """Return values by phase, (..., NUM_PHASES), with all phases of a problem: ``fill`` in those of no cost model."""
    more = num_phases(problem) - NUM_PHASES
    if not more:
        return values
    return np.concatenate([values, np.full((*values.shape[:-1], more), fill, dtype=values.dtype)], axis=-1)


def counted_phases(problem: Problem, cost_model: CostModel) -> Bools:
    """Return which phases of a problem enter the objective, (num_phases,)."""
    return in_phases_of(problem, cost_model.counted_phases, True)


def phase_windows(problem: Problem) -> Floats:
    """Seconds of each phase that a pipeline hides under dense compute, shape (num_phases,).

    A pipelined trainer exchanges the next batch's ids while the dense part of this one runs, and one that fetches ahead
    also fills its caches then; without a pipeline, or where the spec gives no dense times, nothing is hidden.
    """
    windows = np.zeros(num_phases(problem))
    if problem.pipeline != "none":
        windows[Phase.INPUT_COMM] = problem.dense.window_seconds
    if problem.pipeline == PREFETCH_PIPELINE:
        windows[Phase.PREFETCH] = problem.dense.window_seconds
    return windows


def exposed_seconds(problem: Problem, counted: Bools, seconds: Floats) -> Floats:
    """Return what each counted phase adds to a step: its slowest rank, less what dense compute hides.

    ``seconds`` are those of every rank and phase, (..., num_ranks, num_phases); the result has shape (..., num_phases).
    """
    return np.where(counted, np.maximum(seconds.max(axis=-2) - phase_windows(problem), 0.0), 0.0)


def objective_of_ranks(problem: Problem, counted: Bools, seconds: Floats) -> Floats:
    """Return the objective of the seconds of every rank and phase, (..., num_ranks, num_phases) to (...)."""
    if problem.objective == "step_time":
        return np.asarray(np.sum(exposed_seconds(problem, counted, seconds), axis=-1))
    return np.asarray(np.max(seconds @ counted.astype(np.float64), axis=-1))
