"""Families that one plan may hold together, while they are searched: the best plan so far, and a bound."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.family_sets.deadline import Deadline
from planner.orchestration.previous_plan import warm_start_from, with_home_sites
from planner.solver.bounds.chain import Bound
from planner.solver.evaluate import objective_of, violations
from planner.solver.movement import moved_bytes
from planner.solver.partitioners.base import OnIncumbent, SearchOptions
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.resume import resume
from planner.solver.partitioners.valid_start import within_move_budget
from planner.solver.partitioners.warm_start import begin_warm
from planner.solver.problem import Assignment, Outcome, Reason, SolverProblem

#: A plan that is known, and the problem that its shapes are of.
Start = tuple[SolverProblem, Assignment]
#: Part of the time limit that a reproducible solve spends on the first plan at most, counted in work.
_FIRST = 0.1


@dataclass(eq=False, slots=True, kw_only=True)
class FamilySet:
    """A problem restricted to some families: a mode, or a set of kinds of one."""

    priced: SolverProblem
    outcome: Outcome  # the best so far
    bound: Bound
    is_warm: bool = False  # whether it begins with the warm start of the solve, hardly changed

    @property
    def seconds(self) -> float:
        """What searches minimise, of the best plan; infinite before there is one."""
        if self.outcome.assignment is None:
            return float("inf")
        return objective_of(self.priced, self.outcome.assignment)

    @property
    def moved_bytes(self) -> float:
        """Bytes that the best plan moves; infinite before there is one."""
        return np.inf if self.outcome.assignment is None else moved_bytes(self.priced, self.outcome.assignment)

    def better(self, found: Outcome) -> Outcome:
        """Keep the plan so far where a search has none or a worse one; an equal one was found when the first was."""
        if found.assignment is not None and not within_move_budget(self.priced, found.assignment):
            found = replace(found, assignment=None, reason=Reason.NO_SOLUTION_FOUND)
        if found.assignment is None and self.outcome.assignment is not None:
            return replace(self.outcome, limit=found.limit)
        if found.assignment is not None and objective_of(self.priced, found.assignment) >= self.seconds:
            before = self.outcome
            return replace(
                found,
                assignment=before.assignment,
                partitioner=before.partitioner,
                found_at_seconds=before.found_at_seconds,
            )
        return found


def least_seconds(family_sets: list[FamilySet]) -> float:
    """Return the objective of the best plan of some sets; infinite where there is none."""
    return min((family_set.seconds for family_set in family_sets), default=np.inf)


def first_plan(
    context: SolveContext, priced: SolverProblem, reporter: IncumbentReporter, deadline: Deadline | None = None
) -> FamilySet:
    """Construct a plan of a set before anything that takes time: from the plan that runs already, where one does.

    A set that may go without a plan is given a ``deadline``.
    """
    limits = replace(context.limits, work_limit_seconds=_FIRST * context.limits.work_seconds)
    if deadline is not None:
        limits = replace(limits, time_limit_seconds=max(deadline.left_seconds, 1e-3))
    report: OnIncumbent | None = functools.partial(reporter.report, priced)
    outcome = None
    if context.previous_state is not None:
        if context.previous_state.seconds is None:
            report = None  # what moving costs is not known yet
        priced, before = at_home(context, priced)
        outcome = resume(priced, before, limits, on_incumbent=report)
    if outcome is None or outcome.assignment is None:
        outcome = Greedy(first_of_few=True, may_fail=deadline is not None).solve(
            priced, limits, SearchOptions(on_incumbent=report)
        )
    return FamilySet(priced=priced, outcome=outcome, bound=Bound(seconds=0.0, hint=None))


def started(context: SolveContext, priced: SolverProblem, known: SolverProblem, plan: Assignment) -> FamilySet | None:
    """Return a set that begins with a plan of the problem ``known``, moved where the set has less room.

    ``None`` if the set has not all families of the plan, or no room is found.
    """
    assignment = transferred(plan, known, priced)
    if assignment is None:
        return None
    if context.previous_state is not None:
        priced, _ = at_home(context, priced)
    outcome = Outcome(assignment=assignment, reason=Reason.FEASIBLE)
    if violations(priced, assignment):
        outcome = resume(
            priced, assignment, replace(context.limits, work_limit_seconds=_FIRST * context.limits.work_seconds)
        )
    if outcome.assignment is None:
        return None
    return FamilySet(priced=priced, outcome=outcome, bound=Bound(seconds=0.0, hint=None))


def warm_plan(context: SolveContext, family_set: FamilySet) -> FamilySet | None:
    """Return the set with the warm start of the solve, completed; ``None`` where there is none, or none that fits."""
    if context.warm_start is None:
        return None
    priced = family_set.priced
    limits = replace(context.limits, work_limit_seconds=_FIRST * context.limits.work_seconds)
    found, is_close = begin_warm(priced, context.warm_start.in_place(priced), context.warm_start.alike(priced), limits)
    return None if found.assignment is None else replace(family_set, outcome=found, is_warm=is_close)


def is_better_begin(warm: FamilySet, cold: FamilySet) -> bool:
    """Whether a search had better begin at the warm start: it is close to the known plan, and better than another one.

    A search goes on from what had to be changed much no better than from a construction, and often worse.
    """
    return warm.seconds < cold.seconds and (warm.is_warm or cold.outcome.assignment is None)


def at_home(context: SolveContext, priced: SolverProblem) -> tuple[SolverProblem, Assignment]:
    """Return a problem that knows where the tables of the previous plan are, and what it has of that plan."""
    assert context.previous_state is not None
    before = warm_start_from(priced, context.previous_state)
    return with_home_sites(priced, before), before


def transferred(assignment: Assignment, one: SolverProblem, other: SolverProblem) -> Assignment | None:
    """Return an assignment of one restriction of a problem as another one has it; ``None`` where that lacks a piece."""
    widest = int(max(one.shape_columns.max(), other.shape_columns.max())) + 1
    keys, wanted = (
        problem.family_source[problem.shape_family] * widest + problem.shape_columns for problem in (other, one)
    )
    order = np.argsort(keys)
    wanted = wanted[assignment.piece_shape]
    place = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    if not np.array_equal(keys[place], wanted):
        return None
    return Assignment(piece_shape=place, piece_site=assignment.piece_site.copy())
