"""The whole way from a problem to a plan. Read this first.

    problem -> options -> priced arrays -> partitioner -> assignment -> placement
            -> independent score and checks -> plan

Nothing leaves this module that :mod:`planner.verify` rejects, and no plan whose score from
its geometry differs from what the search believed.
"""

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cost_models.protocol import CostModel
from planner.bounds import lower_bound
from planner.domain.placement import Placement, TablePlacement
from planner.domain.plan import Assumption, Plan, PlanResult
from planner.domain.problem import Problem
from planner.enumerate import Options, enumerate_options
from planner.errors import SolverDefect
from planner.evaluate import objective_seconds, rank_loads
from planner.infeasible import Dead, memory_shortfalls, missing_options, stuck_modules, unpackable
from planner.memory import ledger_rules
from planner.modes import option_modes
from planner.partitioners.base import Incumbent, Partitioner, SolveLimits
from planner.priced import Assignment, Outcome, PricedOptions, Reason, Termination
from planner.pricing import price, prune, restrict
from planner.provenance import used_assumptions, versions
from planner.schemes.column_wise import narrowest_cuts
from planner.schemes.expand import expand
from planner.score import score
from planner.verify import verify

OnResult = Callable[[PlanResult], None]

_AGREEMENT = 1e-9  # relative difference allowed between the search's arithmetic and the score's
_WORTH_TELLING = 1e-3  # relative improvement of an incumbent that is streamed out
#: Relative gap that counts as none: CP-SAT rounds to ticks, bounds are lowered by float rounding.
_RESOLUTION = 1e-6
_CLOCK = "time"
_RUNNING = Termination(reason=Reason.FEASIBLE, detail="the search is still running")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What stays the same through one solve."""

    problem: Problem
    options: Options
    cost_model: CostModel
    limits: SolveLimits
    assumptions: tuple[Assumption, ...]
    began_seconds: float  # monotonic clock


def plan(
    problem: Problem,
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    assumptions: tuple[Assumption, ...] = (),
    on_result: OnResult | None = None,
) -> PlanResult:
    """Plan a problem.

    Parameters
    ----------
    problem, cost_model, partitioner, limits
        What to plan, how to price it, who searches, and when to stop.
    assumptions
        What the caller filled in; carried into the plan.
    on_result
        Called with every verified plan that improves on the one before, as it is found.

    Returns
    -------
    PlanResult
        The best plan with its bound, or the reason why there is none.

    Raises
    ------
    SolverDefect
        If a partitioner returns what the independent checks reject.
    cost_models.errors.CostModelError
        If the hardware lacks a number that the prices need.
    """
    began = time.monotonic()
    listed = _listed(problem, cost_model)
    if isinstance(listed, Dead):
        return _no_plan(listed)
    options, priced = listed
    run = Run(
        problem=problem,
        options=options,
        cost_model=cost_model,
        limits=limits,
        assumptions=assumptions,
        began_seconds=began,
    )
    return _search(run, priced, partitioner, lower_bound(prune(priced)), on_result)


def _listed(problem: Problem, cost_model: CostModel) -> tuple[Options, PricedOptions] | Dead:
    """List and price options; tables that fit nowhere get a second chance with the narrowest cuts."""
    listed = _list_once(problem, cost_model)
    if not isinstance(listed, Dead) or not listed.tables:
        return listed
    tables = tuple(
        narrowest_cuts(table) if index in listed.tables else table for index, table in enumerate(problem.tables)
    )
    finer = _list_once(replace(problem, tables=tables), cost_model)
    return listed if isinstance(finer, Dead) else finer


def _list_once(problem: Problem, cost_model: CostModel) -> tuple[Options, PricedOptions] | Dead:
    options = enumerate_options(problem)
    if options.refusals:
        return missing_options(problem, options)
    priced = price(problem, options, cost_model)
    return memory_shortfalls(problem, priced) or (options, priced)


def _search(
    run: Run, priced: PricedOptions, partitioner: Partitioner, bound: float, on_result: OnResult | None
) -> PlanResult:
    """Solve every mode within one limit and keep the best."""
    found = option_modes(run.problem, run.options)
    if found.stuck_modules:
        return _no_plan(stuck_modules(run.problem, found.stuck_modules))
    modes = [prune(restrict(priced, mask)) for mask in found.masks]
    modes = [mode for mode in modes if len(np.unique(mode.option_table)) == mode.num_tables]
    outcomes: list[tuple[PricedOptions, Outcome]] = []
    teller = _Teller(run, bound, on_result)
    for index, mode in enumerate(modes):
        left = run.limits.time_limit_seconds - (time.monotonic() - run.began_seconds)
        limits = replace(
            run.limits,
            time_limit_seconds=max(left / (len(modes) - index), 1e-3),
            work_limit_seconds=(run.limits.work_limit_seconds or run.limits.time_limit_seconds) / len(modes),
        )
        outcome = partitioner.solve(
            mode, limits, lower_bound_seconds=bound, on_incumbent=functools.partial(teller.tell, mode)
        )
        outcomes.append((mode, outcome))
    return _conclude(run, priced, outcomes, bound, exhaustive=found.exhaustive)


def _conclude(
    run: Run,
    priced: PricedOptions,
    outcomes: list[tuple[PricedOptions, Outcome]],
    bound: float,
    *,
    exhaustive: bool,
) -> PlanResult:
    """Pick the best outcome over the modes; what a search proved holds only if every mode has it."""
    solved = [(mode, found) for mode, found in outcomes if found.assignment is not None]
    proven = [found.bound_seconds for _, found in outcomes if found.termination.reason is not Reason.INFEASIBLE]
    bound = max(bound, min(proven, default=0.0) if exhaustive else 0.0)
    if not solved:
        if all(found.termination.reason is Reason.INFEASIBLE for _, found in outcomes):
            return _no_plan(unpackable(run.problem, priced, proven=exhaustive))
        detail = "; ".join(sorted({found.termination.detail for _, found in outcomes} - {""}))
        limit = next((found.termination.limit for _, found in outcomes if found.termination.limit), None)
        return PlanResult(
            plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit, detail=detail, lower_bound_seconds=bound
        )
    mode, best = min(solved, key=lambda pair: _value(*pair))
    finished = _finish(run, mode, best, bound)
    return PlanResult(
        plan=finished,
        reason=finished.reason,
        limit=finished.limit,
        detail=finished.detail,
        lower_bound_seconds=finished.lower_bound_seconds,
    )


def _finish(run: Run, mode: PricedOptions, outcome: Outcome, bound: float) -> Plan:
    """Name things again, score and verify from the geometry, and refuse what does not agree."""
    if outcome.assignment is None:
        raise SolverDefect("an outcome without an assignment cannot become a plan")
    placement = to_placement(run.problem, run.options, mode, outcome.assignment)
    issues = verify(run.problem, placement, rules=ledger_rules(run.cost_model.ledger))
    if issues:
        raise SolverDefect(f"{outcome.partitioner} returned an illegal plan: {issues[0].message}")
    evaluation = score(run.problem, placement, run.cost_model)
    believed, found = _value(mode, outcome), evaluation.objective_seconds
    if abs(believed - found) > _AGREEMENT * max(believed, found):
        raise SolverDefect(f"the search believed {believed} s, the plan's geometry costs {found} s")
    if bound > found * (1 + _AGREEMENT):
        raise SolverDefect(f"the lower bound {bound} s exceeds a plan of {found} s")
    bound = min(bound, found)
    gap = found / bound - 1 if bound > 0 else (0.0 if found == 0 else None)
    close_enough = gap is not None and gap <= run.limits.relative_gap + _RESOLUTION
    limit, detail = outcome.termination.limit, outcome.termination.detail
    if not close_enough and limit is None:
        limit = "resolution"  # proved in whole ticks, which is coarser than the gap asked for
    if close_enough:
        limit = limit if limit == _CLOCK else None  # a plan that the clock cut may not come out again
        detail = f"within relative_gap {run.limits.relative_gap:g} of the bound over the listed cuts"
    return Plan(
        placement=placement,
        evaluation=evaluation,
        lower_bound_seconds=bound,
        relative_gap=gap,
        reason=Reason.OPTIMAL if close_enough else Reason.FEASIBLE,
        limit=limit,
        detail=detail,
        partitioner=outcome.partitioner,
        solver_seconds=time.monotonic() - run.began_seconds,
        assumptions=used_assumptions(run.assumptions, evaluation.hardware_numbers),
        versions=versions(),
        seed=run.limits.seed,
    )


def to_placement(problem: Problem, options: Options, priced: PricedOptions, assignment: Assignment) -> Placement:
    """Turn indices back into tables and shards."""
    first, _ = priced.units_of_option
    placed = []
    for table, chosen in zip(problem.tables, assignment.chosen_option, strict=True):
        option = options.options[int(priced.option_source[chosen])]
        sites = assignment.unit_site[first[chosen] : first[chosen] + len(option.cut.pieces)]
        placed.append(
            TablePlacement(
                name=table.name,
                sharding_type=option.scheme,
                compute_kernel=option.kernel,
                shards=tuple(
                    shard
                    for piece, site in zip(option.cut.pieces, sites, strict=True)
                    for shard in expand(table, piece, int(site), problem.cluster, problem.cluster.device_tier)
                ),
                module_path=table.module_path,
                data_type=table.data_type.name,
                pooling=table.pooling,
            )
        )
    cluster = problem.cluster
    return Placement(world_size=cluster.world_size, ranks_per_host=cluster.ranks_per_host, tables=tuple(placed))


class _Teller:
    """Streams verified plans out of a running search."""

    def __init__(self, run: Run, bound: float, on_result: OnResult | None) -> None:
        self._run, self._bound, self._on_result = run, bound, on_result
        self._told = float("inf")

    def tell(self, mode: PricedOptions, found: Incumbent) -> None:
        if self._on_result is None or found.objective_seconds > self._told * (1 - _WORTH_TELLING):
            return
        self._told = found.objective_seconds
        outcome = Outcome(assignment=found.assignment, termination=_RUNNING, partitioner=found.partitioner)
        finished = _finish(self._run, mode, outcome, self._bound)
        self._on_result(
            PlanResult(
                plan=finished,
                reason=finished.reason,
                limit=finished.limit,
                detail=finished.detail,
                lower_bound_seconds=finished.lower_bound_seconds,
            )
        )


def _value(mode: PricedOptions, outcome: Outcome) -> float:
    if outcome.assignment is None:
        return float("inf")
    return objective_seconds(mode, rank_loads(mode, outcome.assignment).seconds)


def _no_plan(dead: Dead) -> PlanResult:
    """INFEASIBLE where it is proven; else nothing was found among the cuts that were listed."""
    unproven = "" if dead.proven else "; other column widths than the listed ones were not tried"
    return PlanResult(
        plan=None,
        reason=Reason.INFEASIBLE if dead.proven else Reason.NO_SOLUTION_FOUND,
        limit=None if dead.proven else "listed_cuts",
        detail=dead.shortfalls[0].message + unproven,
        lower_bound_seconds=0.0,
        shortfalls=dead.shortfalls,
    )
