"""From what searches of a problem found to the answer: the best plan, finished, or why there is none."""

import math
from dataclasses import dataclass, replace

import numpy as np

from planner.domain.formats.units import format_bytes
from planner.domain.plan.plan import PlanResult, Shortfall
from planner.orchestration.answers.explain_gap import late_gain, parts_of_gap
from planner.orchestration.answers.finish_plan import SolveContext, finish, result_of
from planner.orchestration.answers.incumbents import IncumbentReporter, with_nearer_rows
from planner.orchestration.family_sets.family_set import FamilySet
from planner.orchestration.limits.shortfalls import no_plan, unmet, unpackable
from planner.orchestration.previous_plan import warm_start_from
from planner.solver.evaluate import objective_of
from planner.solver.listed_cuts import lists_all_cuts
from planner.solver.machine import return_free_memory
from planner.solver.memo import forget_derived
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.resume import resume
from planner.solver.problem import Reason, SolverProblem

BYTES_MOVED = "max_moved_bytes"  # a limit of the user's, and the resource that it leaves short


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explored:
    """What is known after all searches of a problem."""

    pruned: SolverProblem  # the whole problem, without what no plan needs
    holding_all: list[FamilySet]  # sets that hold every plan, with bounds
    searched: list[FamilySet]  # all sets of which plans are known
    is_exhaustive: bool  # whether the modes leave no plan out

    @property
    def is_complete(self) -> bool:
        """Whether what searches prove of the sets that hold every plan holds for all plans and cuts."""
        return self.is_exhaustive and all(lists_all_cuts(one.priced) for one in self.holding_all)

    def bound(self, known_bound: float) -> float:
        """Return what no plan can beat, seconds, if ``known_bound`` is such a bound already."""
        if not self.is_complete:
            return known_bound
        feasible = [one for one in self.holding_all if one.outcome.reason is not Reason.INFEASIBLE]
        proven = min((max(one.bound.seconds, one.outcome.bound_seconds) for one in feasible), default=0.0)
        return max(known_bound, proven)


def conclude(context: SolveContext, explored: Explored | PlanResult, reporter: IncumbentReporter) -> PlanResult:
    """Pick the best outcome of all that were searched, and finish it as a plan; a result stays what it is."""
    if isinstance(explored, PlanResult):
        return explored
    family_sets, searched, exhaustive = explored.holding_all, explored.searched, explored.is_exhaustive
    solved = [family_set for family_set in searched if family_set.outcome.assignment is not None]
    bound = explored.bound(reporter.bound)
    if not solved:
        outcomes = [family_set.outcome for family_set in family_sets]
        if all(found.reason is Reason.INFEASIBLE for found in outcomes):
            return no_plan(unpackable(context.problem, explored.pruned, proven=exhaustive))
        if (over := _over_budget(context, family_sets, bound)) is not None:
            return over
        detail = "; ".join(sorted({found.detail for found in outcomes} - {""}))
        limit = next((found.limit for found in outcomes if found.limit), None)
        return PlanResult(
            plan=None, reason=Reason.NO_SOLUTION_FOUND, limit=limit, detail=detail, lower_bound_seconds=bound
        )
    best = min(solved, key=lambda family_set: family_set.seconds)
    assert best.outcome.assignment is not None
    for one in (*family_sets, *searched):  # no search follows, so that tables derived for searches only take memory
        forget_derived(one.priced)
    return_free_memory()
    assignment = with_nearer_rows(context, best.priced, best.outcome.assignment)
    finished = finish(context, best.priced, replace(best.outcome, assignment=assignment), bound)
    gain = late_gain(context, reporter, objective_of(best.priced, assignment))
    finished = replace(finished, late_gain_seconds=gain)
    if finished.reason is Reason.OPTIMAL:
        return result_of(finished)
    bounds = [family_set.bound for family_set in family_sets] if exhaustive else []
    parts = parts_of_gap(context, best.priced, assignment, bound, bounds, is_exact=explored.is_complete)
    return result_of(replace(finished, gap_parts=parts))


def _over_budget(context: SolveContext, family_sets: list[FamilySet], bound: float) -> PlanResult | None:
    """Say how many bytes a plan moves that was found without the limit, where more move than may."""
    most = None if context.previous_state is None else context.previous_state.previous.max_moved_bytes
    least = np.inf
    for family_set in family_sets:
        if context.previous_state is not None and family_set.priced.move is not None:
            free = replace(family_set.priced, move=replace(family_set.priced.move, max_bytes=np.inf))
            found = resume(free, warm_start_from(free, context.previous_state), context.limits).assignment
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
    return unmet(shortfall, BYTES_MOVED, bound)
