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

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from planner.evaluate import objective_seconds, rank_loads
from planner.partitioners.base import Incumbent, OnIncumbent, SolveLimits
from planner.priced import Assignment, Objective, Outcome, PricedOptions, Reason, Scope, Termination

Ints = NDArray[np.int64]

#: Ticks of the largest possible objective; a finer tick costs presolve time, a coarser one
#: loosens the bound by up to one tick per unit and phase.
TICKS = 2**27
#: Placement variables beyond which the model is left to other partitioners.
MAX_PLACEMENTS = 40_000
#: Deterministic work per second of limit in reproducible mode. One unit of CP-SAT's work took
#: 1.0-1.4 s of CPU on these models, so that the clock cuts first only where the machine is about
#: three times busier or slower.
WORK_PER_SECOND = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Handles of the model's variables."""

    option: list[cp_model.IntVar]
    site: dict[tuple[int, int], cp_model.IntVar]  # (unit, site)
    slowest: list[cp_model.IntVar]  # (P,)
    exposed: list[cp_model.IntVar]  # (P,)


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
        variables = _build(model, priced, ticks, tick_seconds, lower_bound_seconds)
        if start is not None:
            _hint(model, priced, variables, start, ticks, tick_seconds)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        # Presolve finds little in these models and spends most of the budget on them: without it
        # the same work gave a bound twice as high on DLRM-DCNv2 x 8 and a first plan on 2 x 8.
        solver.parameters.cp_model_presolve = False
        solver.parameters.random_seed = limits.seed
        solver.parameters.relative_gap_limit = limits.relative_gap
        solver.parameters.max_time_in_seconds = limits.time_limit_seconds
        if limits.reproducible:
            work = limits.work_limit_seconds or limits.time_limit_seconds
            solver.parameters.max_deterministic_time = work * WORK_PER_SECOND
        status = solver.solve(model, _Reporter(priced, variables, on_incumbent, self.name))
        return _outcome(priced, variables, solver, status, tick_seconds, limits)


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


def _build(
    model: cp_model.CpModel, priced: PricedOptions, ticks: Ints, tick_seconds: float, bound_seconds: float
) -> Variables:
    option = [model.new_bool_var(f"x{o}") for o in range(priced.num_options)]
    first, last = priced.options_of_table
    for table in range(priced.num_tables):  # (1)
        model.add_exactly_one(option[first[table] : last[table]])
    site: dict[tuple[int, int], cp_model.IntVar] = {}
    for unit in range(priced.num_units):  # (2)
        owner = option[priced.unit_option[unit]]
        sites = _sites(priced, unit)
        if sites is not None:
            for s in sites:
                site[unit, s] = model.new_bool_var(f"y{unit}_{s}")
            model.add(sum(site[unit, s] for s in sites) == owner)
    on_rank = _terms_of_rank(priced, option, site)
    slowest = _add_loads(model, priced, ticks, on_rank)  # (3)
    _add_memory(model, priced, on_rank)  # (4)
    exposed = _add_windows(model, priced, slowest, tick_seconds)  # (5)
    variables = Variables(option=option, site=site, slowest=slowest, exposed=exposed)
    _add_groups(model, priced, variables)  # (6)
    # The caller's bound in seconds exceeds the same plan's ticks by at most one per unit and phase.
    slack = int(np.max(np.bincount(priced.unit_option)) * priced.num_tables * max(1, ticks.shape[1]))
    floor = int(bound_seconds / tick_seconds) - slack
    if floor > 0:
        model.add(sum(exposed) >= floor)
    model.minimize(sum(exposed))
    return variables


def _sites(priced: PricedOptions, unit: int) -> list[int] | None:
    """Sites that a unit may use, ``None`` for one that goes everywhere."""
    allowed = priced.table_rank_allowed[priced.option_table[priced.unit_option[unit]]]
    fits = allowed & np.all(priced.unit_bytes[unit] <= priced.capacity_bytes, axis=1)
    if priced.unit_scope[unit] == Scope.RANK:
        return [int(r) for r in np.flatnonzero(fits)]
    if priced.unit_scope[unit] == Scope.HOST:
        return [int(h) for h in np.flatnonzero(fits.reshape(priced.num_hosts, -1).all(axis=1))]
    return None


Terms = list[tuple[int, cp_model.IntVar]]


