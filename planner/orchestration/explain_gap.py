"""What the gap of a finished plan consists of, and what a longer solve would do by the course of this one."""

import time

from planner.domain.plan.plan import GapParts
from planner.orchestration.finish_plan import SolveContext
from planner.orchestration.incumbents import IncumbentReporter
from planner.solver.bounds.boxes import affordable_boxes
from planner.solver.bounds.chain import Bound
from planner.solver.bounds.gap_parts import gap_parts
from planner.solver.evaluate import step_seconds_of
from planner.solver.problem import Assignment, SolverProblem

_WORK = 0.01  # part of the work of a solve that may be spent on saying what its gap is


def parts_of_gap(
    context: SolveContext,
    priced: SolverProblem,
    assignment: Assignment,
    bound_seconds: float,
    bounds: list[Bound],
    reporter: IncumbentReporter,
) -> GapParts | None:
    """Return what lies between an assignment and a bound; ``None`` where moving from a plan that runs costs something.

    ``bounds`` are those of the sets that hold all plans.
    """
    if priced.move is not None or not bounds or bound_seconds <= 0:
        return None
    found_seconds = step_seconds_of(priced, assignment)
    boxes = affordable_boxes(_WORK * context.limits.work_seconds, priced.num_tables, priced.num_ranks)
    parts = gap_parts(priced, assignment, min(bound_seconds, found_seconds), max_boxes=boxes)
    half_seconds = reporter.best_at((context.began_seconds + time.monotonic()) / 2)
    return GapParts(
        balance_seconds=parts.balance_seconds,
        packing_seconds=parts.packing_seconds,
        choice_seconds=parts.choice_seconds,
        refuted_seconds=max(bound_seconds - min(bound.relaxed_seconds for bound in bounds), 0.0),
        is_bound_final=min(bounds, key=lambda bound: bound.seconds).is_final,
        late_gain_seconds=None if half_seconds is None else max(half_seconds - found_seconds, 0.0),
    )
