"""Prices from the linear program: columns and rows join it only when they matter.

The model is that of :mod:`planner.solver.bounds.dual`. GLOP solves it over the choices that looked cheapest
so far and the rows (4) that were broken so far; its dual prices show which other choices would help
and its solution which other rows are broken. Nothing rests on the solver: the bound is the
dual value of the prices that it proposes, over all choices.
"""

from dataclasses import dataclass

import numpy as np
from ortools.linear_solver import pywraplp

from cost_models.arrays import Floats, Ints
from planner.solver.bounds.dual import Prices, admissible, dual_value, reduced_costs
from planner.solver.bounds.relaxation import Relaxation
from planner.solver.segments import first_least

_MAX_ROUNDS = 60
_CLOSE = 1e-5  # relative distance of the dual value from the program's optimum that ends the rounds
_BROKEN = 1e-6  # relative excess of a row that counts as broken
_ROUND_ROWS = 2000  # rows (4) that join in one round, the most broken ones
#: Iterations of the simplex algorithm: a few and one per row and column at first, since one per row is plenty; then so
#: many times as many.
_FEW_ITERATIONS, _PATIENCE = 1000, 10
#: Rows times iterations, half a second to a second, after which no round follows: late rounds add little.
_MOST_WORK = 5e7
_PRICE_OF_MORE = 1e3  # of a tier's bytes once more, in units of the program: all choices together take one
_MORE = 1 + 1e-9  # sums err by far less; what is left to rounding is not taken for a proof
_INFINITY = pywraplp.Solver.infinity()


