"""cp_sat: the choice among listed options as one integer program, for small instances.

Data: seconds ``c[j, r, p]`` of column j on rank r in whole ticks, rounded **down**; bytes
``b[j, m]``; capacities. Ranks of one speed share their ticks; pinned pieces are constants ``k``.

Variables: the columns v[j] of :mod:`planner.solver.partitioners.exact.columns` (options chosen, pieces per
site); z[p] the slowest rank's ticks in phase p; e[p] of them exposed.

Model::

    minimise sum_p e[p]                        (max_rank_time: the only phase is the weighted sum)
    rows (1) to (7) of program_rows            what makes a plan valid; equal sites in one order
    (a) sum_{j on r} c[j, r, p] v[j] + k[r, p] <= z[p]     for every r, p
    (b) sum_{j on r} b[j, m] v[j] + k[r, m] <= capacity    for every r, m
    (c) e[p] >= z[p] - window[p]                           hidden under dense compute, rounded up
    (d) sum_{j on r} u[j, k] v[j] + k[r, k] <= sum_p x[p] + rest    for every r and slower tier k

(d) holds plans to their own step, if the problem asks for that: u are ticks for which a column keeps a tier busy,
rounded up, and x[p] = max(max_r sum_{j on r} c[j, r, p] v[j] - window[p], 0) exactly.

Rounding down makes every plan look at most as slow as it is, so that the solver's bound in
ticks is a bound in seconds as it stands, over the listed options. A fraction of a byte is rounded
against the plan. The plan itself is evaluated in floating point by the caller. One worker: with
a fixed seed and a deterministic limit, equal inputs give equal plans whatever else the machine does.

A plan that is proven in ticks may be further from the bound in seconds than asked for, by up to one tick per piece
and phase. It is proven once more in fine ticks then, from that plan.
"""

import time
from dataclasses import replace

import numpy as np
from ortools.sat.python import cp_model

from planner.errors import SolverDefect
from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import NO_OPTIONS, Incumbent, OnIncumbent, SearchOptions, SolveLimits
from planner.solver.partitioners.exact.columns import num_placements
from planner.solver.partitioners.exact.cp_sat_model import Model, build, hint, read
from planner.solver.partitioners.exact.listed_cuts import with_cuts_of
from planner.solver.partitioners.valid_start import keep_better_start, valid_or_none
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem

#: Ticks of the dearest piece of every table and all pins together. A coarser tick loosens the bound, by up to
#: one tick per piece and phase; with a finer one (2**27) the same work proved fewer instances.
TICKS = 2**24
#: For the second proof: one tick per piece and phase of a thousand is far below a millionth of the objective.
FINE_TICKS = 2**36
#: With (d), whose maxima took presolve 12 GB at 2**24 ticks, and 0.2 GB with these.
OWN_STEP_TICKS = 2**20
#: Placement variables beyond which the model is left to other partitioners: building one takes
#: about a second for this many, and CP-SAT improves little on greedy beyond.
MAX_PLACEMENTS = 12_000
#: Deterministic work per second of limit in reproducible mode. One unit of CP-SAT's work took
#: 1.3-2.1 s of CPU on these models, so that the clock ends a search first only where the machine is
#: busy or slow.
WORK_PER_SECOND = 0.3
#: Part of what is left that the solver may take to stop: it looks at the clock between two programs (3% seen).
_STOPPING = 0.05


class CpSat:
    """Exact on small instances; returns a bound and the best plan found everywhere else."""

    name = "cp_sat"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Build the model, hint the start, search until a limit or a proof; the relaxation's hint is not used.

        A valid start is returned where nothing better is found, whatever ended the search.
        """
        start = valid_or_none(priced, options.start)
        listed = priced if start is None else with_cuts_of(priced, start)
        return keep_better_start(priced, self._search(listed, limits, replace(options, start=start)), start)

    def _search(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions) -> Outcome:
        placements = num_placements(priced)
        if placements > MAX_PLACEMENTS:
            return Outcome.without_plan(
                CpSat.name, "size", f"{placements} placement variables, at most {MAX_PLACEMENTS} are tried"
            )
        budget = _Budget(limits)
        if priced.own_step is not None:
            return _run(priced, OWN_STEP_TICKS, budget, options, dives=False)
        outcome = _run(priced, TICKS, budget, options, dives=options.start is not None)
        if not _is_coarse(priced, outcome, limits):
            return outcome
        # Dives, which look for better plans, took ten times as long where there is none.
        proven = SearchOptions(
            lower_bound_seconds=outcome.bound_seconds,
            start=outcome.assignment,
            on_incumbent=_report_if_better(priced, outcome.assignment, options.on_incumbent),
        )
        finer = _run(priced, FINE_TICKS, budget, proven, dives=False)
        # What ended the second run ends the search: where it was a limit, another run may come further.
        bound_seconds = max(outcome.bound_seconds, finer.bound_seconds)
        better = keep_better_start(priced, finer, outcome.assignment)
        found_at = better.found_at_seconds or outcome.found_at_seconds  # the first run's plan, if the second has none
        return replace(better, bound_seconds=bound_seconds, found_at_seconds=found_at)


class _Budget:
    """What is left of the limits of a search that runs the solver more than once."""

    def __init__(self, limits: SolveLimits) -> None:
        self.limits = limits
        self._deadline = time.monotonic() + limits.time_limit_seconds
        self._work_seconds = limits.work_seconds

    @property
    def left_seconds(self) -> float:
        """Seconds until the limit, by the clock; negative after it."""
        return self._deadline - time.monotonic()

    @property
    def left_work(self) -> float:
        """CP-SAT's deterministic work that may still be done."""
        return max(0.0, self._work_seconds * WORK_PER_SECOND)

    def spend(self, work: float) -> None:
        """Count work of the solver."""
        self._work_seconds -= work / WORK_PER_SECOND


