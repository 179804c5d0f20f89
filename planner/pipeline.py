"""The whole way from a problem to a plan. Read this first.

    problem -> options -> priced arrays -> partitioner -> assignment -> placement
            -> independent score and checks -> plan

Nothing leaves this module that :mod:`planner.verify` rejects, and no plan whose score from
its geometry differs from what the search believed.
"""

import functools
import math
import time
from dataclasses import dataclass, replace

import numpy as np

from cost_models.protocol import CostModel
from planner.attempts import Attempts, attempt_limits
from planner.bounds.chain import Bound, lower_bound, quick_bound
from planner.busy_tiers import overloaded, shortest_step, shortfall_of, with_limits
from planner.cuts import lists_all_cuts
from planner.diagnosis import diagnose
from planner.domain.movement import PreviousPlan
from planner.domain.plan import Assumption, PlanResult, Shortfall
from planner.domain.problem import Problem
from planner.evaluate import objective_of
from planner.finishing import OnResult, Run, Teller, finish, result_of, within_bound
from planner.infeasible import Dead, stuck_modules, unpackable
from planner.listing import is_short_of_memory, list_and_price
from planner.modes import family_modes
from planner.moving import moved_bytes
from planner.no_collection import no_collection
from planner.offers import spilled_kernels, with_host_memory, with_kernels_of
from planner.partitioners.base import Partitioner, SolveLimits
from planner.partitioners.greedy import Greedy
from planner.partitioners.kept_start import may_move
from planner.partitioners.resume import resume
from planner.previous import (
    begin_with,
    finer_where_cut_finer,
    stay_of,
    with_homes,
    with_move_price,
)
from planner.priced import Outcome, PricedOptions, Reason
from planner.pricing import prune, restrict
from planner.promotion import promoted
from planner.serving import REQUEST_RATE, within_rate
from planner.units import format_bytes

BYTES_MOVED = "max_moved_bytes"  # a limit of the user's, and the resource that it leaves short
_OF_THE_USER = (BYTES_MOVED, REQUEST_RATE)  # no more memory and no wider constraint mends these
# Parts of the time limit that a reproducible solve spends, counted in work.
_FIRST = 0.1  # at most, on the first plan
_BOUNDED = 0.25  # on the bound
_SEARCHED = 0.75  # on the search
#: Nominal work of one box, by the number of options: c n^1.6, fitted to measured bounds of 2,000 to 40,000 options.
_BOX_SECONDS, _BOX_POWER = 2e-7, 1.6
_MOST_BOXES = 200
_NEARLY = 0.98  # of the time limit: what ends then may have been cut by the clock
_LEAST_LEFT = 0.25  # of the time limit, for every search after the first
_STEPS = (1.0, 1.5, 2.0, 4.0, 8.0)  # times the shortest step, that tiers may be busy for


@no_collection()
def plan(
    problem: Problem,
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    assumptions: tuple[Assumption, ...] = (),
    previous: PreviousPlan | None = None,
    on_result: OnResult | None = None,
) -> PlanResult:
    """Plan a problem.

    Parameters
    ----------
    problem, cost_model, partitioner, limits
        What to plan, how to price it, who searches, and when to stop.
    assumptions
        What the caller filled in; carried into the plan.
    previous
        A plan that runs already: the answer moves away from it only where that pays, and says what moves.
        The bound and the gap remain those of a free choice.
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
    if previous is not None:
        problem = with_kernels_of(finer_where_cut_finer(problem, previous), previous.placement)
    asked = _Asked(
        cost_model=cost_model,
        partitioner=partitioner,
        limits=limits,
        assumptions=assumptions,
        previous=previous,
        on_result=on_result,
        began_seconds=began,
    )
    result = _solve(problem, asked)
    wider = None if result.plan is not None else with_host_memory(problem)
    if wider is None or result.limit in _OF_THE_USER or not is_short_of_memory(problem, cost_model):
        return _diagnosed(result, problem, cost_model, limits)
    if any(table.constraints.compute_kernels is None for table in problem.tables):
        again = replace(asked, limits=_extended(limits, began), assumptions=(*assumptions, _spilled(problem)))
        result = _solve(wider, again)
    return _diagnosed(result, wider, cost_model, limits)


def _extended(limits: SolveLimits, began_seconds: float) -> SolveLimits:
    """Return limits that leave another search a part of the time, counted from the beginning of the first."""
    needed = time.monotonic() - began_seconds + _LEAST_LEFT * limits.time_limit_seconds
    return replace(
        limits,
        time_limit_seconds=max(limits.time_limit_seconds, needed),
        work_limit_seconds=limits.work_limit_seconds or limits.time_limit_seconds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What the caller of ``plan`` asked for, without the problem."""

    cost_model: CostModel
    partitioner: Partitioner
    limits: SolveLimits
    assumptions: tuple[Assumption, ...]
    previous: PreviousPlan | None
    on_result: OnResult | None
    began_seconds: float  # monotonic clock


