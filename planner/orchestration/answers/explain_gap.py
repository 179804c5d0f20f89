"""What the gap of a finished plan consists of, and what a longer solve would do by the course of this one."""

import time

from planner.domain.plan.plan import GapParts
from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import WORTH_REPORTING, IncumbentReporter
from planner.solver.bounds.boxes import affordable_boxes
from planner.solver.bounds.chain import Bound
from planner.solver.bounds.gap_parts import divide_gap
from planner.solver.evaluate import step_seconds_of
from planner.solver.problem import Assignment, SolverProblem

_WORK = 0.01  # part of the work of a solve that may be spent on saying what its gap is


def parts_of_gap(
    context: SolveContext,
    priced: SolverProblem,
    assignment: Assignment,
    bound_seconds: float,
    bounds: list[Bound],
    *,
    is_exact: bool,
) -> GapParts | None:
    """Return what lies between an assignment and a bound; ``None`` if moving from a plan that runs costs something.

    ``bounds`` are those of the sets that hold all plans; none if the bound is another one. ``is_exact`` says that an
    exact search might still raise the bound. After the time limit nothing is worked out.
    """
    if priced.move is not None or bound_seconds <= 0 or context.end.is_over():
        return None
    found_seconds = step_seconds_of(priced, assignment)
    boxes = affordable_boxes(_WORK * context.limits.work_seconds, priced.num_tables, priced.num_ranks)
    parts = divide_gap(
        priced,
        assignment,
        min(bound_seconds, found_seconds),
        max_boxes=boxes,
        is_over=context.end.is_over,
    )
    relaxed_seconds = min((bound.relaxed_seconds for bound in bounds), default=bound_seconds)
    is_final = bool(bounds) and min(bounds, key=lambda bound: bound.seconds).is_final
    return GapParts(
        balance_seconds=parts.balance_seconds,
        packing_seconds=parts.packing_seconds,
        choice_seconds=parts.choice_seconds,
        refuted_seconds=max(bound_seconds - relaxed_seconds, 0.0),
        is_bound_final=is_final and not is_exact,
    )


def late_gain(context: SolveContext, reporter: IncumbentReporter, found_seconds: float) -> float | None:
    """Return by how much the second half of a solve improved plans to one of ``found_seconds``, as searches have it.

    0 if by less than searches report while they run; ``None`` if the first half found no plan.
    """
    half_seconds = reporter.best_at((context.began_seconds + time.monotonic()) / 2)
    if half_seconds is None:
        return None
    gain = half_seconds - found_seconds
    return gain if gain > WORTH_REPORTING * half_seconds else 0.0
