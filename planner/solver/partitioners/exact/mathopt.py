"""mathopt: the choice among listed options as a mixed-integer linear program, through OR-Tools MathOpt.

Data: seconds ``c[j, r, p]`` of column j on rank r and bytes ``b[j, m]``, in floating point and scaled so
that most are near 1; capacities. Pinned pieces are constants ``k``.

Variables: the integer columns v[j] of :mod:`planner.solver.partitioners.exact.columns` (options chosen,
pieces per site); z[p] >= 0 the slowest rank's seconds in phase p; e[p] >= 0 of them exposed.

Model::

    minimise sum_p e[p]                        (max_rank_time: the only phase is the weighted sum)
    rows (1) to (7) of program_rows            what makes a plan valid; equal sites in one order
    (a) sum_{j on r} c[j, r, p] v[j] + k[r, p] <= z[p]     for every r, p
    (b) sum_{j on r} b[j, m] v[j] + k[r, m] <= capacity    for every r, m
    (c) e[p] >= z[p] - window[p]                           hidden under dense compute

HiGHS solves it, SCIP where HiGHS fails. Both decide in floating point: a row may be broken by
a tolerance of its scale. The relaxed problem that they solve in truth has at least the plans of
ours, so that its bound, lowered by what dual tolerances may add to it, is one over the listed options.
The plan is rounded to integers and checked: where it takes a few bytes too many, the model is
solved again with a little of all memory left free. Neither solver counts its work in a unit other than
nodes: a reproducible search is limited in nodes, by the size of the model, and by the clock
as a last resort, which the root node of a large model can reach.
"""

import datetime
import time
from dataclasses import replace

import numpy as np
from ortools.math_opt.python import mathopt

from planner.errors import SolverDefect
from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import NO_OPTIONS, Incumbent, SearchOptions, SolveLimits
from planner.solver.partitioners.exact.columns import num_placements
from planner.solver.partitioners.exact.listed_cuts import with_cuts_of
from planner.solver.partitioners.exact.mathopt_model import Model, build, hint, read
from planner.solver.partitioners.valid_start import keep_better_start, valid_or_none
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem

#: Placement variables beyond which the model is left to other partitioners: with about as many, the root
#: node alone takes most of 10 s.
MAX_PLACEMENTS = 2_500
#: Primal and dual feasibility tolerance that each solver is given; SCIP's relaxation takes no smaller one.
TOLERANCE = {mathopt.SolverType.HIGHS: 1e-9, mathopt.SolverType.GSCIP: 1e-7}
#: Part of the memory that a second solve leaves free, above what a row can be broken by.
SPARE_FRACTION = 1e-6
#: Branch-and-bound nodes times coefficients of the model per second of limit in reproducible mode: 10 s of
#: limit took HiGHS 7 s on DLRM-DCNv2 x 8 and 19 s on 2 x 8, where the root node counts for most.
NODE_ENTRIES_PER_SECOND = 100_000

SOLVERS = (mathopt.SolverType.HIGHS, mathopt.SolverType.GSCIP)


