"""The integer program of :mod:`planner.solver.partitioners.exact.cp_sat`: variables, constraints, hints, read-back.

Numbers in comments are the constraints of that module's docstring.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from cost_models.arrays import Ints
from planner.solver.evaluate import busy_seconds, rank_loads, start_seconds
from planner.solver.partitioners.exact.columns import Columns, assignment_of, make_columns, values_of
from planner.solver.partitioners.exact.loads import ColumnLoads, column_loads, columns_on
from planner.solver.partitioners.exact.rows import make_rows
from planner.solver.partitioners.exact.symmetry import find_symmetry, in_order
from planner.solver.problem import Assignment, OwnStep, SolverProblem

_ENDLESS_TICKS = 2**40


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """Seconds in whole ticks, rounded down; windows rounded up."""

    tick_seconds: float
    columns: Ints  # (classes, C, Q)
    pinned: Ints  # (R, Q)
    window: Ints  # (Q,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and handles of its variables."""

    priced: SolverProblem
    columns: Columns
    loads: ColumnLoads
    ticks: Ticks
    proto: cp_model.CpModel
    variables: list[cp_model.IntVar]  # (C,)
    slowest: list[cp_model.IntVar]  # (Q,)
    exposed: list[cp_model.IntVar]  # (Q,) the same as ``slowest`` where nothing is hidden


def build(priced: SolverProblem, num_ticks: int, bound_seconds: float) -> Model:
    """Write the model; ``num_ticks`` are those of the dearest piece of every table and all pins together."""
    columns = make_columns(priced)
    loads = column_loads(priced, columns)
    ticks = _in_ticks(priced, columns, loads, num_ticks)
    proto = cp_model.CpModel()
    variables = [proto.new_int_var(0, int(most), f"c{i}") for i, most in enumerate(columns.upper)]
    for row in make_rows(priced, columns, find_symmetry(priced)):  # (1) to (7) of program_rows
        _add(proto, _sum(variables, row.columns, row.coefficients), row.value, is_equation=row.is_equation)
    most_ticks = int((ticks.columns.max(axis=0) * columns.upper[:, None]).sum(axis=0).max() + ticks.pinned.max())
    slowest = [proto.new_int_var(0, most_ticks, f"z{q}") for q in range(loads.num_phases)]
    sizes = np.ceil(columns.bytes).astype(np.int64)
    # More memory than all columns together take is never used up; it would only overflow.
    all_bytes = float((sizes * columns.upper[:, None]).sum())
    room = np.floor(np.minimum(priced.capacity_bytes - np.ceil(loads.pinned_bytes), all_bytes)).astype(np.int64)
    for rank in range(priced.num_ranks):
        on_rank = columns_on(columns, rank)
        cost = ticks.columns[loads.class_of_rank[rank]]
        for q, z in enumerate(slowest):  # (a)
            proto.add(_sum(variables, on_rank, cost[on_rank, q]) + int(ticks.pinned[rank, q]) <= z)
        for tier in range(priced.num_tiers):  # (b)
            _add(proto, _sum(variables, on_rank, sizes[on_rank, tier]), int(room[rank, tier]), is_equation=False)
    exposed = slowest
    if np.any(ticks.window):
        most_exposed = most_ticks + max(0, -int(ticks.window.min()))
        exposed = [proto.new_int_var(0, most_exposed, f"e{q}") for q in range(loads.num_phases)]
        for z, e, window in zip(slowest, exposed, ticks.window.tolist(), strict=True):  # (c)
            proto.add(e >= z - window)
    if priced.own_step is not None:
        _keep_own_step(priced, priced.own_step, columns, loads, ticks.tick_seconds, proto, variables)
    floor = int(min(bound_seconds / ticks.tick_seconds, float(_ENDLESS_TICKS))) - _lost_ticks(priced, loads)
    if floor > 0:
        proto.add(sum(exposed) >= floor)
    proto.minimize(sum(exposed))
    return Model(
        priced=priced,
        columns=columns,
        loads=loads,
        ticks=ticks,
        proto=proto,
        variables=variables,
        slowest=slowest,
        exposed=exposed,
    )


