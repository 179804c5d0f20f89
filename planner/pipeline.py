"""The whole way from a problem to a plan. Read this first.

    problem -> options -> priced arrays -> partitioner -> assignment -> placement
            -> independent score and checks -> plan

Nothing leaves this module that :mod:`planner.verification.verify` rejects, and no plan whose score from
its geometry differs from what the search believed.
"""

import functools
import time
from dataclasses import replace
from typing import TypedDict

from cost_models.protocol import AssignmentModel, CostModel
from planner.diagnosis.diagnose import diagnose
from planner.diagnosis.hints import with_solved_hints
from planner.diagnosis.trial_solves import Attempts, attempt_limits
from planner.domain.expect import expect
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Assumption, PlanResult
from planner.domain.problem.problem import PREFETCH_PIPELINE, Problem
from planner.options.host_memory_fallback import (
    allow_host_memory,
    explain_missing_host_memory,
    spilled_labels,
    with_kernels_of,
)
from planner.orchestration.answers.conclude import BYTES_MOVED, conclude
from planner.orchestration.answers.finish_plan import SolveContext, result_of, within_bound
from planner.orchestration.answers.incumbents import IncumbentReporter, OnResult
from planner.orchestration.explore import explore
from planner.orchestration.goals.pursue import limits_of_first, pursue_goals
from planner.orchestration.limits.own_time import StepsToTry, broken_limits, with_limits
from planner.orchestration.limits.resident import with_resident_bytes
from planner.orchestration.limits.shortfalls import Infeasibility, no_plan
from planner.orchestration.limits.stash_rooms import solve_with_stash
from planner.orchestration.limits.tier_bandwidth import overloaded, shortest_step, tier_too_slow
from planner.orchestration.list_options import is_short_of_memory, list_and_price
from planner.orchestration.placement.renamed import named_as_in
from planner.orchestration.placement.warm_start import locate_warm_start
from planner.orchestration.previous_plan import (
    allow_previous_piece_widths,
    locate_previous_plan,
    with_move_price,
)
from planner.orchestration.relinearise import plan_by_relinearisation
from planner.orchestration.sizes.group_sizes import group_sizes
from planner.orchestration.sizes.index_dedup import index_dedup_settings
from planner.orchestration.sizes.kv_cache_sizes import kv_cache_sizes
from planner.orchestration.sizes.plan_sizes import Sizes, plan_sizes
from planner.pricing.price_options import price, prune
from planner.pricing.serving import REQUEST_RATE, within_rate
from planner.solver.machine import no_collection
from planner.solver.partitioners.base import Partitioner, SolveLimits
from planner.solver.partitioners.exact.columns import num_placements
from planner.solver.partitioners.exact.cp_sat import MAX_PLACEMENTS, CpSat
from planner.solver.partitioners.kernels.warm_up import load_constructions
from planner.solver.problem import Reason, SolverProblem

_OF_THE_USER = (BYTES_MOVED, REQUEST_RATE)  # no more memory and no wider constraint mends these
_CLOCK = "time"
_ALL_LISTED = (None, "listed_cuts")  # what a search is limited by that has proven to find nothing in the listed cuts
_LEAST_LEFT = 0.25  # of the time limit, for every search after the first


class _Given(TypedDict):
    """What the caller of a solve gave, apart from the problem, its prices and its limits."""

    partitioner: Partitioner
    assumptions: tuple[Assumption, ...]
    previous: PreviousPlan | None
    warm_start: Placement | None


