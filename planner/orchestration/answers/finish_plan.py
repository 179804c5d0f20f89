"""From an outcome of a search to a plan that anyone may see: named, scored and verified from its geometry.

What :mod:`planner.verification.verify` rejects, or what costs or moves other than the search believed, is a defect and
never a plan.
"""

import time
from dataclasses import dataclass, replace

from cost_models.protocol import CostModel
from planner.domain.plan.movement import Movement
from planner.domain.plan.placement import Placement
from planner.domain.plan.plan import Assumption, Evaluation, Plan, PlanResult
from planner.domain.problem.problem import Problem
from planner.errors import SolverDefect
from planner.options.enumerate import Families
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.placement.stash import NoStash, with_stash
from planner.orchestration.placement.to_placement import to_placement
from planner.orchestration.placement.warm_start import WarmStart
from planner.orchestration.previous_plan import PreviousPlanState, movement_of
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.evaluate import move_seconds_of, step_seconds_of
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.base import RESOLUTION, SolveLimits
from planner.solver.partitioners.valid_start import within_move_budget
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem
from planner.verification.evaluate_placement import score
from planner.verification.provenance import used_assumptions, versions
from planner.verification.verify import verify

_AGREEMENT = 1e-9  # relative difference allowed between the search's arithmetic and the score's
_CLOCK = "time"
#: What finishing a plan takes, in parts of what listing and pricing took: 0.1 to 0.9 was measured. At most this part of
#: the time limit is kept free for it.
_FINISHING, _MOST_FINISHING = 1.0, 0.2
_SPARE = 0.01  # of the time limit, for what comes after the search, at least


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveContext:
    """What stays the same through one solve."""

    problem: Problem
    families: Families
    cost_model: CostModel
    limits: SolveLimits
    assumptions: tuple[Assumption, ...]
    began_seconds: float  # monotonic clock
    previous_state: PreviousPlanState | None  # what is known of the plan that runs already
    warm_start: WarmStart | None = None  # where searches begin
    listed_seconds: float = 0.0  # what listing and pricing took, by the clock

    def is_cut_off(self, bound_seconds: float) -> bool:
        """Whether no plan is below the cutoff, if the shards of every plan take ``bound_seconds`` at least."""
        return self.limits.is_cut_off(bound_seconds + seconds_without_shards(self.problem, bound_seconds))

    @property
    def end(self) -> Deadline:
        """The end of the time limit."""
        return Deadline(self.began_seconds + self.limits.time_limit_seconds)

    @property
    def deadline(self) -> Deadline:
        """The end of all searches and bounds, which leaves time to finish the plan."""
        limit_seconds = self.limits.time_limit_seconds
        reserved_seconds = min(_FINISHING * self.listed_seconds, _MOST_FINISHING * limit_seconds)
        return Deadline(self.end.until_seconds - max(reserved_seconds, _SPARE * limit_seconds))