class Master:
    """The restricted linear program; grows by columns and rows."""

    def __init__(self, model: Relaxation, scale: float, least: Floats) -> None:
        self._model, self._scale = model, scale
        solver = pywraplp.Solver.CreateSolver("GLOP")
        if solver is None:
            raise RuntimeError("OR-Tools was built without GLOP.")
        self._solver = solver
        self._phases = [int(q) for q in np.flatnonzero(model.weight > 0)]
        self._tiers = [int(m) for m in np.flatnonzero(model.cluster_bytes > 0)]
        self._column: dict[int, pywraplp.Variable] = {}
        self._largest: dict[tuple[int, int], pywraplp.Constraint] = {}
        self._slowest = {q: solver.NumVar(float(least[q]) / scale, _INFINITY, f"z{q}") for q in self._phases}
        self._world = {q: solver.NumVar(0.0, _INFINITY, f"w{q}") for q in self._phases}
        self.work = 0.0  # rows times iterations so far
        self._more: list[float] = []
        self._chosen = np.zeros(0, dtype=np.int64)
        self._x, self._z, self._w = np.zeros(0), np.zeros_like(model.weight), np.zeros_like(model.weight)
        objective = solver.Objective()
        for q, z in self._slowest.items():
            exposed = solver.NumVar(0.0, _INFINITY, f"s{q}")
            objective.SetCoefficient(exposed, float(model.weight[q]))
            row = solver.Constraint(-float(model.window[q]) / scale, _INFINITY)  # s - z >= -v
            row.SetCoefficient(exposed, 1.0)
            row.SetCoefficient(z, -1.0)
        objective.SetMinimization()
        self._tables = [solver.Constraint(1.0, 1.0) for _ in range(model.num_tables)]  # (1)
        self._average = {q: solver.Constraint(-_INFINITY, 0.0) for q in self._phases}  # (2)
        self._memory = {m: solver.Constraint(-_INFINITY, 1.0) for m in self._tiers}  # (3)
        self._extra: list[pywraplp.Variable] = []  # parts of each tier beyond what there is
        self._everywhere = {q: solver.Constraint(0.0, 0.0) for q in self._phases}
        for q in self._phases:
            self._average[q].SetCoefficient(self._slowest[q], -1.0)
            self._everywhere[q].SetCoefficient(self._world[q], -1.0)
        self._floor = {q: solver.Constraint(-_INFINITY, -float(least[q]) / scale) for q in self._phases if least[q] > 0}
        for q, row in self._floor.items():  # (5)
            row.SetCoefficient(self._world[q], 1.0)
            row.SetCoefficient(self._slowest[q], -1.0)

    def add_columns(self, choices: Ints) -> int:
        """Let choices take part; return how many are new."""
        model, new = self._model, np.array([c for c in choices.tolist() if c not in self._column], dtype=np.int64)
        # As lists, whose numbers are read many times faster than those of arrays.
        total, world, big = ((each[new] / self._scale).tolist() for each in (model.total, model.world, model.big))
        sizes = (model.total_bytes[new][:, self._tiers] / model.cluster_bytes[self._tiers]).tolist()
        largest, memory = self._largest, list(self._memory.values())
        for i, (c, table) in enumerate(zip(new.tolist(), model.choice_table[new].tolist(), strict=True)):
            x = self._solver.NumVar(0.0, _INFINITY, "")
            self._column[c] = x
            self._tables[table].SetCoefficient(x, 1.0)
            for q in self._phases:
                if total[i][q]:
                    self._average[q].SetCoefficient(x, total[i][q])
                if world[i][q]:
                    self._everywhere[q].SetCoefficient(x, world[i][q])
                if big[i][q] and (table, q) in largest:
                    largest[table, q].SetCoefficient(x, big[i][q])
            for row, part in zip(memory, sizes[i], strict=True):
                if part:
                    row.SetCoefficient(x, part)
        return len(new)

    def add_broken_rows(self, cost: Floats) -> int:
        """Add the rows (4) that the last solution breaks most; return how many.

        With them come choices that keep them, the cheapest by ``cost``, shape (C,).
        """
        model, scale = self._model, self._scale
        chosen, x = self._chosen, self._x
        largest = np.zeros((model.num_tables, model.weight.shape[0]))
        np.add.at(largest, model.choice_table[chosen], model.big[chosen] * x[:, None] / scale)
        floor = np.where(model.weight > 0, self._z - self._w, np.inf)
        excess = largest - floor
        broken = np.argwhere(excess > _BROKEN * np.maximum(np.abs(floor), 1e-9))
        worst = broken[np.argsort(-excess[broken[:, 0], broken[:, 1]], kind="stable")][:_ROUND_ROWS]
        self.add_columns(_with_room(model, np.unique(worst[:, 0]), floor * scale, cost))
        of_table: dict[int, list[int]] = {}
        for c in self._column:
            of_table.setdefault(int(model.choice_table[c]), []).append(c)
        new = 0
        for t, q in worst.tolist():
            if (t, q) in self._largest:
                continue
            row = self._solver.Constraint(-_INFINITY, 0.0)
            row.SetCoefficient(self._world[q], 1.0)
            row.SetCoefficient(self._slowest[q], -1.0)
            for c in of_table[t]:
                if model.big[c, q]:
                    row.SetCoefficient(self._column[c], float(model.big[c, q]) / scale)
            self._largest[t, q] = row
            new += 1
        return new

    def extend_memory(self) -> bool:
        """Let the program have more bytes than there are, at a high price; return whether it had no more before.

        What takes part may not fit together, although other choices do: this price leads to them.
        """
        if self._extra:
            return False
        for row in self._memory.values():
            more = self._solver.NumVar(0.0, _INFINITY, "")
            self._solver.Objective().SetCoefficient(more, _PRICE_OF_MORE)
            row.SetCoefficient(more, -1.0)
            self._extra.append(more)
        return True

    def exceeds_memory(self) -> bool:
        """Whether the last solution has more bytes than there are."""
        return any(more > _BROKEN for more in self._more)

    def solve(self) -> float | None:
        """Return the optimum over what takes part, seconds; ``None`` where there is none."""
        size = self._solver.NumConstraints() + self._solver.NumVariables()
        status = self.solve_within(_FEW_ITERATIONS + size, None)
        if status != pywraplp.Solver.OPTIMAL:
            # With its presolve GLOP sometimes ends abnormally or goes round in circles, for no reason of the program's.
            status = self.solve_within(_PATIENCE * (_FEW_ITERATIONS + size), _without_presolve())
        if status != pywraplp.Solver.OPTIMAL:
            return None
        self._read()
        return float(self._solver.Objective().Value()) * self._scale

    def solve_within(self, most_iterations: int, parameters: pywraplp.MPSolverParameters | None) -> int:
        """Return the status of a run that is stopped after so many iterations: the same ones on any machine."""
        self._solver.SetSolverSpecificParametersAsString(f"max_number_of_iterations: {most_iterations}")
        status = self._solver.Solve() if parameters is None else self._solver.Solve(parameters)
        self.work += float(self._solver.NumConstraints()) * float(self._solver.iterations())
        return int(status)

    def _read(self) -> None:
        """Note the solution: the program forgets it as soon as it grows."""
        self._chosen = np.array(list(self._column), dtype=np.int64)
        self._x = np.array([x.solution_value() for x in self._column.values()])
        self._more = [more.solution_value() for more in self._extra]
        for q in self._phases:
            self._z[q] = self._slowest[q].solution_value()
            self._w[q] = self._world[q].solution_value()

    def slowest(self) -> Floats:
        """Return z of the last solution, seconds, shape (Q,)."""
        return self._z * self._scale

    def room(self) -> Floats:
        """Return what z of the last solution leaves of every rank's seconds to its pieces, shape (Q,)."""
        return np.maximum(self._z - self._w, 0.0) * self._scale

    def shares(self) -> Floats:
        """Return x of the last solution, shape (C,)."""
        result = np.zeros(self._model.choice_table.shape[0])
        result[self._chosen] = self._x
        return result

    def prices(self) -> Prices:
        """Return the dual prices of the last solution."""
        model = self._model
        average, memory = np.zeros(model.weight.shape[0]), np.zeros(model.cluster_bytes.shape[0])
        largest = np.zeros((model.num_tables, model.weight.shape[0]))
        for q, row in self._average.items():
            average[q] = -row.dual_value()
        for m, row in self._memory.items():
            memory[m] = -row.dual_value() * self._scale / model.cluster_bytes[m]
        for (t, q), row in self._largest.items():
            largest[t, q] = -row.dual_value()
        floor = np.zeros_like(average)
        for q, row in self._floor.items():
            floor[q] = -row.dual_value()
        return Prices(average=average, memory=memory, largest=largest, floor=floor)