@no_collection()
def plan(
    problem: Problem,
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    limits: SolveLimits,
    assumptions: tuple[Assumption, ...] = (),
    previous: PreviousPlan | None = None,
    warm_start: Placement | None = None,
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
    warm_start
        A plan of a neighbouring problem at which searches begin; leaving it has no price. Not with ``previous``, at
        which they begin already.
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
    if previous is not None:
        previous = replace(previous, placement=named_as_in(problem, previous.placement))
    if warm_start is not None:
        expect(previous is None, "a warm start or a previous plan, not both")
        warm_start = named_as_in(problem, warm_start)
    given: _Given = {
        "partitioner": partitioner,
        "assumptions": assumptions,
        "previous": previous,
        "warm_start": warm_start,
    }
    solve = functools.partial(_plan_by_shards, problem, **given)
    if isinstance(cost_model, AssignmentModel):
        return plan_by_relinearisation(problem, cost_model, limits, solve, previous=previous, on_result=on_result)
    if (sizes := _open_sizes(problem, cost_model)) is not None:
        return _plan_by_size(sizes, cost_model, limits, on_result, given)

    def by_shards(problem: Problem, limits: SolveLimits, is_reported: bool) -> PlanResult:
        return _plan_by_shards(problem, cost_model, limits, on_result if is_reported else None, **given)

    return solve_with_stash(problem, limits, by_shards)


def _open_sizes(problem: Problem, cost_model: CostModel) -> Sizes | None:
    """Return the sizes of what may have several in a problem, if there is any."""
    if problem.use_index_dedup is None:
        return index_dedup_settings(problem, cost_model)
    if problem.replica_groups is not None and not problem.replica_groups.is_decided:
        return group_sizes(problem)
    if problem.kv_cache is not None and not problem.kv_cache.is_decided:
        return kv_cache_sizes(problem)
    return None


def _plan_by_size(
    sizes: Sizes,
    cost_model: CostModel,
    limits: SolveLimits,
    on_result: OnResult | None,
    given: _Given,
) -> PlanResult:
    """Plan with the best of several sizes; only where none has a plan, say what would help."""

    def solve(of_size: Problem, within: SolveLimits, on_result: OnResult | None) -> PlanResult:
        def by_shards(problem: Problem, limits: SolveLimits, is_reported: bool) -> PlanResult:
            reported = on_result if is_reported else None
            return _plan_by_shards(problem, cost_model, limits, reported, **given, is_diagnosed=False)

        return solve_with_stash(of_size, within, by_shards)

    result = plan_sizes(sizes, cost_model, limits, solve, on_result)
    *_, roomiest = sizes.problems.values()
    return _diagnosed(result, roomiest, cost_model, limits)


def _plan_by_shards(
    problem: Problem,
    cost_model: CostModel,
    limits: SolveLimits,
    on_result: OnResult | None,
    *,
    partitioner: Partitioner,
    assumptions: tuple[Assumption, ...],
    previous: PreviousPlan | None,
    warm_start: Placement | None,
    is_diagnosed: bool = True,
) -> PlanResult:
    """Plan a problem under a model whose prices of shards add up; without a plan, say what would help if asked to."""
    began = time.monotonic()
    if previous is not None:
        problem = with_kernels_of(allow_previous_piece_widths(problem, previous), previous.placement)
    solve = functools.partial(
        _solve,
        cost_model=cost_model,
        partitioner=partitioner,
        previous=previous,
        warm_start=warm_start,
        on_result=on_result,
        began_seconds=began,
    )
    diagnosed = _diagnosed if is_diagnosed else _as_it_is
    result = solve(problem, limits, assumptions)
    if result.plan is not None or result.limit in _OF_THE_USER or not is_short_of_memory(problem, cost_model):
        return diagnosed(result, problem, cost_model, limits)
    wider = allow_host_memory(problem)
    if wider is None:
        details = "; ".join(part for part in (result.detail, explain_missing_host_memory(problem)) if part)
        return diagnosed(replace(result, detail=details), problem, cost_model, limits)
    if any(table.constraints.compute_kernels is None for table in problem.tables):
        result = solve(wider, _extended(limits, began), (*assumptions, _spilled(problem)))
    return diagnosed(result, wider, cost_model, limits)


def _extended(limits: SolveLimits, began_seconds: float) -> SolveLimits:
    """Return limits that leave another search a part of the time, counted from the beginning of the first."""
    needed = time.monotonic() - began_seconds + _LEAST_LEFT * limits.time_limit_seconds
    return replace(
        limits,
        time_limit_seconds=max(limits.time_limit_seconds, needed),
        work_limit_seconds=limits.work_seconds,
    )


def _spilled(problem: Problem) -> Assumption:
    """Say that host memory was offered, and why."""
    prefetches = problem.pipeline == PREFETCH_PIPELINE
    ahead = "" if prefetches else "; model.pipeline train_prefetch_sparse_dist would fill caches under dense compute"
    labels = spilled_labels(problem)
    return Assumption(
        subject="constraints.compute_kernels",
        value=f"the tables do not fit into the accelerators' memory: {labels} were considered too{ahead}",
        evidence="note",
    )


def _solve(
    problem: Problem,
    limits: SolveLimits,
    assumptions: tuple[Assumption, ...],
    *,
    cost_model: CostModel,
    partitioner: Partitioner,
    previous: PreviousPlan | None,
    warm_start: Placement | None,
    on_result: OnResult | None,
    began_seconds: float,
) -> PlanResult:
    """Plan a problem with the kernels that it offers; ``began_seconds`` is of the monotonic clock."""
    listing_seconds = time.monotonic()
    listed = list_and_price(problem, cost_model)
    listed_seconds = time.monotonic() - listing_seconds
    if isinstance(listed, Infeasibility):
        return no_plan(listed)
    families, *priced_once = listed
    del listed
    previous_state = None
    if previous is not None:
        previous_state = locate_previous_plan(problem, families, previous, cost_model)

    def options() -> SolverProblem:
        """Return the priced options for someone who lets them go: they take as much memory as all else of a search."""
        priced = priced_once.pop() if priced_once else price(problem, families, cost_model)
        priced = with_resident_bytes(priced, problem, families)
        return priced if previous_state is None else with_move_price(priced, problem, families, previous_state)

    context = SolveContext(
        problem=problem,
        families=families,
        cost_model=cost_model,
        limits=limits_of_first(problem, limits),
        assumptions=assumptions,
        began_seconds=began_seconds,
        previous_state=previous_state,
        warm_start=None if warm_start is None else locate_warm_start(problem, families, warm_start),
        listed_seconds=listed_seconds,
    )
    reporter = IncumbentReporter(context, on_result)
    result = conclude(context, explore(context, options(), partitioner, reporter), reporter)
    if result.plan is not None and any(broken_limits(result.plan.evaluation)):
        result = _within_limits(context, options(), result, partitioner, reporter)
    return pursue_goals(
        result,
        problem,
        cost_model=cost_model,
        partitioner=partitioner,
        limits=limits,
        assumptions=assumptions,
        previous=previous,
        began_seconds=began_seconds,
    )


def _within_limits(
    context: SolveContext,
    priced: SolverProblem,
    fastest: PlanResult,
    partitioner: Partitioner,
    reporter: IncumbentReporter,
) -> PlanResult:
    """Search for a plan that leaves tiers time and sustains the rate, which the ``fastest`` does not.

    Searches that met such plans on the way to faster ones have left the best of them with the reporter.
    """
    assert fastest.plan is not None
    rated = within_rate(fastest)
    if rated.reason is Reason.INFEASIBLE:
        return rated
    limits, problem = context.limits, context.problem
    reporter.fix_bound()
    is_cut_by_clock = fastest.limit == _CLOCK

    def search(searching: Partitioner, step_seconds: float | None) -> PlanResult:
        nonlocal is_cut_by_clock
        # A plan that breaks a limit is no answer, whatever the bound: none is cut off before there is one.
        within = replace(context, limits=replace(_extended(limits, context.began_seconds), cutoff_seconds=None))
        limited = with_limits(priced, problem, step_seconds=step_seconds)
        found = conclude(within, explore(within, limited, searching, reporter), reporter)
        is_cut_by_clock = is_cut_by_clock or found.limit == _CLOCK
        return found

    is_settled = False
    if priced.shape_busy_seconds is not None and num_placements(prune(priced)) <= MAX_PLACEMENTS:
        exact = search(CpSat(), None)
        # It knows nothing of moves: a plan that moves less may be better, or the only one within a budget.
        is_settled = exact.limit in _ALL_LISTED if exact.plan is None else priced.move is None
    steps = StepsToTry(priced, shortest_step(problem, fastest.lower_bound_seconds), fastest.plan.evaluation)
    while not is_settled:
        found = search(partitioner, steps.step_seconds).plan
        keeps = found is not None and not any(broken_limits(found.evaluation))
        is_settled = keeps or not steps.learn(None if found is None else found.evaluation)
    if reporter.best is not None:
        limit = "tier_bandwidth" if any(overloaded(fastest.plan.evaluation)) else REQUEST_RATE
        best = reporter.finished_best(_CLOCK if is_cut_by_clock else limit)
        return result_of(within_bound(best, fastest.lower_bound_seconds, limits.relative_gap))
    if any(overloaded(fastest.plan.evaluation)):
        return tier_too_slow(fastest.plan.evaluation, fastest.lower_bound_seconds)
    return rated


def _diagnosed(result: PlanResult, problem: Problem, cost_model: CostModel, limits: SolveLimits) -> PlanResult:
    """Say what is in conflict and what would help, where there is no plan."""
    if result.plan is not None or result.limit in _OF_THE_USER:
        return result
    within = attempt_limits(limits, len(problem.tables))
    load_constructions()  # where no search ran before, in a process of its own
    attempts = Attempts(cost_model, within)
    is_proven = result.reason == Reason.INFEASIBLE
    diagnosis = diagnose(problem, result.shortfalls, attempts, is_proven=is_proven)
    return replace(result, diagnosis=diagnosis, shortfalls=with_solved_hints(result.shortfalls, diagnosis))


def _as_it_is(result: PlanResult, *_: object) -> PlanResult:
    return result
