"""The integer program of :mod:`planner.solver.partitioners.exact.mathopt`: variables, constraints, hints, read-back.

Letters in comments are the constraints of that module's docstring.
"""

from dataclasses import dataclass

import numpy as np
from ortools.math_opt.python import mathopt

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.exact.columns import Columns, assignment_of, make_columns, values_of
from planner.solver.partitioners.exact.loads import ColumnLoads, column_loads, columns_on
from planner.solver.partitioners.exact.rows import Row, make_rows
from planner.solver.partitioners.exact.symmetry import find_symmetry, in_order
from planner.solver.problem import Assignment, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model and handles of its variables."""

    priced: SolverProblem
    columns: Columns
    rows: tuple[Row, ...]
    problem: mathopt.Model
    variables: list[mathopt.Variable]  # (C,)
    scale_seconds: float  # one unit of the objective
    num_entries: int  # coefficients that are not 0


def build(priced: SolverProblem, bound_seconds: float, spare_fraction: float) -> Model:
    """Write the model; ``spare_fraction`` of every rank's memory stays free."""
    columns = make_columns(priced)
    loads = column_loads(priced, columns)
    rows = tuple(make_rows(priced, columns, find_symmetry(priced)))
    scale = _scale_seconds(priced, columns, loads)
    problem = mathopt.Model(name="shardplan")
    variables = [problem.add_integer_variable(lb=0, ub=int(most), name=f"c{i}") for i, most in enumerate(columns.upper)]
    num_entries = 0

    def add(on: Ints, coefficients: Floats, *, upper: float, lower: float = -np.inf) -> mathopt.LinearConstraint:
        nonlocal num_entries
        row = problem.add_linear_constraint(lb=lower, ub=upper)
        for column, coefficient in zip(on.tolist(), coefficients.tolist(), strict=True):
            if coefficient:
                row.set_coefficient(variables[column], coefficient)
                num_entries += 1
        return row

    for row in rows:  # (1) to (7) of program_rows
        lower = float(row.value) if row.is_equation else -np.inf
        add(row.columns, row.coefficients.astype(np.float64), upper=float(row.value), lower=lower)
    slowest = [problem.add_variable(lb=0.0, name=f"z{q}") for q in range(loads.num_phases)]
    for rank in range(priced.num_ranks):
        on_rank = columns_on(columns, rank)
        cost = loads.seconds[loads.class_of_rank[rank], on_rank] / scale
        for q, z in enumerate(slowest):  # (a)
            add(on_rank, cost[:, q], upper=-float(loads.pinned_seconds[rank, q]) / scale).set_coefficient(z, -1.0)
        for tier in range(priced.num_tiers):  # (b)
            capacity = float(priced.capacity_bytes[rank, tier])
            room = capacity * (1.0 - spare_fraction) - float(loads.pinned_bytes[rank, tier])
            unit = max(capacity, 1.0)
            add(on_rank, columns.bytes[on_rank, tier] / unit, upper=room / unit)
    exposed = [problem.add_variable(lb=0.0, name=f"e{q}") for q in range(loads.num_phases)]
    for z, e, window in zip(slowest, exposed, loads.window_seconds, strict=True):  # (c)
        problem.add_linear_constraint(z - e <= min(float(window) / scale, _ENDLESS))
    problem.minimize(mathopt.fast_sum(exposed))
    if bound_seconds > 0:
        problem.add_linear_constraint(mathopt.fast_sum(exposed) >= bound_seconds / scale * (1 - _BOUND_SLACK))
    return Model(
        priced=priced,
        columns=columns,
        rows=rows,
        problem=problem,
        variables=variables,
        scale_seconds=scale,
        num_entries=num_entries,
    )


_ENDLESS = 1e9
#: What a caller's bound is lowered by, relative: it may be the optimum itself.
_BOUND_SLACK = 1e-6


def _scale_seconds(priced: SolverProblem, columns: Columns, loads: ColumnLoads) -> float:
    """About what the slowest rank will have, so that coefficients and the objective are near 1."""
    cheapest = np.full(priced.num_tables, np.inf)
    touched = columns.end_rank - columns.first_rank
    adds = columns.table >= 0
    np.minimum.at(cheapest, columns.table[adds], (loads.seconds.min(axis=0).sum(axis=1) * touched)[adds])
    everything = float(cheapest[np.isfinite(cheapest)].sum()) + float(loads.pinned_seconds.sum())
    return max(everything / priced.num_ranks, 1e-12)


def hint(model: Model, start: Assignment) -> mathopt.SolutionHint:
    """Return values of all integer variables; the solver finds the loads."""
    priced = model.priced
    values = values_of(priced, model.columns, in_order(priced, find_symmetry(priced), start))
    pairs = zip(model.variables, values.tolist(), strict=True)
    return mathopt.SolutionHint(variable_values={variable: float(value) for variable, value in pairs})


def read(model: Model, values: dict[mathopt.Variable, float]) -> Assignment | None:
    """Return the assignment of a solution rounded to integers; ``None`` where that breaks a row."""
    rounded = np.round([values[variable] for variable in model.variables]).astype(np.int64)
    for row in model.rows:
        total = int(rounded[row.columns] @ row.coefficients)
        if total > row.value or (row.is_equation and total != row.value):
            return None
    return assignment_of(model.priced, model.columns, rounded)