class MathOpt:
    """Exact on small instances; a second opinion on ``cp_sat`` by other methods."""

    name = "mathopt"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Build the model, hint the start, search until a limit or a proof; the relaxation's hint is not used.

        A valid start is returned where nothing better is found, whatever ended the search. The solvers
        report nothing while they run: ``on_incumbent`` is called once, with the plan found.
        """
        start = valid_or_none(priced, options.start)
        listed = priced if start is None else with_cuts_of(priced, start)
        outcome = _search(listed, limits, options.lower_bound_seconds, start)
        if outcome.assignment is not None and options.on_incumbent is not None:
            value = objective_of(priced, outcome.assignment)
            options.on_incumbent(
                Incumbent(assignment=outcome.assignment, objective_seconds=value, partitioner=self.name)
            )
        return keep_better_start(priced, outcome, start)


def _search(
    priced: SolverProblem, limits: SolveLimits, lower_bound_seconds: float, start: Assignment | None
) -> Outcome:
    deadline = time.monotonic() + limits.time_limit_seconds
    placements = num_placements(priced)
    if placements > MAX_PLACEMENTS:
        return Outcome.without_plan(
            MathOpt.name, "size", f"{placements} placement variables, at most {MAX_PLACEMENTS} are tried"
        )
    outcome, overflows = _run(build(priced, lower_bound_seconds, 0.0), limits, deadline, start)
    if not overflows:
        return outcome
    # A start may use the last byte: it is no hint here.
    again, _ = _run(build(priced, lower_bound_seconds, SPARE_FRACTION), limits, deadline, None)
    detail = "rounding asked for a little memory to be left free"
    if again.assignment is None:
        return Outcome.without_plan(MathOpt.name, again.limit or "iterations", detail, outcome.bound_seconds)
    return replace(
        again,
        reason=Reason.FEASIBLE,
        limit=again.limit,
        detail=detail,
        bound_seconds=min(outcome.bound_seconds, objective_of(priced, again.assignment)),
    )


def _run(model: Model, limits: SolveLimits, deadline: float, start: Assignment | None) -> tuple[Outcome, bool]:
    """Return what a solver found, and whether that is a plan that breaks a rule by rounding, and left out."""
    hints = [] if start is None else [hint(model, start)]
    failure: Exception | None = None
    for solver in SOLVERS:
        left_seconds = deadline - time.monotonic()
        if left_seconds <= 0:
            break
        try:
            result = mathopt.solve(
                model.problem,
                solver,
                params=_parameters(solver, model, limits, left_seconds),
                model_params=mathopt.ModelSolveParameters(solution_hints=hints),
            )
        except Exception as error:  # MathOpt turns every status into another error, most often AttributeError
            failure = error
            continue
        return _outcome(model, result, TOLERANCE[solver])
    if failure is not None:
        raise SolverDefect(f"MathOpt failed: {failure}") from failure
    return Outcome.without_plan(MathOpt.name, "time"), False


def _parameters(
    solver: mathopt.SolverType, model: Model, limits: SolveLimits, left_seconds: float
) -> mathopt.SolveParameters:
    parameters = mathopt.SolveParameters(
        time_limit=datetime.timedelta(seconds=left_seconds),
        enable_output=False,
        random_seed=limits.seed,
        relative_gap_tolerance=limits.relative_gap,
        absolute_gap_tolerance=0.0,
    )
    if limits.reproducible:
        work = limits.work_seconds
        parameters.node_limit = max(1, int(work * NODE_ENTRIES_PER_SECOND / max(model.num_entries, 1)))
    if solver == mathopt.SolverType.GSCIP:
        parameters.threads = 1  # HiGHS rejects the parameter
        parameters.gscip.real_params["numerics/feastol"] = TOLERANCE[solver]
        parameters.gscip.real_params["numerics/dualfeastol"] = TOLERANCE[solver]
    else:
        parameters.highs.string_options["parallel"] = "off"
        for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance", "mip_feasibility_tolerance"):
            parameters.highs.double_options[name] = TOLERANCE[solver]
    return parameters


def _outcome(model: Model, result: mathopt.SolveResult, tolerance: float) -> tuple[Outcome, bool]:
    reasons = mathopt.TerminationReason
    reason = {
        reasons.OPTIMAL: Reason.OPTIMAL,
        reasons.FEASIBLE: Reason.FEASIBLE,
        reasons.INFEASIBLE: Reason.INFEASIBLE,
        reasons.INFEASIBLE_OR_UNBOUNDED: Reason.INFEASIBLE,  # nothing is below 0
        reasons.NO_SOLUTION_FOUND: Reason.NO_SOLUTION_FOUND,
    }.get(result.termination.reason)
    if reason is None:
        raise SolverDefect(f"MathOpt ended with {result.termination.reason}: {result.termination.detail}")
    bound_seconds = _bound_seconds(model, result.termination.objective_bounds.dual_bound, tolerance)
    if reason is Reason.INFEASIBLE:
        proven = Outcome(assignment=None, reason=reason, detail="proved by branch and bound", partitioner=MathOpt.name)
        return proven, False
    limit = None
    if reason is not Reason.OPTIMAL:
        limit = "deterministic_time" if result.termination.limit == mathopt.Limit.NODE else "time"
    if reason is Reason.NO_SOLUTION_FOUND:
        return Outcome.without_plan(MathOpt.name, limit, bound_seconds=bound_seconds), False
    assignment = read(model, result.variable_values())
    if assignment is None or violations(model.priced, assignment):
        return Outcome.without_plan(MathOpt.name, limit, bound_seconds=bound_seconds), True
    outcome = Outcome(
        assignment=assignment,
        reason=reason,
        limit=limit,
        bound_seconds=min(bound_seconds, objective_of(model.priced, assignment)),
        partitioner=MathOpt.name,
    )
    return outcome, False


def _bound_seconds(model: Model, dual_bound: float, tolerance: float) -> float:
    """Lower a solver's bound by what its tolerances may have added.

    A reduced cost below 0 by the tolerance, times the most that its column can be, is objective that the
    relaxation could still lose; node bounds are compared to a relative 1e-6.
    """
    if not np.isfinite(dual_bound):
        return 0.0
    margin = tolerance * float(model.columns.upper.sum()) + 1e-6 * (1.0 + abs(dual_bound))
    return max(0.0, (dual_bound - margin) * model.scale_seconds)
