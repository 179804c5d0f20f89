"""Plans with the best size of something: every size is bounded, and those that may win are searched.

What has a size makes a problem of its own of each: sharding groups, or a cache that shares the memory of ranks with the
tables (:class:`Sizes`).

1. *Look*: sizes whose tables cannot fit drop out, those whose weights alone are too many at once. The options of all
   other problems are priced and bounded without a search.
2. *Search* each size, the one that promises most first, for equal parts of the time. A size whose bound is no better
   than the best plan so far, by more than the gap that was asked for, is ruled out.
3. *Go on* with the better half of the sizes that may still win, for the time that is left.

The published bound is the least of all sizes' bounds, so that it holds whatever the size. Every size with its plan's
price or its bound is a part of the answer.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from cost_models.protocol import CostModel
from planner.domain.plan.plan import Plan, PlanResult
from planner.domain.problem.problem import Problem
from planner.orchestration.answers.finish_plan import relative_gap_of, result_of
from planner.orchestration.answers.incumbents import WORTH_REPORTING, OnResult
from planner.orchestration.sizes.candidates import Candidate
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.partitioners.base import CUTOFF, RESOLUTION, SolveLimits
from planner.solver.problem import Reason

#: Plans the problem of one size: the problem, its limits, and who hears of improvements.
Solve = Callable[[Problem, SolveLimits, OnResult | None], PlanResult]

_LOOKED_AT = 0.3  # of the time limit, at most, for bounds before the searches
_SEARCHED = 0.6  # of the work, for searches of all sizes before some go on
_LEAST_SECONDS = 1e-3  # of a search
_CLOCK, _WORK = "time", "deterministic_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes that something may have."""

    noun: str  # "sizes of sharding groups"
    problems: Mapping[float, Problem]  # by size, from the one with least room for tables to the one with most
    #: whether every placement of a problem is one of those after it, too, and its shards take as long there
    is_nested: bool
    noted: Callable[[Plan, Sequence[Candidate]], Plan]  # the plan with what is known of each size


def plan_sizes(
    sizes: Sizes, cost_model: CostModel, limits: SolveLimits, solve: Solve, on_result: OnResult | None
) -> PlanResult:
    """Plan with the best of several sizes; ``solve`` plans the problem of one."""
    return _Search(sizes, cost_model, limits, solve, on_result).result()