def _spilled(problem: Problem) -> Assumption:
    """Say that host memory was offered, and why."""
    prefetches = problem.pipeline == "train_prefetch_sparse_dist"
    ahead = "" if prefetches else "; model.pipeline train_prefetch_sparse_dist would fill caches under dense compute"
    labels = " and ".join(kernel.label for kernel in spilled_kernels())
    return Assumption(
        subject="constraints.compute_kernels",
        value=f"the tables do not fit into the accelerators' memory: {labels} were considered too{ahead}",
        evidence="note",
    )


def _solve(problem: Problem, asked: _Asked) -> PlanResult:
    """Plan a problem with the kernels that it offers."""
    cost_model, previous = asked.cost_model, asked.previous
    listed = list_and_price(problem, cost_model)
    if isinstance(listed, Dead):
        return _no_plan(listed)
    families, priced = listed
    stay = None
    if previous is not None:
        stay = stay_of(problem, families, previous, cost_model)
        priced = with_move_price(priced, problem, families, stay)
    run = Run(
        problem=problem,
        families=families,
        cost_model=cost_model,
        limits=asked.limits,
        assumptions=asked.assumptions,
        began_seconds=asked.began_seconds,
        stay=stay,
    )
    result = within_rate(_search(run, priced, asked.partitioner, asked.on_result))
    if result.plan is None or not any(overloaded(result.plan.evaluation)):
        return result
    shortest = shortest_step(problem, result.lower_bound_seconds)
    for times in _STEPS:
        limited = with_limits(priced, problem, families, step_seconds=times * shortest)
        run = replace(run, limits=_extended(asked.limits, asked.began_seconds))
        found = _search(run, limited, asked.partitioner, asked.on_result)
        if found.plan is not None and not any(overloaded(found.plan.evaluation)):
            return result_of(within_bound(found.plan, result.lower_bound_seconds, asked.limits.relative_gap))
    shortfall = shortfall_of(result.plan.evaluation)
    return PlanResult(
        plan=None,
        reason=Reason.NO_SOLUTION_FOUND,
        limit="tier_bandwidth",
        detail=shortfall.message,
        lower_bound_seconds=result.lower_bound_seconds,
        shortfalls=(shortfall,),
    )


def _diagnosed(result: PlanResult, problem: Problem, cost_model: CostModel, limits: SolveLimits) -> PlanResult:
    """Say what is in conflict and what would help, where there is no plan."""
    if result.plan is not None or result.limit in _OF_THE_USER:
        return result
    within = attempt_limits(limits, len(problem.tables))
    attempts = Attempts(cost_model, within)
    is_proven = result.reason == Reason.INFEASIBLE
    return replace(result, diagnosis=diagnose(problem, result.shortfalls, attempts, is_proven=is_proven))


@dataclass(slots=True, kw_only=True)
class _Mode:
    """One mode while it is searched."""

    priced: PricedOptions
    outcome: Outcome  # the best so far
    bound: Bound


