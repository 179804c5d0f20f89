"""cp_sat: the whole problem as one integer program, for small instances.

Data: seconds ``c[u, p]`` in whole ticks, rounded **down**; bytes ``b[u, m]`` exact; capacities.

Variables: x[o] option o is chosen; y[u, s] unit u is on site s (a rank or a host); z[p] the
slowest rank's ticks in phase p; e[p] of them exposed.

Model::

    minimise sum_p e[p]                        (max_rank_time: the only phase is the weighted sum)
    (1) sum_{o of t} x[o] = 1                          every table has one option
    (2) sum_s y[u, s] = x[option of u]                 chosen units are placed, once
    (3) sum of c over units on r, on r's host, or everywhere <= z[p]     for every r, p
    (4) the same sum of b <= capacity                  for every r, m
    (5) e[p] >= z[p] - v[p]                            v[p] is hidden under dense compute
    (6) pieces that must share a host do; same-rank groups share a rank; apart groups do not

Rounding down makes every plan look at most as slow as it is, so that the solver's bound in
ticks is a bound in seconds as it stands. The plan itself is evaluated in floating point by
the caller. One worker: with a fixed seed and a deterministic limit, equal inputs give equal
plans whatever else the machine does.
"""

import time

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from planner.errors import SolverDefect
from planner.evaluate import objective_seconds, rank_loads
from planner.partitioners.base import Incumbent, OnIncumbent, SolveLimits
from planner.partitioners.cp_sat_model import Variables, build, hint, read
from planner.priced import Assignment, Objective, Outcome, PricedOptions, Reason, Termination

#: Ticks of the largest possible objective; a finer tick costs presolve time, a coarser one
#: loosens the bound by up to one tick per unit and phase.
TICKS = 2**27
#: Placement variables beyond which the model is left to other partitioners: building one takes
#: about a second for this many, and CP-SAT improves little on greedy beyond.
MAX_PLACEMENTS = 12_000
#: Deterministic work per second of limit in reproducible mode. One unit of CP-SAT's work took
#: 1.0-1.4 s of CPU on these models, so that the clock cuts first only where the machine is about
#: three times busier or slower.
WORK_PER_SECOND = 0.3


class CpSat:
    """Exact on small instances; returns a bound and the best plan found everywhere else."""

    name = "cp_sat"

    def solve(
        self,
        priced: PricedOptions,
        limits: SolveLimits,
        *,
        lower_bound_seconds: float = 0.0,
        start: Assignment | None = None,
        on_incumbent: OnIncumbent | None = None,
    ) -> Outcome:
        """Build the model, hint ``start``, search until a limit or a proof."""
        deadline = time.monotonic() + limits.time_limit_seconds
        placements = num_placements(priced)
        if placements > MAX_PLACEMENTS:
            detail = f"{placements} placement variables, at most {MAX_PLACEMENTS} are tried"
            return Outcome(
                assignment=None,
                termination=Termination(reason=Reason.NO_SOLUTION_FOUND, limit="size", detail=detail),
            )
        seconds = _phase_seconds(priced)
        tick_seconds = _tick_seconds(priced, seconds)
        ticks = np.floor(seconds / tick_seconds).astype(np.int64)
        model = cp_model.CpModel()
        variables = build(model, priced, ticks, tick_seconds, lower_bound_seconds)
        if start is not None:
            hint(model, priced, variables, start, ticks, tick_seconds)
        left_seconds = deadline - time.monotonic()  # building a large model takes seconds of its own
        if left_seconds <= 0:
            detail = "the limit was over before the model was built"
            return Outcome(
                assignment=None,
                termination=Termination(reason=Reason.NO_SOLUTION_FOUND, limit="time", detail=detail),
            )
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.catch_sigint_signal = False  # an interrupt is for whoever runs the search
        # Presolve finds little in these models and spends most of the budget on them: without it
        # the same work gave a bound twice as high on DLRM-DCNv2 x 8 and a first plan on 2 x 8.
        solver.parameters.cp_model_presolve = False
        solver.parameters.random_seed = limits.seed
        solver.parameters.relative_gap_limit = limits.relative_gap
        solver.parameters.max_time_in_seconds = left_seconds
        if limits.reproducible:
            work = limits.work_limit_seconds or limits.time_limit_seconds
            solver.parameters.max_deterministic_time = work * WORK_PER_SECOND
        status = solver.solve(model, _Reporter(priced, variables, on_incumbent, self.name))
        by_the_clock = time.monotonic() >= deadline or not limits.reproducible
        return _outcome(
            priced, variables, solver, status, tick_seconds, "time" if by_the_clock else "deterministic_time"
        )


def num_placements(priced: PricedOptions) -> int:
    """Number of y variables of the model."""
    sites = np.array([priced.num_ranks, priced.num_hosts, 0])[priced.unit_scope]
    return int(sites.sum())


def _phase_seconds(priced: PricedOptions) -> NDArray[np.float64]:
    """Weighted seconds per unit and phase; one collapsed phase for max_rank_time."""
    weighted = priced.unit_seconds * priced.phase_weight
    return weighted.sum(axis=1, keepdims=True) if priced.objective is Objective.MAX_RANK_TIME else weighted


def _tick_seconds(priced: PricedOptions, seconds: NDArray[np.float64]) -> float:
    """A tick such that the sum of every table's dearest unit stays below TICKS."""
    dearest = np.zeros(priced.num_tables)
    np.maximum.at(dearest, priced.option_table[priced.unit_option], seconds.sum(axis=1))
    return max(float(dearest.sum()), 1e-12) / TICKS


class _Reporter(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]  # ortools is untyped
    """Streams every plan that the solver finds."""

    def __init__(
        self, priced: PricedOptions, variables: Variables, on_incumbent: OnIncumbent | None, partitioner: str
    ) -> None:
        super().__init__()
        self._priced, self._variables = priced, variables
        self._on_incumbent, self._partitioner = on_incumbent, partitioner

    def on_solution_callback(self) -> None:
        """Called by the solver with each better plan."""
        if self._on_incumbent is None:
            return
        assignment = read(self._priced, self._variables, self.boolean_value)
        value = objective_seconds(self._priced, rank_loads(self._priced, assignment).seconds)
        self._on_incumbent(Incumbent(assignment=assignment, objective_seconds=value, partitioner=self._partitioner))


def _outcome(
    priced: PricedOptions,
    variables: Variables,
    solver: cp_model.CpSolver,
    status: cp_model.CpSolverStatus,
    tick_seconds: float,
    limit: str,
) -> Outcome:
    if status == cp_model.INFEASIBLE:
        return Outcome(assignment=None, termination=Termination(reason=Reason.INFEASIBLE, detail="proved by CP-SAT"))
    if status == cp_model.MODEL_INVALID:
        raise SolverDefect("CP-SAT refused the model")
    bound = max(0.0, float(np.floor(solver.best_objective_bound)) * tick_seconds)
    if status == cp_model.UNKNOWN:
        return Outcome(
            assignment=None,
            termination=Termination(reason=Reason.NO_SOLUTION_FOUND, limit=limit),
            bound_seconds=bound,
        )
    optimal = status == cp_model.OPTIMAL
    return Outcome(
        assignment=read(priced, variables, solver.boolean_value),
        termination=Termination(
            reason=Reason.OPTIMAL if optimal else Reason.FEASIBLE, limit=None if optimal else limit
        ),
        bound_seconds=bound,
        partitioner=CpSat.name,
    )
