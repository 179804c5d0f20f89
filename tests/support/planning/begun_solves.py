"""Solves that have a first plan, and no bound and no search yet."""

import time
from dataclasses import dataclass, replace

from planner.domain.problem.problem import Problem
from planner.orchestration.answers.finish_plan import SolveContext
from planner.orchestration.answers.incumbents import IncumbentReporter
from planner.orchestration.family_sets.family_set import FamilySet, first_plan
from planner.orchestration.list_options import list_and_price
from planner.pricing.price_options import prune
from planner.solver.partitioners.base import SolveLimits
from planner.solver.problem import SolverProblem
from tests.support.planning.builders import ROOFLINE


@dataclass(frozen=True)
class BegunSolve:
    """What is known of a solve; nothing was reported yet."""

    context: SolveContext
    priced: SolverProblem
    first: FamilySet
    reporter: IncumbentReporter


def begun_solve(problem: Problem, limits: SolveLimits) -> BegunSolve:
    """Begin a solve; its time counts from its first plan on, since the first search of a process compiles."""
    families, priced = list_and_price(problem, ROOFLINE)  # type: ignore[misc]
    context = SolveContext(
        problem=problem,
        families=families,
        cost_model=ROOFLINE,
        limits=limits,
        assumptions=(),
        began_seconds=time.monotonic(),
        previous_state=None,
    )
    first = first_plan(context, prune(priced), IncumbentReporter(context, None))
    context = replace(context, began_seconds=time.monotonic())
    return BegunSolve(context=context, priced=priced, first=first, reporter=IncumbentReporter(context, None))
