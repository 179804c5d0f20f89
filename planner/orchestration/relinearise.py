"""Plans under a model whose shards are dearer or cheaper by what else lies on their rank.

Searches add up shards, so they are given an additive model: first the model's own additive prices, then prices that
are linear near the best plan so far (the idea of SurCo, arXiv 2210.12547), and at last those of the analytic model
behind it. What they find is priced by the model itself, which prices whole ranks, and shards of the best by that
measure move as long as it pays (:mod:`planner.orchestration.refine.whole_rank`). The plan that each search constructs
first is priced, too, so that the answer is never worse than a greedy plan.

A bound of an additive model bounds no plan under the other: the answer has no gap, but says how far the plan is from
the bound of the additive model that it was found with.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cost_models.analytic.additive import Additive
from cost_models.protocol import AssignmentModel, CostModel
from planner.domain.plan.movement import PreviousPlan
from planner.domain.plan.plan import Evaluation, Plan, PlanResult, Surrogate
from planner.domain.problem.problem import Problem
from planner.errors import SolverDefect
from planner.orchestration.answers.finish_plan import charged_seconds, result_of
from planner.orchestration.answers.incumbents import OnResult
from planner.orchestration.limits.tier_bandwidth import overloaded, tier_too_slow
from planner.orchestration.previous_plan import reprice_movement
from planner.orchestration.refine.whole_rank import refine_whole_ranks
from planner.pricing.placed_work import linearise_around
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import Reason
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify

#: Parts of the time limit that searches with the model's own prices may take, and that with the analytic model's; the
#: rest, and what they leave because prices bring nothing new, polishes the best plan.
_PARTS, _ANALYTIC_PART = (0.3, 0.15, 0.15), 0.2
_NUM_ROUNDS = len(_PARTS) + 1
_SAME = 1e-12  # relative difference below which two plans cost the same
_DETAIL = "the cost model prices ranks as a whole: of its plans no bound is known, of the additive model's one is"


#: Returns the best plan found under an additive model, within limits.
AdditiveSolve = Callable[[CostModel, SolveLimits, OnResult], PlanResult]


def plan_by_relinearisation(
    problem: Problem,
    model: AssignmentModel,
    limits: SolveLimits,
    solve: AdditiveSolve,
    *,
    previous: PreviousPlan | None,
    on_result: OnResult | None,
) -> PlanResult:
    """Search with one additive model after the other, and return the plan that is best under ``model``.

    ``solve`` plans ``problem`` under an additive model. Returns its result where there is no plan.
    """
    began = time.monotonic()
    evaluator = _WholeRankEvaluator(problem, model, previous, on_result, began_seconds=began)
    surrogate: CostModel = Additive(model=model)
    last = PlanResult(plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=None, detail="", lower_bound_seconds=0.0)
    spent = _ANALYTIC_PART
    for number, part in enumerate(_PARTS, start=1):
        before, spent = evaluator.best_seconds, spent + part
        last = solve(surrogate, _part_of(limits, part), evaluator.first_of(number, surrogate))
        if last.plan is None and evaluator.best is None:
            return last
        evaluator.consider(last, number, surrogate)
        if evaluator.best is None or (number > 1 and evaluator.best_seconds >= before * (1 - _SAME)):
            break  # the same plan again, or none that any tier can serve
        surrogate = linearise_around(problem, evaluator.best.placement, model)
    if evaluator.best is None:
        return evaluator.rejected(last)
    found = solve(model.analytic, _part_of(limits, _ANALYTIC_PART), evaluator.first_of(_NUM_ROUNDS, model.analytic))
    evaluator.consider(found, _NUM_ROUNDS, model.analytic)
    if previous is None:  # else moves would have a price
        evaluator.refine(_part_of(limits, 1 - spent), until_seconds=began + limits.time_limit_seconds)
    return result_of(replace(evaluator.best, solver_seconds=time.monotonic() - began))


def _part_of(limits: SolveLimits, part: float) -> SolveLimits:
    work = limits.work_limit_seconds
    return replace(
        limits,
        time_limit_seconds=part * limits.time_limit_seconds,
        work_limit_seconds=None if work is None else part * work,
        cutoff_seconds=None,  # bounds of additive models bound no plan under the other
    )


class _WholeRankEvaluator:
    """Keeps the plan that is best under the model that prices ranks as a whole."""

    def __init__(
        self,
        problem: Problem,
        model: AssignmentModel,
        previous: PreviousPlan | None,
        on_result: OnResult | None,
        *,
        began_seconds: float,
    ) -> None:
        self._problem, self._model, self._on_result = problem, model, on_result
        self._previous, self._began_seconds = previous, began_seconds
        self.best: Plan | None = None
        self._searched_with: CostModel = model  # the additive model that the best plan was found with
        self._busiest: Plan | None = None  # one that a tier cannot serve

    @property
    def best_seconds(self) -> float:
        """Objective of the best plan and the price of moving to it; infinite before there is one."""
        return float("inf") if self.best is None else charged_seconds(self.best)

    def first_of(self, number: int, surrogate: CostModel) -> OnResult:
        """Return where a search reports its plans: the first is priced, whatever the clock says of others."""
        reported: list[PlanResult] = []

        def report(found: PlanResult) -> None:
            if not reported:
                reported.append(found)
                self.consider(found, number, surrogate)

        return report

    def consider(self, found: PlanResult, number: int, surrogate: CostModel) -> None:
        """Judge a verified plan of one round, and keep and report it if it is the best."""
        if found.plan is None:
            return
        evaluation = score(self._problem, found.plan.placement, self._model)
        reevaluated = self._reevaluated(found.plan, number, evaluation)
        if any(overloaded(evaluation)):
            self._busiest = reevaluated
        elif charged_seconds(reevaluated) < self.best_seconds * (1 - _SAME):
            self.best, self._searched_with = reevaluated, surrogate
            if self._on_result is not None:
                self._on_result(result_of(reevaluated))

    def refine(self, limits: SolveLimits, *, until_seconds: float) -> None:
        """Move shards of the best plan within limits, and keep what is better; what comes out is verified."""
        assert self.best is not None
        assert self.best.surrogate is not None
        before, surrogate = self.best.placement, self.best.surrogate
        found = refine_whole_ranks(self._problem, before, self._model, limits.seed, limits.work_seconds, until_seconds)
        if found.is_cut_by_clock:
            self.best = replace(self.best, limit="time")
        placement = found.placement
        if placement is before:
            return
        if issues := verify(self._problem, placement):
            raise SolverDefect(f"moving shards made an illegal plan: {issues[0].message}")
        evaluation = score(self._problem, placement, self._model)
        if any(overloaded(evaluation)) or evaluation.objective_seconds >= self.best_seconds:
            return
        seconds = score(self._problem, placement, self._searched_with).objective_seconds
        bound = surrogate.lower_bound_seconds
        surrogate = replace(
            surrogate,
            seconds=seconds,
            relative_gap=seconds / bound - 1 if bound > 0 else None,
            moved_shards=int(np.count_nonzero(placement.all_shards().rank != before.all_shards().rank)),
        )
        found_seconds = time.monotonic() - self._began_seconds
        self.best = replace(
            self.best, placement=placement, evaluation=evaluation, surrogate=surrogate, found_seconds=found_seconds
        )
        if self._on_result is not None:
            self._on_result(result_of(self.best))

    def rejected(self, last: PlanResult) -> PlanResult:
        """Return no plan, and which tier is too slow for the plans that were found."""
        if self._busiest is None:
            return last
        return tier_too_slow(self._busiest.evaluation, last.lower_bound_seconds)

    def _reevaluated(self, found: Plan, number: int, evaluation: Evaluation) -> Plan:
        movement, previous = found.movement, self._previous
        if movement is not None and movement.previous_seconds is not None and previous is not None:
            rescored = score(self._problem, previous.placement, self._model)
            if movement.moved_bytes > 0:  # the gain that is asked for is a part of what the model itself says
                more = previous.min_relative_gain * (rescored.objective_seconds - movement.previous_seconds)
                movement = replace(movement, charged_seconds=movement.charged_seconds + more)
            movement = reprice_movement(movement, (previous.placement, rescored), (found.placement, evaluation))
        waited = 0.0 if found.found_seconds is None else found.solver_seconds - found.found_seconds
        return replace(
            found,
            evaluation=evaluation,
            found_seconds=time.monotonic() - self._began_seconds - waited,
            lower_bound_seconds=0.0,
            relative_gap=None,
            gap_parts=None,
            late_gain_seconds=None,
            reason=Reason.FEASIBLE,
            limit=found.limit or "surrogate",
            detail=_DETAIL,
            movement=movement,
            surrogate=Surrogate(
                seconds=found.evaluation.objective_seconds,
                lower_bound_seconds=found.lower_bound_seconds,
                relative_gap=found.relative_gap,
                round=number,
                num_rounds=_NUM_ROUNDS,
                moved_shards=0,
            ),
        )