def finish(context: SolveContext, family_set: SolverProblem, outcome: Outcome, bound: float) -> Plan:
    """Name things again, score and verify from the geometry, and reject what does not agree."""
    if outcome.assignment is None:
        raise SolverDefect("an outcome without an assignment cannot become a plan")
    if not within_move_budget(family_set, outcome.assignment):
        raise SolverDefect(f"{outcome.partitioner} returned a plan that moves more bytes than may move")
    placement = to_placement(context.problem, context.families, family_set, outcome.assignment)
    try:
        placement = with_stash(context.problem, placement)
    except NoStash as error:
        raise NoStash(bound) from error
    issues = verify(context.problem, placement)
    if issues:
        raise SolverDefect(f"{outcome.partitioner} returned an illegal plan: {issues[0].message}")
    evaluation = score(context.problem, placement, context.cost_model)
    believed, found = step_seconds_of(family_set, outcome.assignment), evaluation.objective_seconds
    rest_seconds = seconds_without_shards(context.problem, believed)
    believed, bound = believed + rest_seconds, bound + rest_seconds
    agreement = _AGREEMENT + context.cost_model.rounding
    if abs(believed - found) > agreement * max(believed, found):
        raise SolverDefect(f"the search believed {believed} s, the plan's geometry costs {found} s")
    if bound > found * (1 + agreement):
        raise SolverDefect(f"the lower bound {bound} s exceeds a plan of {found} s")
    bound = min(bound, found)
    gap = relative_gap_of(found, bound)
    ended = time.monotonic()
    found_at = ended if outcome.found_at_seconds is None else outcome.found_at_seconds
    close_enough = gap is not None and gap <= context.limits.relative_gap + RESOLUTION
    limit, detail = outcome.limit, outcome.detail
    if not close_enough and limit is None:
        limit, detail = _limit_of_a_proof(outcome.bound_seconds + rest_seconds, bound)
    if close_enough:
        limit = limit if limit == _CLOCK else None  # a plan that the clock cut may not come out again
        detail = f"within relative_gap {context.limits.relative_gap:g} of the bound over all legal cuts"
    return Plan(
        placement=placement,
        evaluation=evaluation,
        lower_bound_seconds=bound,
        relative_gap=gap,
        reason=Reason.OPTIMAL if close_enough else Reason.FEASIBLE,
        limit=limit,
        detail=detail,
        partitioner=outcome.partitioner,
        solver_seconds=ended - context.began_seconds,
        found_seconds=found_at - context.began_seconds,
        assumptions=used_assumptions(context.assumptions, evaluation.hardware_numbers),
        versions=versions(),
        seed=context.limits.seed,
        movement=_movement(context, family_set, outcome.assignment, placement, evaluation),
    )


def _limit_of_a_proof(listed_seconds: float, bound: float) -> tuple[str, str]:
    """Say what keeps a plan that an exact search has proven from being within the gap of the bound over all cuts."""
    if listed_seconds > bound * (1 + RESOLUTION):
        return (
            "listed_cuts",
            "no plan of the listed column widths is better; what others could do is only bounded",
        )
    return "resolution", ""  # proven in whole ticks or to a tolerance, which is coarser than the gap asked for


def _movement(
    context: SolveContext,
    family_set: SolverProblem,
    assignment: Assignment,
    placement: Placement,
    evaluation: Evaluation,
) -> Movement | None:
    """Say what moves, counted from the rectangles, and reject what the search counted otherwise."""
    if context.previous_state is None:
        return None
    counted = movement_of(
        context.problem, context.previous_state, placement, evaluation, move_seconds_of(family_set, assignment)
    )
    believed = moved_bytes(family_set, assignment)
    if abs(believed - counted.moved_bytes) > _AGREEMENT * max(believed, counted.moved_bytes):
        raise SolverDefect(f"the search moved {believed} bytes, the plan's geometry {counted.moved_bytes}")
    return counted


def relative_gap_of(found_seconds: float, bound_seconds: float) -> float | None:
    """Return how far a plan may be from the best one; ``None`` where nothing is known."""
    if bound_seconds > 0:
        return found_seconds / bound_seconds - 1
    return 0.0 if found_seconds == 0 else None


def within_bound(finished: Plan, bound: float, relative_gap: float) -> Plan:
    """Return a plan that was found in a part of what is legal, compared with a bound over all of it."""
    found = finished.evaluation.objective_seconds
    bound = min(bound, found)
    gap = relative_gap_of(found, bound)
    if gap is not None and gap <= relative_gap + RESOLUTION:
        return replace(finished, lower_bound_seconds=bound, relative_gap=gap, gap_parts=None, late_gain_seconds=None)
    detail = "found among the plans that leave tiers time and sustain the rate; the bound is over all legal cuts"
    limit = finished.limit or "tier_bandwidth"
    return replace(
        finished,
        lower_bound_seconds=bound,
        relative_gap=gap,
        gap_parts=None,
        late_gain_seconds=None,
        reason=Reason.FEASIBLE,
        limit=limit,
        detail=detail,
    )


def charged_seconds(plan: Plan) -> float:
    """Return what a search minimises: the objective, and the price of moving."""
    return plan.evaluation.objective_seconds + (0.0 if plan.movement is None else plan.movement.charged_seconds)


def result_of(finished: Plan) -> PlanResult:
    """Return a plan as the result of a solve."""
    return PlanResult(
        plan=finished,
        reason=finished.reason,
        limit=finished.limit,
        detail=finished.detail,
        lower_bound_seconds=finished.lower_bound_seconds,
    )
