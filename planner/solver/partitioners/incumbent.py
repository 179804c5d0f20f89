"""The best plan that a search has found, evaluated by code that it does not share, and reported as it improves."""

import time

import numpy as np

from planner.solver.evaluate import objective_of, violations
from planner.solver.partitioners.base import Incumbent, OnIncumbent
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem

_WORTH_REPORTING = 1e-3  # relative


class IncumbentTracker:
    """Stores the best assignment of those that it is given."""

    def __init__(self, priced: SolverProblem, partitioner: str, on_incumbent: OnIncumbent | None) -> None:
        self._priced, self._partitioner, self._on_incumbent = priced, partitioner, on_incumbent
        self._reported_seconds = np.inf
        self.seconds = np.inf
        self.assignment: Assignment | None = None
        self._found_at_seconds: float | None = None

    def consider(self, assignment: Assignment | None) -> bool:
        """Store an assignment if it is valid and better than the best; return whether it was."""
        if assignment is None:
            return False
        seconds = objective_of(self._priced, assignment)
        if seconds >= self.seconds or violations(self._priced, assignment):
            return False
        self.seconds, self.assignment = seconds, assignment
        self._found_at_seconds = time.monotonic()
        if self.is_worth_considering(seconds):
            self._report()
        return True

    def is_worth_considering(self, seconds: float) -> bool:
        """Whether a plan of this objective would be reported; if not, a search need not make an assignment of it."""
        return self._on_incumbent is not None and seconds <= self._reported_seconds * (1 - _WORTH_REPORTING)

    def outcome(self, limit: str | None, detail: str = "") -> Outcome:
        """Return what the search found, and report it if that was not worth it before."""
        if self.seconds < self._reported_seconds:
            self._report()
        return Outcome(
            assignment=self.assignment,
            reason=Reason.NO_SOLUTION_FOUND if self.assignment is None else Reason.FEASIBLE,
            limit=limit,
            detail=detail,
            partitioner=self._partitioner,
            found_at_seconds=self._found_at_seconds,
        )

    def _report(self) -> None:
        self._reported_seconds = self.seconds
        if self._on_incumbent is not None and self.assignment is not None:
            self._on_incumbent(
                Incumbent(assignment=self.assignment, objective_seconds=self.seconds, partitioner=self._partitioner)
            )