def _keep_own_step(
    priced: SolverProblem,
    own_step: OwnStep,
    columns: Columns,
    loads: ColumnLoads,
    tick_seconds: float,
    proto: cp_model.CpModel,
    variables: list[cp_model.IntVar],
) -> None:
    """Add the rows of (d): the step as it is, not as any number above it, and what each rank keeps tiers busy."""
    pins = Assignment(piece_shape=priced.pinned_shape.copy(), piece_site=priced.pinned_site.copy())
    pinned = np.floor(rank_loads(priced, pins).seconds / tick_seconds).astype(np.int64)
    # A plan that uses fewer kinds than it may has a shorter step, which is checked once it is found.
    starts = (
        start_seconds(priced, np.isin(np.arange(priced.num_kinds), priced.family_kind)) if priced.num_kinds else 0.0
    )
    windows = _clipped(np.ceil((own_step.phase_window_seconds - starts) / tick_seconds))
    on_ranks = [columns_on(columns, rank) for rank in range(priced.num_ranks)]
    exposed, most_ticks = [], int(own_step.rest_seconds / tick_seconds)
    rest_ticks = most_ticks
    for phase in np.flatnonzero(own_step.phase_weight).tolist():
        sums, largest = [], 0
        for rank, on_rank in enumerate(on_ranks):
            seconds = columns.seconds[on_rank, phase] * priced.rank_slowdown[rank, phase]
            ticks = np.floor(seconds / tick_seconds).astype(np.int64)
            sums.append(_sum(variables, on_rank, ticks) + int(pinned[rank, phase]))
            largest = max(largest, int(ticks @ columns.upper[on_rank] + pinned[rank, phase]))
        slowest = proto.new_int_var(0, largest, f"y{phase}")
        proto.add_max_equality(slowest, sums)
        most_shown = largest + max(0, -int(windows[phase]))
        shown = proto.new_int_var(0, most_shown, f"x{phase}")
        proto.add_max_equality(shown, [slowest - int(windows[phase]), 0])
        exposed.append(shown)
        most_ticks += most_shown
    busy = np.minimum(np.ceil(columns.busy_seconds / tick_seconds), most_ticks + 1.0).astype(np.int64)
    pinned_busy = np.minimum(np.ceil(busy_seconds(priced, pins) / tick_seconds), most_ticks + 1.0).astype(np.int64)
    for rank, on_rank in enumerate(on_ranks):
        for tier in range(busy.shape[1]):
            taken = _sum(variables, on_rank, busy[on_rank, tier]) + int(pinned_busy[rank, tier])
            proto.add(taken <= sum(exposed) + rest_ticks)


def _in_ticks(priced: SolverProblem, columns: Columns, loads: ColumnLoads, num_ticks: int) -> Ticks:
    highest_cost = np.zeros(priced.num_tables)
    adds = columns.table >= 0
    np.maximum.at(highest_cost, columns.table[adds], loads.seconds.max(axis=0).sum(axis=1)[adds])
    everything = float(highest_cost.sum()) + float(loads.pinned_seconds.max(axis=0).sum())
    tick_seconds = max(everything, 1e-12) / num_ticks
    return Ticks(
        tick_seconds=tick_seconds,
        columns=np.floor(loads.seconds / tick_seconds).astype(np.int64),
        pinned=_clipped(np.floor(loads.pinned_seconds / tick_seconds)),
        window=_clipped(np.ceil(loads.window_seconds / tick_seconds)),
    )


def _clipped(ticks: NDArray[np.float64]) -> Ints:
    return np.clip(ticks, -float(_ENDLESS_TICKS), float(_ENDLESS_TICKS)).astype(np.int64)


def _lost_ticks(priced: SolverProblem, loads: ColumnLoads) -> int:
    """Ticks that a plan may lose: less than one per piece and phase, and per phase by pins and by its window."""
    pieces = np.zeros(priced.num_tables, dtype=np.int64)
    np.maximum.at(pieces, priced.option_table, np.bincount(priced.unit_option, minlength=priced.num_options))
    return (int(pieces[~priced.table_is_pinned].sum()) + 2) * loads.num_phases


def _sum(variables: list[cp_model.IntVar], columns: Ints, coefficients: Ints) -> cp_model.LinearExpr:
    used = np.flatnonzero(coefficients)
    return cp_model.LinearExpr.weighted_sum(
        [variables[c] for c in columns[used].tolist()], [int(c) for c in coefficients[used]]
    )


def _add(proto: cp_model.CpModel, total: cp_model.LinearExpr, value: int, *, is_equation: bool) -> None:
    low = value if is_equation else -(2**62)
    proto.add_linear_constraint(total, low, value)


def hint(model: Model, start: Assignment) -> None:
    """Hint a whole solution, loads included: a partial hint costs the solver a search of its own."""
    priced, ticks = model.priced, model.ticks
    values = values_of(priced, model.columns, in_order(priced, find_symmetry(priced), start))
    for variable, value in zip(model.variables, values.tolist(), strict=True):
        model.proto.add_hint(variable, value)
    loads = ticks.pinned.copy()
    for rank in range(priced.num_ranks):
        on_rank = columns_on(model.columns, rank)
        loads[rank] += values[on_rank] @ ticks.columns[model.loads.class_of_rank[rank], on_rank]
    slowest = loads.max(axis=0)
    for variable, value in zip(model.slowest, slowest.tolist(), strict=True):
        model.proto.add_hint(variable, value)
    if model.exposed is not model.slowest:
        for variable, value in zip(model.exposed, np.maximum(slowest - ticks.window, 0).tolist(), strict=True):
            model.proto.add_hint(variable, value)


def read(model: Model, value: Callable[[cp_model.IntVar], int]) -> Assignment:
    """Return the assignment of a solution."""
    values = np.array([value(variable) for variable in model.variables], dtype=np.int64)
    return assignment_of(model.priced, model.columns, values)