def _without_presolve() -> pywraplp.MPSolverParameters:
    """Return parameters that solve the program as it stands."""
    parameters = pywraplp.MPSolverParameters()
    parameters.SetIntegerParam(parameters.PRESOLVE, parameters.PRESOLVE_OFF)
    return parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxed:
    """What the relaxation says: prices, and a solution that mixes choices."""

    prices: Prices
    value_seconds: float  # dual value of the prices
    is_solved: bool  # else the solver gave up, and there is no solution: the bound still holds
    slowest: Floats  # (Q,) seconds of the slowest rank in each phase, as the program would have them
    room: Floats  # (Q,) of them, what is left to pieces that are not on every rank
    share: Floats  # (C,) how much of each choice is taken


def solve_relaxation(model: Relaxation, start: Prices, least: Floats | None = None) -> Relaxed | None:
    """Solve the program by columns and rows; ``None`` where it is proven to have no solution.

    Only bytes can leave it without one, since seconds may grow; the proof needs no solver.

    ``start`` says which choices the first round has; ``least`` are known seconds of some piece of the slowest rank
    per phase, shape (Q,).
    """
    if _exceeds_memory(model):
        return None
    scale = max(float(np.max(np.sum(model.total, axis=0))), 1e-30)
    master = Master(model, scale, np.zeros_like(model.weight) if least is None else least)
    master.add_columns(cheapest_choices(model, reduced_costs(model, start)))
    master.add_columns(cheapest_choices(model, np.sum(model.total_bytes, axis=1)))  # so that memory can be met
    best, best_value = start, dual_value(model, start, least)
    optimum: float | None = None
    for _ in range(_MAX_ROUNDS):
        optimum = master.solve()
        if optimum is None and master.extend_memory():
            for tier in range(len(model.cluster_bytes)):
                master.add_columns(cheapest_choices(model, model.total_bytes[:, tier]))
            optimum = master.solve()
        if optimum is None:
            break
        proposed = admissible(model, master.prices())
        value = dual_value(model, proposed, least)
        if value > best_value:
            best, best_value = proposed, value
        cost = reduced_costs(model, proposed)
        new = master.add_columns(cheapest_choices(model, cost))
        if not new or optimum - best_value <= _CLOSE * abs(optimum):
            new = master.add_broken_rows(cost)
        if not new or master.work > _MOST_WORK:
            break
    return Relaxed(
        prices=best,
        value_seconds=best_value,
        is_solved=optimum is not None and not master.exceeds_memory(),
        slowest=master.slowest(),
        room=master.room(),
        share=master.shares(),
    )


def _with_room(model: Relaxation, tables: Ints, room: Floats, cost: Floats) -> Ints:
    """Return of each of these tables its cheapest choice whose largest piece has room, or else the one nearest to it.

    ``room`` are seconds per phase, shape (Q,). Without these choices the slowest rank would have to take as long as
    the pieces that take part, and prices would lead to smaller ones table by table.
    """
    bounded = np.isfinite(room)
    part = np.max(model.big[:, bounded] / np.maximum(room[bounded], 1e-30), axis=1, initial=0.0)
    highest_cost = np.max(np.abs(cost)) + 1.0
    return cheapest_choices(model, np.where(part <= _MORE, cost, highest_cost * (1.0 + part)))[tables]


def _exceeds_memory(model: Relaxation) -> bool:
    """Whether the choices with the fewest bytes exceed all ranks together in some tier."""
    least = np.full((model.num_tables, model.cluster_bytes.shape[0]), np.inf)
    np.minimum.at(least, model.choice_table, model.total_bytes)
    return bool(np.any(np.sum(least, axis=0) > model.cluster_bytes * _MORE))


def cheapest_choices(model: Relaxation, cost: Floats) -> Ints:
    """Return the cheapest choice of every table."""
    first = np.searchsorted(model.choice_table, np.arange(model.num_tables))
    return first_least(cost, first, model.choice_table)