def _search(run: Run, priced: PricedOptions, partitioner: Partitioner, on_result: OnResult | None) -> PlanResult:
    """Find a first plan of every mode, bound them, and search those that may hold a better plan."""
    found = family_modes(run.problem, run.families)
    if found.stuck_modules:
        return _no_plan(stuck_modules(run.problem, found.stuck_modules))
    legal = [prune(restrict(priced, mask)) for mask in found.masks]
    legal = [mode for mode in legal if len(np.unique(mode.family_table)) == mode.num_tables]
    teller = Teller(run, quick_bound(priced), on_result)
    modes = _hesitant(run, [_first(run, mode, teller) for mode in legal])
    known = min((_value(mode) for mode in modes), default=np.inf)
    for mode in modes:
        boxes = max(_max_boxes(run, mode.priced) // len(modes), 1)
        mode.bound = lower_bound(mode.priced, max_boxes=boxes, known_seconds=known)
    teller.bound = max(teller.bound, _bound_of_all(run, priced, modes, exhaustive=found.exhaustive))
    open_modes = [mode for mode in modes if mode.bound.seconds * (1 + run.limits.relative_gap) < known]
    for index, mode in enumerate(open_modes):
        left = run.limits.time_limit_seconds - (time.monotonic() - run.began_seconds)
        limits = replace(
            run.limits,
            time_limit_seconds=max(left / (len(open_modes) - index), 1e-3),
            work_limit_seconds=_SEARCHED * _work_seconds(run) / len(open_modes),
        )
        mode.outcome = _told_by_the_clock(
            run,
            mode,
            partitioner.solve(
                mode.priced,
                limits,
                lower_bound_seconds=max(mode.bound.seconds, teller.bound),
                start=mode.outcome.assignment,
                guide=mode.bound.guide,
                on_incumbent=functools.partial(teller.tell, mode.priced),
            ),
        )
    return _conclude(run, priced, modes, teller.bound, exhaustive=found.exhaustive)


def _first(run: Run, priced: PricedOptions, teller: Teller) -> _Mode:
    """Construct a plan of a mode before anything that takes time: from the plan that runs already, where one does."""
    limits = replace(run.limits, work_limit_seconds=_FIRST * _work_seconds(run))
    tell = functools.partial(teller.tell, priced)
    outcome = None
    if run.stay is not None:
        before = begin_with(priced, run.stay)
        priced = with_homes(priced, before)
        outcome = resume(priced, before, limits, on_incumbent=tell)
    if outcome is None or outcome.assignment is None:
        outcome = Greedy(first_only=True).solve(priced, limits, on_incumbent=tell)
    return _Mode(priced=priced, outcome=outcome, bound=Bound(seconds=0.0, guide=None))


def _hesitant(run: Run, modes: list[_Mode]) -> list[_Mode]:
    """Charge whatever moves at all, where the previous plan had to be completed and still moves nothing."""
    if run.stay is None or run.stay.seconds is not None:
        return modes
    moves = [_moved_bytes(mode) for mode in modes]
    least = min((_value(mode) for mode, moved in zip(modes, moves, strict=True) if moved == 0), default=0.0)
    for mode in modes:
        assert mode.priced.move is not None
        move = replace(mode.priced.move, any_seconds=run.stay.previous.min_relative_gain * least)
        mode.priced = replace(mode.priced, move=move)
    return modes


def _moved_bytes(mode: _Mode) -> float:
    return np.inf if mode.outcome.assignment is None else moved_bytes(mode.priced, mode.outcome.assignment)


def _told_by_the_clock(run: Run, mode: _Mode, found: Outcome) -> Outcome:
    """Keep the better plan, and say so where the clock may have cut the search: it may not come out again."""
    best = _better(mode, found)
    late = time.monotonic() - run.began_seconds >= _NEARLY * run.limits.time_limit_seconds
    proven = best.termination.reason in (Reason.OPTIMAL, Reason.INFEASIBLE)
    if proven or not late or best.termination.limit == "cancelled":
        return best
    return replace(best, termination=replace(best.termination, limit="time"))


def _better(mode: _Mode, found: Outcome) -> Outcome:
    """Keep the first plan where a search has none or a worse one."""
    if found.assignment is not None and not may_move(mode.priced, found.assignment):
        found = replace(found, assignment=None, termination=replace(found.termination, reason=Reason.NO_SOLUTION_FOUND))
    if found.assignment is None and mode.outcome.assignment is not None:
        return replace(mode.outcome, termination=replace(mode.outcome.termination, limit=found.termination.limit))
    return found


def _work_seconds(run: Run) -> float:
    """Return what a reproducible solve may spend."""
    return run.limits.work_limit_seconds or run.limits.time_limit_seconds


def _max_boxes(run: Run, priced: PricedOptions) -> int:
    """Return how many boxes the bound may look at: by size and work, not by the clock, so that plans repeat."""
    boxes = _BOUNDED * _work_seconds(run) / (_BOX_SECONDS * priced.num_options**_BOX_POWER)
    return int(np.clip(boxes, 1, _MOST_BOXES))


def _bound_of_all(run: Run, priced: PricedOptions, modes: list[_Mode], *, exhaustive: bool) -> float:
    """Return a bound on all plans: where modes leave some out, one over all families at once."""
    if exhaustive or not modes:
        return min((mode.bound.seconds for mode in modes), default=0.0)
    pruned = prune(priced)
    return lower_bound(pruned, max_boxes=_max_boxes(run, pruned)).seconds


def _conclude(run: Run, priced: PricedOptions, modes: list[_Mode], bound: float, *, exhaustive: bool) -> PlanResult:
    """Pick the best outcome over the modes; what a search proved holds only if every mode has it and lists all cuts."""
    solved = [mode for mode in modes if mode.outcome.assignment is not None]
    complete = exhaustive and all(lists_all_cuts(mode.priced) for mode in modes)
    if complete:
        feasible = [mode for mode in modes if mode.outcome.termination.reason is not Reason.INFEASIBLE]
        proven = min((max(mode.bound.seconds, mode.outcome.bound_seconds) for mode in feasible), default=0.0)
        bound = max(bound, proven)
    if not solved:
        outcomes = [mode.outcome for mode in modes]
        if all(found.termination.reason is Reason.INFEASIBLE for found in outcomes):
            return _no_plan(unpackable(run.problem, priced, proven=exhaustive))
        if (over := _over_budget(run, modes, bound)) is not None:
            return over
        detail = "; ".join(sorted({found.termination.detail for found in outcomes} - {""}))
        limit = next((found.termination.limit for found in outcomes if found.termination.limit), None)
        return PlanResult(
            plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit, detail=detail, lower_bound_seconds=bound
        )
    best = min(solved, key=_value)
    assert best.outcome.assignment is not None
    outcome = replace(best.outcome, assignment=promoted(best.priced, best.outcome.assignment))
    return result_of(finish(run, best.priced, outcome, bound))


def _over_budget(run: Run, modes: list[_Mode], bound: float) -> PlanResult | None:
    """Say how many bytes a plan moves that was found without the limit, where more move than may."""
    most = None if run.stay is None else run.stay.previous.max_moved_bytes
    least = np.inf
    for mode in modes:
        if run.stay is not None and mode.priced.move is not None:
            free = replace(mode.priced, move=replace(mode.priced.move, max_bytes=np.inf))
            found = resume(free, begin_with(free, run.stay), run.limits).assignment
            least = min(least, np.inf if found is None else moved_bytes(free, found))
    if most is None or not most < least < np.inf:
        return None
    message = f"{format_bytes(least)} move to the plan found that moves least, and at most {format_bytes(most)} may"
    shortfall = Shortfall(
        resource=BYTES_MOVED,
        required_bytes=least,
        available_bytes=most,
        scope="cluster",
        message=message,
        hint=f"raise previous_plan.max_moved_bytes to {math.ceil(least)}, or leave it out",
    )
    return PlanResult(
        plan=None,
        reason=Reason.NO_SOLUTION_FOUND,
        limit=BYTES_MOVED,
        detail=message,
        lower_bound_seconds=bound,
        shortfalls=(shortfall,),
    )


def _value(mode: _Mode) -> float:
    if mode.outcome.assignment is None:
        return float("inf")
    return objective_of(mode.priced, mode.outcome.assignment)


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
