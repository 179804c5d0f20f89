"""A valid start is never lost: an exact search returns it where it has nothing better."""

from dataclasses import replace

import numpy as np

from planner.solver.evaluate import objective_of, violations
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem


def valid_or_none(priced: SolverProblem, start: Assignment | None) -> Assignment | None:
    """Return the start if it breaks no rule."""
    return start if start is not None and not violations(priced, start) else None


def within_move_budget(priced: SolverProblem, found: Assignment) -> bool:
    """Whether a plan stays within the bytes that may move, which exact searches know nothing of."""
    return priced.move is None or not np.isfinite(priced.move.max_bytes) or not violations(priced, found)


def keep_better_start(priced: SolverProblem, outcome: Outcome, start: Assignment | None) -> Outcome:
    """Return the outcome with the start in it, where that is valid and better than what was found.

    A search rounds seconds and bytes and stops within a gap, so that it may end a little above its
    start, or reject one that fits to the last fraction of a byte.
    """
    if start is None:
        return outcome
    found = outcome.assignment
    if (
        found is not None
        and objective_of(priced, found) <= objective_of(priced, start)
        and within_move_budget(priced, found)
    ):
        return outcome
    reason = Reason.FEASIBLE if found is None else outcome.reason
    return replace(outcome, assignment=start, reason=reason, found_at_seconds=None)  # which the caller knows