def _terms_of_rank(
    priced: PricedOptions, option: list[cp_model.IntVar], site: dict[tuple[int, int], cp_model.IntVar]
) -> list[Terms]:
    """By rank: the units that may land on it, with the variable that says whether they do."""
    local = priced.num_ranks // priced.num_hosts
    on_rank: list[Terms] = [[] for _ in range(priced.num_ranks)]
    for (unit, s), variable in site.items():
        touched = [s] if priced.unit_scope[unit] == Scope.RANK else range(s * local, (s + 1) * local)
        for rank in touched:
            on_rank[rank].append((unit, variable))
    for unit in np.flatnonzero(priced.unit_scope == Scope.WORLD).tolist():
        for rank in range(priced.num_ranks):
            on_rank[rank].append((unit, option[priced.unit_option[unit]]))
    return on_rank


def _add_loads(
    model: cp_model.CpModel, priced: PricedOptions, ticks: Ints, on_rank: list[Terms]
) -> list[cp_model.IntVar]:
    most = _most_ticks(priced, ticks)
    slowest = [model.new_int_var(0, most, f"z{p}") for p in range(ticks.shape[1])]
    for rank in range(priced.num_ranks):
        for p, z in enumerate(slowest):
            terms = [(unit, v) for unit, v in on_rank[rank] if ticks[unit, p]]
            if terms:
                model.add(
                    cp_model.LinearExpr.weighted_sum([v for _, v in terms], [int(ticks[u, p]) for u, _ in terms]) <= z
                )
    return slowest


def _most_ticks(priced: PricedOptions, ticks: Ints) -> int:
    """What one rank could carry at most: every unit of every table's dearest option."""
    by_option = np.zeros(priced.num_options, dtype=np.int64)
    np.add.at(by_option, priced.unit_option, ticks.max(axis=1))
    by_table = np.zeros(priced.num_tables, dtype=np.int64)
    np.maximum.at(by_table, priced.option_table, by_option)
    return int(by_table.sum())


def _add_memory(model: cp_model.CpModel, priced: PricedOptions, on_rank: list[Terms]) -> None:
    bytes_ = np.ceil(priced.unit_bytes).astype(np.int64)
    for rank in range(priced.num_ranks):
        for tier in range(priced.num_tiers):
            terms = [(unit, v) for unit, v in on_rank[rank] if bytes_[unit, tier]]
            if terms:
                total = cp_model.LinearExpr.weighted_sum(
                    [v for _, v in terms], [int(bytes_[u, tier]) for u, _ in terms]
                )
                model.add(total <= int(priced.capacity_bytes[rank, tier]))


