"""Lower bounds on the objective: what no plan of the listed options can beat.

No code is shared with partitioners.

Data: for option o, ``total[o, p]`` seconds summed over all ranks and ``big[o, p]`` seconds of
its largest unit that is not on every rank, ``world[o, p]`` seconds of its units that are on
every rank, ``total_bytes[o, m]``; R ranks, ``w[p]`` weights, ``v[p]`` hidden windows.

Model (a relaxation: options may be mixed, loads may be spread freely)::

    minimise   sum_p w[p] * s[p]          with s[p] >= z[p] - v[p], s[p] >= 0
    (1) sum_{o of t} x[o] = 1                                     every table has options
    (2) sum_o x[o] * total[o, p] / R            <= z[p]           the average rank
    (3) sum_o x[o] * total_bytes[o, m]          <= cap[m]         the whole cluster's memory
    (4) sum_o x[o] * world[o, p] + sum_{o of t} x[o] * big[o, p] <= z[p]   for every table t:
        its largest piece sits on top of what every rank carries anyway

For max_rank_time the phases collapse into one before anything else.

The linear program only proposes multipliers (lambda for 2, mu for 3, nu for 4). The bound is
their Lagrangian dual value, computed here in a few lines of numpy; it is valid for **any**
multipliers that are not negative, so that nothing rests on the solver's tolerances::

    L = - sum_p q[p] v[p] - sum_m mu[m] cap[m]
        + sum_t min_{o of t} ( sum_p lambda[p] total[o,p] / R + sum_m mu[m] total_bytes[o,m]
                               + sum_p nu[t,p] big[o,p] + sum_p N[p] world[o,p] )
    with N[p] = sum_t nu[t,p],  q[p] = lambda[p] + N[p] <= w[p]  (scaled down where it exceeds)

since min over z >= 0 of  w max(0, z - v) - q z  is  - q v  when q <= w.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.linear_solver import pywraplp

from planner.priced import Objective, PricedOptions, Scope

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-9  # relative; float sums of up to 1e5 terms err by far less


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """The data of the model above."""

    option_table: Ints  # (O,)
    num_tables: int
    num_ranks: int
    total: Floats  # (O, P)
    big: Floats  # (O, P)
    world: Floats  # (O, P)
    total_bytes: Floats  # (O, M)
    cluster_bytes: Floats  # (M,)
    weight: Floats  # (P,)
    window: Floats  # (P,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Multipliers:
    """Prices of the rows (2), (3) and (4); none is negative."""

    average: Floats  # (P,) lambda
    memory: Floats  # (M,) mu
    largest: Floats  # (T, P) nu


def lower_bound(priced: PricedOptions) -> float:
    """Return seconds that no plan of these options can beat; 0 when nothing better is known."""
    model = relaxation(priced)
    candidates = [0.0, dual_value(model, _average_only(model))]
    proposed = _solve_relaxation(model)
    if proposed is not None:
        candidates.append(dual_value(model, proposed))
    return max(candidates) * (1 - _ROUNDING)


def relaxation(priced: PricedOptions) -> Relaxation:
    """Add up the units of every option."""
    collapse = priced.objective is Objective.MAX_RANK_TIME
    weight = np.ones(1) if collapse else priced.phase_weight
    window = np.zeros(1) if collapse else priced.phase_window_seconds
    seconds = (priced.unit_seconds @ priced.phase_weight)[:, None] if collapse else priced.unit_seconds
    shape = (priced.num_options, seconds.shape[1])
    total, big, world = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    total_bytes = np.zeros((priced.num_options, priced.num_tiers))
    np.add.at(total, priced.unit_option, seconds * priced.ranks_touched[:, None])
    np.add.at(total_bytes, priced.unit_option, priced.unit_total_bytes)
    everywhere = priced.unit_scope == Scope.WORLD
    np.add.at(world, priced.unit_option[everywhere], seconds[everywhere])
    np.maximum.at(big, priced.unit_option[~everywhere], seconds[~everywhere])
    return Relaxation(
        option_table=priced.option_table,
        num_tables=priced.num_tables,
        num_ranks=priced.num_ranks,
        total=total,
        big=big,
        world=world,
        total_bytes=total_bytes,
        cluster_bytes=np.sum(priced.capacity_bytes, axis=0),
        weight=weight,
        window=window,
    )


def dual_value(model: Relaxation, prices: Multipliers) -> float:
    """Return the Lagrangian dual value: a lower bound for any multipliers >= 0."""
    average, memory = np.maximum(prices.average, 0.0), np.maximum(prices.memory, 0.0)
    largest = np.maximum(prices.largest, 0.0)
    charged = average + np.sum(largest, axis=0)
    shrink = np.where(charged > model.weight, model.weight / np.where(charged > 0, charged, 1.0), 1.0)
    average, largest = average * shrink, largest * shrink
    on_top = np.sum(largest, axis=0)
    reduced = (
        model.total @ average / model.num_ranks
        + model.total_bytes @ memory
        + np.sum(largest[model.option_table] * model.big, axis=1)
        + model.world @ on_top
    )
    cheapest = np.full(model.num_tables, np.inf)
    np.minimum.at(cheapest, model.option_table, reduced)
    hidden = float(np.sum((average + on_top) * model.window))
    return float(np.sum(cheapest)) - hidden - float(np.sum(memory * model.cluster_bytes))


def _average_only(model: Relaxation) -> Multipliers:
    """Price the average rank alone: the bound that needs no solver."""
    return Multipliers(
        average=model.weight,
        memory=np.zeros(model.total_bytes.shape[1]),
        largest=np.zeros((model.num_tables, model.weight.shape[0])),
    )


def _solve_relaxation(model: Relaxation) -> Multipliers | None:
    """Solve the linear program with GLOP and return its dual prices; ``None`` if it fails.

    Seconds are scaled so that the average load is about 1, bytes by the cluster's.
    """
    solver = pywraplp.Solver.CreateSolver("GLOP")
    phases = np.flatnonzero(model.weight > 0)
    scale = float(np.max(np.sum(model.total, axis=0))) / max(model.num_ranks, 1)
    if solver is None or scale <= 0:
        return None
    infinity = solver.infinity()
    x = [solver.NumVar(0.0, infinity, "") for _ in range(model.option_table.shape[0])]
    z = {int(p): solver.NumVar(0.0, infinity, f"z{p}") for p in phases}
    objective = solver.Objective()
    for p in z:
        exposed = solver.NumVar(0.0, infinity, f"s{p}")
        objective.SetCoefficient(exposed, float(model.weight[p]))
        row = solver.Constraint(-model.window[p] / scale, infinity)  # s - z >= -v
        row.SetCoefficient(exposed, 1.0)
        row.SetCoefficient(z[p], -1.0)
    objective.SetMinimization()
    tables = [solver.Constraint(1.0, 1.0) for _ in range(model.num_tables)]  # (1)
    for o, table in enumerate(model.option_table):
        tables[table].SetCoefficient(x[o], 1.0)
    average = {p: _average_row(solver, model, x, z[p], p, scale) for p in z}  # (2)
    memory = _memory_rows(solver, model, x)  # (3)
    largest = _largest_rows(solver, model, x, z, scale)  # (4)
    if solver.Solve() != pywraplp.Solver.OPTIMAL:
        return None
    prices = Multipliers(
        average=np.zeros(model.weight.shape[0]),
        memory=np.zeros(model.total_bytes.shape[1]),
        largest=np.zeros((model.num_tables, model.weight.shape[0])),
    )
    for p, row in average.items():
        prices.average[p] = -row.dual_value()
    for m, row in memory.items():
        prices.memory[m] = -row.dual_value() * scale / model.cluster_bytes[m]
    for (t, p), row in largest.items():
        prices.largest[t, p] = -row.dual_value()
    return prices


def _average_row(
    solver: pywraplp.Solver,
    model: Relaxation,
    x: list[pywraplp.Variable],
    z: pywraplp.Variable,
    p: int,
    scale: float,
) -> pywraplp.Constraint:
    row = solver.Constraint(-solver.infinity(), 0.0)
    row.SetCoefficient(z, -1.0)
    for o in np.flatnonzero(model.total[:, p]):
        row.SetCoefficient(x[o], float(model.total[o, p]) / model.num_ranks / scale)
    return row


def _memory_rows(
    solver: pywraplp.Solver, model: Relaxation, x: list[pywraplp.Variable]
) -> dict[int, pywraplp.Constraint]:
    rows = {}
    for m in np.flatnonzero(model.cluster_bytes > 0):
        rows[int(m)] = solver.Constraint(-solver.infinity(), 1.0)
        for o in np.flatnonzero(model.total_bytes[:, m]):
            rows[int(m)].SetCoefficient(x[o], float(model.total_bytes[o, m] / model.cluster_bytes[m]))
    return rows


def _largest_rows(
    solver: pywraplp.Solver,
    model: Relaxation,
    x: list[pywraplp.Variable],
    z: dict[int, pywraplp.Variable],
    scale: float,
) -> dict[tuple[int, int], pywraplp.Constraint]:
    """Rows (4), with one variable per phase for what every rank carries."""
    rows = {}
    for p, slowest in z.items():
        everywhere = solver.NumVar(0.0, solver.infinity(), f"w{p}")
        sum_up = solver.Constraint(0.0, 0.0)
        sum_up.SetCoefficient(everywhere, -1.0)
        for o in np.flatnonzero(model.world[:, p]):
            sum_up.SetCoefficient(x[o], float(model.world[o, p]) / scale)
        for t in range(model.num_tables):
            rows[t, p] = solver.Constraint(-solver.infinity(), 0.0)
            rows[t, p].SetCoefficient(everywhere, 1.0)
            rows[t, p].SetCoefficient(slowest, -1.0)
        for o in np.flatnonzero(model.big[:, p]):
            rows[int(model.option_table[o]), p].SetCoefficient(x[o], float(model.big[o, p]) / scale)
    return rows
