"""Compile what searches need, ahead of the first plan: ``python -m planner.solver.partitioners.kernels.warm_up``."""

import contextlib
from dataclasses import replace

import numpy as np

from planner.solver.partitioners.base import SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.kernels.cache import compiling_alone, warm_mark
from planner.solver.partitioners.ldm.differencing import difference
from planner.solver.partitioners.local_search.local_search import LocalSearch
from planner.solver.problem import Objective, SolverProblem

#: The clock must not end these searches: it counts while code compiles in the midst of one.
_LIMITS = SolveLimits(time_limit_seconds=86_400.0, work_limit_seconds=0.05, relative_gap=0.0)


def warm() -> None:
    """Search a small problem with every kind of site, once; about half a minute where nothing is compiled yet."""
    priced = _small()
    Greedy().solve(priced, _LIMITS)
    difference(np.ones((9, 2)), np.zeros((2, 2)), 1.0)
    for objective in Objective:  # one phase has first plans of its own
        LocalSearch().solve(replace(priced, objective=objective), _LIMITS)
    with contextlib.suppress(OSError):  # a folder that cannot be written holds no machine code either
        warm_mark().touch()


def load_constructions() -> None:
    """Construct a plan of the small problem, so that no clock counts the half second in which compiled code is read."""
    Greedy(first_only=True).solve(_small(), _LIMITS)


def _small() -> SolverProblem:
    """Return eight tables on two hosts of two ranks, each whole, in pieces, on a host, and everywhere."""
    tables = 8
    scope = np.tile(np.array([0, 0, 1, 2], dtype=np.int8), tables)
    columns = np.tile(np.array([64, 16, 20, 24, 28, 32, 36, 40, 44, 48, 64, 64]), tables)
    family = np.repeat(np.arange(4 * tables), np.tile([1, 9, 1, 1], tables))
    seconds = columns[:, None] * np.array([[1.0, 2.0]]) / np.array([1, 1, 2, 4])[family % 4][:, None] * 1e-6
    sizes = columns[:, None].astype(np.float64)
    first = 12 * np.arange(tables)
    units = np.stack([first, first + 5, first + 5, first + 10, first + 11], axis=1).reshape(-1)
    return SolverProblem(
        objective=Objective.STEP_TIME,
        table_columns=np.full(tables, 64),
        family_table=np.repeat(np.arange(tables), 4),
        family_scope=scope,
        family_same_host=np.zeros(4 * tables, dtype=np.bool_),
        family_min_pieces=np.tile([1, 2, 1, 1], tables),
        family_max_pieces=np.tile([1, 4, 1, 1], tables),
        shape_family=family,
        shape_columns=columns,
        shape_seconds=seconds,
        shape_bytes=sizes,
        shape_total_bytes=sizes * np.array([1, 1, 2, 4])[family % 4][:, None],
        option_family=np.arange(4 * tables),
        unit_option=np.repeat(np.arange(4 * tables), np.tile([1, 2, 1, 1], tables)),
        unit_shape=units,
        capacity_bytes=np.full((4, 1), 300.0),
        host_of_rank=np.array([0, 0, 1, 1]),
        rank_slowdown=np.ones((4, 2)),
        table_rank_allowed=np.ones((tables, 4), dtype=np.bool_),
        phase_weight=np.ones(2),
        phase_window_seconds=np.zeros(2),
    )


if __name__ == "__main__":
    with compiling_alone():
        warm()