def _add_groups(model: cp_model.CpModel, priced: PricedOptions, variables: Variables) -> None:
    local = priced.num_ranks // priced.num_hosts
    for o in np.flatnonzero(priced.option_same_host):
        units = np.flatnonzero(priced.unit_option == o)
        for host in range(priced.num_hosts):
            here = [
                sum(v for (u, s), v in variables.site.items() if u == unit and s // local == host) for unit in units
            ]
            for other in here[1:]:
                model.add(here[0] == other)
    uses = {}
    for group in (*priced.same_rank, *priced.apart):
        for table in group:
            uses[int(table)] = _table_uses(model, priced, variables, int(table))
    for group in priced.same_rank:
        for rank in range(priced.num_ranks):
            for table in group[1:]:
                model.add(uses[int(group[0])][rank] == uses[int(table)][rank])
    for group in priced.apart:
        for rank in range(priced.num_ranks):
            model.add_at_most_one([uses[int(table)][rank] for table in group])


def _table_uses(
    model: cp_model.CpModel, priced: PricedOptions, variables: Variables, table: int
) -> list[cp_model.IntVar]:
    """By rank: a variable that is 1 exactly when the table has a shard there."""
    local = priced.num_ranks // priced.num_hosts
    uses = [model.new_bool_var(f"uses{table}_{rank}") for rank in range(priced.num_ranks)]
    causes: list[list[cp_model.IntVar]] = [[] for _ in range(priced.num_ranks)]
    for (unit, s), v in variables.site.items():
        if priced.option_table[priced.unit_option[unit]] == table:
            touched = [s] if priced.unit_scope[unit] == Scope.RANK else range(s * local, (s + 1) * local)
            for rank in touched:
                causes[rank].append(v)
    for unit in np.flatnonzero(priced.unit_scope == Scope.WORLD).tolist():
        if priced.option_table[priced.unit_option[unit]] == table:
            for rank in range(priced.num_ranks):
                causes[rank].append(variables.option[priced.unit_option[unit]])
    for rank in range(priced.num_ranks):
        model.add_max_equality(uses[rank], causes[rank] or [model.new_constant(0)])
    return uses


def _add_windows(
    model: cp_model.CpModel, priced: PricedOptions, slowest: list[cp_model.IntVar], tick_seconds: float
) -> list[cp_model.IntVar]:
    if priced.objective is Objective.MAX_RANK_TIME or not np.any(priced.phase_window_seconds):
        return slowest
    exposed = []
    for p, z in enumerate(slowest):
        window = _window_ticks(priced, p, tick_seconds)
        e = model.new_int_var(0, 2**40, f"e{p}")
        model.add(e >= z - window)
        exposed.append(e)
    return exposed


def _window_ticks(priced: PricedOptions, p: int, tick_seconds: float) -> int:
    """Hidden ticks of a phase, rounded up so that the bound stays one."""
    return int(np.ceil(min(priced.phase_window_seconds[p] / tick_seconds, float(2**40))))


def _hint(
    model: cp_model.CpModel,
    priced: PricedOptions,
    variables: Variables,
    start: Assignment,
    ticks: Ints,
    tick_seconds: float,
) -> None:
    """Hint a whole solution, loads included: a partial hint costs the solver a search of its own."""
    chosen = set(start.chosen_option.tolist())
    for o, v in enumerate(variables.option):
        model.add_hint(v, o in chosen)
    for (unit, s), v in variables.site.items():
        model.add_hint(v, bool(start.unit_site[unit] == s))
    in_ticks = replace(
        priced,
        unit_seconds=ticks.astype(np.float64),
        phase_weight=np.ones(ticks.shape[1]),
        phase_window_seconds=np.zeros(ticks.shape[1]),
    )
    slowest = rank_loads(in_ticks, start).seconds.max(axis=0)
    for p, v in enumerate(variables.slowest):
        model.add_hint(v, round(slowest[p]))
    if variables.exposed is not variables.slowest:
        for p, v in enumerate(variables.exposed):
            model.add_hint(v, max(0, round(slowest[p]) - _window_ticks(priced, p, tick_seconds)))


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
        assignment = _read(self._priced, self._variables, self.boolean_value)
        value = objective_seconds(self._priced, rank_loads(self._priced, assignment).seconds)
        self._on_incumbent(Incumbent(assignment=assignment, objective_seconds=value, partitioner=self._partitioner))


def _outcome(
    priced: PricedOptions,
    variables: Variables,
    solver: cp_model.CpSolver,
    status: cp_model.CpSolverStatus,
    tick_seconds: float,
    limits: SolveLimits,
) -> Outcome:
    if status == cp_model.INFEASIBLE:
        return Outcome(assignment=None, termination=Termination(reason=Reason.INFEASIBLE, detail="proved by CP-SAT"))
    if status == cp_model.MODEL_INVALID:
        raise RuntimeError("CP-SAT refused the model")
    bound = max(0.0, float(np.floor(solver.best_objective_bound)) * tick_seconds)
    timed_out = solver.wall_time >= limits.time_limit_seconds
    limit = "time" if timed_out or not limits.reproducible else "deterministic_time"
    if status == cp_model.UNKNOWN:
        return Outcome(
            assignment=None,
            termination=Termination(reason=Reason.NO_SOLUTION_FOUND, limit=limit),
            bound_seconds=bound,
        )
    optimal = status == cp_model.OPTIMAL
    return Outcome(
        assignment=_read(priced, variables, solver.boolean_value),
        termination=Termination(
            reason=Reason.OPTIMAL if optimal else Reason.FEASIBLE, limit=None if optimal else limit
        ),
        bound_seconds=bound,
        partitioner=CpSat.name,
    )


def _read(priced: PricedOptions, variables: Variables, value: Callable[[cp_model.IntVar], bool]) -> Assignment:
    chosen = np.array([o for o, v in enumerate(variables.option) if value(v)], dtype=np.int64)
    unit_site = np.full(priced.num_units, -1, dtype=np.int64)
    for (unit, s), v in variables.site.items():
        if value(v):
            unit_site[unit] = s
    everywhere = (priced.unit_scope == Scope.WORLD) & np.isin(priced.unit_option, chosen)
    unit_site[everywhere] = 0
    return Assignment(chosen_option=chosen, unit_site=unit_site)