class _Search:
    """All sizes of one solve."""

    def __init__(
        self,
        sizes: Sizes,
        cost_model: CostModel,
        limits: SolveLimits,
        solve: Solve,
        on_result: OnResult | None,
    ) -> None:
        self._sizes = sizes
        self._cost_model, self._limits, self._solve, self._on_result = cost_model, limits, solve, on_result
        self._began_seconds = time.monotonic()
        self._candidates = [Candidate(size=size, problem=problem) for size, problem in sizes.problems.items()]
        self._streamed_seconds = math.inf
        self._is_cut_by_clock = False

    def result(self) -> PlanResult:
        """Look at all sizes, search some, and return the best plan, or why no size has one."""
        self._look()
        order = sorted(
            (one for one in self._candidates if one.state != "infeasible"),
            key=lambda one: (one.bound_seconds, -one.size),
        )
        spent = self._search(order)
        best = min(order, key=lambda one: one.seconds, default=None)
        if best is None or best.plan is None:
            return self._without_plan()
        if len(order) > 1:
            self._go_on(order, 1 - spent)
            best = min(order, key=lambda one: one.seconds)
        return self._concluded(best)

    @property
    def _left_seconds(self) -> float:
        return self._began_seconds + self._limits.time_limit_seconds - time.monotonic()

    @property
    def _is_cut_off(self) -> bool:
        """Whether no size has a plan below the cutoff."""
        return self._limits.is_cut_off(min(one.bound_seconds for one in self._candidates))

    def _within(self, time_seconds: float, part: float) -> SolveLimits:
        """Return limits of so much time, and of a part of the work."""
        return replace(
            self._limits,
            time_limit_seconds=max(time_seconds, _LEAST_SECONDS),
            work_limit_seconds=part * self._limits.work_seconds,
        )

    def _look(self) -> None:
        """Bound sizes, those with most room first: none of them may be left unbounded for nothing."""
        for one in self._candidates:
            one.weigh()
        for one in reversed([one for one in self._candidates if one.state != "infeasible"]):
            if self._left_seconds < (1 - _LOOKED_AT) * self._limits.time_limit_seconds:
                self._is_cut_by_clock = True
                return
            one.look(self._cost_model)
            self._carry(one)

    def _carry(self, known: Candidate) -> None:
        """Raise the bounds of sizes with less room: what holds of all placements holds of theirs.

        What plans take beyond their shards is of the size.
        """
        if not self._sizes.is_nested:
            return
        of_shards = known.bound_seconds - seconds_without_shards(known.problem, known.bound_seconds)
        for one in self._candidates[: self._candidates.index(known)]:
            one.raise_bound(of_shards)

    def _search(self, order: list[Candidate]) -> float:
        """Search sizes in this order; return the part of all work that they took."""
        part = (_SEARCHED if len(order) > 1 else 1.0) / max(len(order), 1)
        spent = 0.0
        for index, one in enumerate(order):
            known = min(other.seconds for other in order)
            if one.is_close(known, self._limits.ending_gap):
                one.state = "ruled_out"
                continue
            if self._is_cut_off and math.isfinite(known):
                break
            left_seconds = self._left_seconds
            if left_seconds <= 0 and math.isfinite(known):
                self._is_cut_by_clock = True
                break
            waits = 1.0 if len(order) == 1 else _SEARCHED
            limits = self._within(waits * left_seconds / (len(order) - index), part)
            one.take(self._solve(one.problem, limits, self._streamed(one)))
            self._carry(one)
            spent += part
        return spent

    def _go_on(self, order: list[Candidate], part: float) -> None:
        """Search the better half of the sizes that may still win once more, for a part of all work.

        A size that has no plan below the cutoff is searched in earnest only now, since another size may have one.
        """
        if self._is_cut_off:
            return
        known = min(one.seconds for one in order)
        gap = self._limits.ending_gap
        left = sorted((one for one in order if one.plan and not one.is_close(known, gap)), key=lambda one: one.seconds)
        better = left[: (len(left) + 1) // 2]
        for index, one in enumerate(better):
            if one.is_close(min(other.seconds for other in order), gap):
                continue
            if self._left_seconds <= 0:
                self._is_cut_by_clock = True
                return
            limits = replace(
                self._within(self._left_seconds / (len(better) - index), part / len(better)), cutoff_seconds=None
            )
            one.take(self._solve(one.problem, limits, self._streamed(one)))
            self._carry(one)

    def _streamed(self, candidate: Candidate) -> OnResult | None:
        """Return who passes on the plans of a size that are better than those of all sizes before."""
        if self._on_result is None:
            return None
        on_result = self._on_result

        def pass_on(result: PlanResult) -> None:
            if result.plan is None or result.plan.evaluation.objective_seconds > self._streamed_seconds * (
                1 - WORTH_REPORTING
            ):
                return
            self._streamed_seconds = result.plan.evaluation.objective_seconds
            own = max(candidate.bound_seconds, result.lower_bound_seconds)
            bound = min([own, *(one.bound_seconds for one in self._candidates if one is not candidate)])
            on_result(result_of(self._bounded(result.plan, bound)))

        return pass_on

    def _bounded(self, plan: Plan, bound: float) -> Plan:
        """Return the plan of one size with a bound over all sizes."""
        found = plan.evaluation.objective_seconds
        bound = min(bound, found)
        is_own = bound >= plan.lower_bound_seconds * (1 - RESOLUTION)
        return replace(
            plan,
            lower_bound_seconds=bound,
            relative_gap=relative_gap_of(found, bound),
            gap_parts=plan.gap_parts if is_own and bound <= plan.lower_bound_seconds * (1 + RESOLUTION) else None,
            late_gain_seconds=None,
        )

    def _concluded(self, best: Candidate) -> PlanResult:
        """Return the best plan with the bound over all sizes, and what is known of each."""
        assert best.plan is not None
        assert best.found_at_seconds is not None
        plan = self._bounded(best.plan, min(one.bound_seconds for one in self._candidates))
        gap = plan.relative_gap
        is_proven = gap is not None and gap <= self._limits.relative_gap + RESOLUTION
        detail = f"within relative_gap {self._limits.relative_gap:g} of the bound over all {self._sizes.noun}"
        searched = [one for one in self._candidates if one.state == "planned"]
        is_cut = self._is_cut_by_clock or any(one.limit == _CLOCK for one in searched)
        limit, cut = best.limit or _WORK, ""
        if self._is_cut_off:
            limit, cut = CUTOFF, f"no size has a plan below cutoff_seconds {self._limits.cutoff_seconds:g}; "
        elif limit == CUTOFF:  # of its size alone
            limit = _WORK
        ended = time.monotonic()
        plan = replace(
            plan,
            reason=Reason.OPTIMAL if is_proven else Reason.FEASIBLE,
            limit=_CLOCK if is_cut else None if is_proven else limit,
            detail=detail if is_proven else f"{cut}best of {len(searched)} {self._sizes.noun} that were searched",
            solver_seconds=ended - self._began_seconds,
            found_seconds=best.found_at_seconds - self._began_seconds,
        )
        return result_of(self._sizes.noted(plan, self._candidates))

    def _without_plan(self) -> PlanResult:
        """Return that no size has a plan, with what the one with most room lacks."""
        roomiest = self._candidates[-1]
        found = self._solve(roomiest.problem, self._within(max(self._left_seconds, 0.0), 1.0), None)
        is_proven = all(one.state == "infeasible" for one in self._candidates)
        detail = (
            f"no plan with any of {len(self._candidates)} {self._sizes.noun}; of {roomiest.size:,.0f}: {found.detail}"
        )
        return replace(
            found,
            plan=None,
            reason=Reason.INFEASIBLE if is_proven else Reason.NO_SOLUTION_FOUND,
            detail=detail.rstrip(": "),
        )
