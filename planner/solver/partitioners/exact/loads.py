"""What :mod:`planner.solver.partitioners.exact.columns` add to ranks, weighted as the objective has it."""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.evaluate import rank_loads
from planner.solver.partitioners.exact.columns import Columns
from planner.solver.problem import Assignment, Objective, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLoads:
    """Seconds by class of equally fast ranks; Q is one collapsed phase for max_rank_time."""

    class_of_rank: Ints  # (R,)
    seconds: Floats  # (classes, C, Q) one piece of each column adds this to each rank that it touches
    pinned_seconds: Floats  # (R, Q)
    window_seconds: Floats  # (Q,) hidden under dense compute, less starts that every plan pays
    pinned_bytes: Floats  # (R, M)

    @property
    def num_phases(self) -> int:
        """Q."""
        return int(self.window_seconds.shape[0])


def column_loads(priced: SolverProblem, columns: Columns) -> ColumnLoads:
    """Weigh the seconds of columns and pins."""
    speeds, class_of_rank = np.unique(priced.rank_slowdown, axis=0, return_inverse=True)
    pins = rank_loads(priced, Assignment(piece_shape=priced.pinned_shape.copy(), piece_site=priced.pinned_site.copy()))
    seconds = columns.seconds * (speeds * priced.phase_weight)[:, None, :]
    pinned = pins.seconds * priced.phase_weight
    window = priced.window_seconds
    if priced.objective is Objective.MAX_RANK_TIME:
        seconds, pinned = seconds.sum(axis=2, keepdims=True), pinned.sum(axis=1, keepdims=True)
    else:
        window = window * priced.phase_weight
    return ColumnLoads(
        class_of_rank=class_of_rank.reshape(-1),
        seconds=seconds,
        pinned_seconds=pinned,
        window_seconds=window,
        pinned_bytes=pins.bytes,
    )


def columns_on(columns: Columns, rank: int) -> Ints:
    """Columns that add to a rank."""
    return np.flatnonzero((columns.first_rank <= rank) & (rank < columns.end_rank) & (columns.upper > 0))