def _is_coarse(priced: SolverProblem, outcome: Outcome, limits: SolveLimits) -> bool:
    """Whether a plan is proven, but in ticks that are too coarse for the gap that is asked for."""
    if outcome.reason is not Reason.OPTIMAL or outcome.assignment is None:
        return False
    return objective_of(priced, outcome.assignment) > outcome.bound_seconds * (1 + limits.ending_gap)


def _report_if_better(
    priced: SolverProblem, plan: Assignment | None, on_incumbent: OnIncumbent | None
) -> OnIncumbent | None:
    """Return what passes on only what is better than a plan that was reported."""
    if plan is None or on_incumbent is None:
        return on_incumbent
    seconds = objective_of(priced, plan)
    return lambda found: on_incumbent(found) if found.objective_seconds < seconds else None


def _run(priced: SolverProblem, num_ticks: int, budget: _Budget, options: SearchOptions, *, dives: bool) -> Outcome:
    """Build the model and search until a limit or a proof."""
    limits = budget.limits
    model = build(priced, num_ticks, options.lower_bound_seconds)
    if options.start is not None:
        hint(model, options.start)
    left_seconds = budget.left_seconds  # building a large model takes seconds of its own
    if left_seconds <= 0:
        return Outcome.without_plan(CpSat.name, "time", "the limit was over before the model was built")
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False  # an interrupt is for the caller of the search
    # Cuts of the maxima of (d) cost a hundred times the work of the search.
    solver.parameters.linearization_level = 2 if priced.own_step is None else 1
    if dives:
        # Diving along the relaxation proved parts of plans with 8 tables on 16 ranks in half the time of
        # the default search. Presolve finds little in these models and costs as much again. Without
        # a start, dives can take very long to their first good plan.
        solver.parameters.search_branching = cp_model.LP_SEARCH
        solver.parameters.cp_model_presolve = False
    solver.parameters.random_seed = limits.seed
    solver.parameters.relative_gap_limit = limits.relative_gap
    solver.parameters.max_time_in_seconds = left_seconds * (1 - _STOPPING)
    if limits.reproducible:
        solver.parameters.max_deterministic_time = budget.left_work
    reporter = _Reporter(model, options.on_incumbent)
    status = solver.solve(model.proto, reporter)
    budget.spend(solver.response_proto.deterministic_time)
    by_the_clock = budget.left_seconds <= 0 or not limits.reproducible
    bound_seconds = max(0.0, float(np.floor(solver.best_objective_bound)) * model.ticks.tick_seconds)
    outcome = _outcome(status, reporter.best, bound_seconds, "time" if by_the_clock else "deterministic_time")
    return replace(outcome, found_at_seconds=reporter.found_at_seconds)


class _Reporter(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]  # ortools is untyped
    """Keeps the best plan in seconds, where the solver compares ticks, and streams every better one."""

    def __init__(self, model: Model, on_incumbent: OnIncumbent | None) -> None:
        super().__init__()
        self._model, self._on_incumbent = model, on_incumbent
        self.best: Incumbent | None = None
        self.found_at_seconds: float | None = None

    def on_solution_callback(self) -> None:
        """Called by the solver with each better plan."""
        assignment = read(self._model, self.value)
        value = objective_of(self._model.priced, assignment)
        if self.best is None or value < self.best.objective_seconds:
            self.best = Incumbent(assignment=assignment, objective_seconds=value, partitioner=CpSat.name)
            self.found_at_seconds = time.monotonic()
            if self._on_incumbent is not None:
                self._on_incumbent(self.best)


def _outcome(status: cp_model.CpSolverStatus, best: Incumbent | None, bound_seconds: float, limit: str) -> Outcome:
    if status == cp_model.INFEASIBLE:
        return Outcome(assignment=None, reason=Reason.INFEASIBLE, detail="proved by CP-SAT", partitioner=CpSat.name)
    if status == cp_model.MODEL_INVALID:
        raise SolverDefect("CP-SAT refused the model")
    if best is None:
        return Outcome.without_plan(CpSat.name, limit, bound_seconds=bound_seconds)
    optimal = status == cp_model.OPTIMAL
    return Outcome(
        assignment=best.assignment,
        reason=Reason.OPTIMAL if optimal else Reason.FEASIBLE,
        limit=None if optimal else limit,
        bound_seconds=bound_seconds,
        partitioner=CpSat.name,
    )
