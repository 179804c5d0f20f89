"""The best plan of a whole solve, from all plans there are: what searches, bounds and the pipeline are held to.

Plans are looked at in the order of their price. The best is the first that the verifier accepts and that keeps the
limits of its own time. Verifier and score know no families, no sets of them and no rules of modules: whatever a solve
leaves out is looked at here.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from api.specs.request import SolveRequest
from planner.domain.plan.movement import PreviousPlan
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.options.host_memory_fallback import allow_host_memory, with_kernels_of
from planner.orchestration.limits.own_time import broken_limits, with_limits
from planner.orchestration.limits.shortfalls import Infeasibility
from planner.orchestration.list_options import is_short_of_memory, list_and_price
from planner.orchestration.placement.renamed import named_as_in
from planner.orchestration.placement.to_placement import to_placement
from planner.orchestration.previous_plan import (
    allow_previous_piece_widths,
    locate_previous_plan,
    with_move_price,
)
from planner.pricing.step.fixed_seconds import seconds_without_shards
from planner.solver.evaluate import move_seconds_of
from planner.solver.problem import SolverProblem
from planner.verification.evaluate_placement import score
from planner.verification.verify import verify
from tests.support.planning.exhaustive import assignments_in_order

#: How far the score of a plan may be from the sum of its pieces, relative.
_AGREEMENT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A problem as a solve prices it."""

    problem: Problem
    families: Families
    priced: SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeOptimum:
    """The best plan of a solve, seconds."""

    listed: Listed
    free_seconds: float  # whatever moves
    #: with the price of moving, of the plans within the limit of what moves; infinite where none is within it
    charged_seconds: float


def listed_problems(request: SolveRequest) -> Iterator[Listed]:
    """Yield what a solve looks at: the problem, and where that has no plan the one with host memory."""
    for problem in request.problem.of_each_choice():
        yield from _listed_choice(problem, request)


def _listed_choice(problem: Problem, request: SolveRequest) -> Iterator[Listed]:
    if request.previous is not None:
        previous = _renamed(problem, request.previous)
        problem = with_kernels_of(allow_previous_piece_widths(problem, previous), previous.placement)
    wider = allow_host_memory(problem) if is_short_of_memory(problem, request.cost_model) else None
    names_kernels = all(table.constraints.compute_kernels is not None for table in problem.tables)
    for one in (problem,) if wider is None or names_kernels else (problem, wider):
        found = list_and_price(one, request.cost_model)
        if not isinstance(found, Infeasibility):
            yield Listed(problem=one, families=found[0], priced=found[1])


def whole_optimum(request: SolveRequest) -> WholeOptimum | None:
    """Return the best plan of a solve, of all that it may choose; ``None`` where there is none.

    Its ``listed`` is that of the best plan whatever moves.
    """
    choices = (_optimum_of(problem, request) for problem in request.problem.of_each_choice())
    found = [one for one in choices if one is not None]
    if not found:
        return None
    best = min(found, key=lambda one: one.free_seconds)
    return replace(best, charged_seconds=min(one.charged_seconds for one in found))


def _optimum_of(problem: Problem, request: SolveRequest) -> WholeOptimum | None:
    for listed in _listed_choice(problem, request):
        charged = free = _best_seconds(listed, request, listed.priced)
        if free == math.inf:
            continue
        if request.previous is not None:
            previous = _renamed(request.problem, request.previous)
            state = locate_previous_plan(listed.problem, listed.families, previous, request.cost_model)
            priced = with_move_price(listed.priced, listed.problem, listed.families, state)
            charged = _best_seconds(listed, request, priced)
        return WholeOptimum(listed=listed, free_seconds=free, charged_seconds=charged)
    return None


def _renamed(problem: Problem, previous: PreviousPlan) -> PreviousPlan:
    return replace(previous, placement=named_as_in(problem, previous.placement))


def _best_seconds(listed: Listed, request: SolveRequest, priced: SolverProblem) -> float:
    problem, serving = listed.problem, listed.problem.serving
    has_rate = serving is not None and serving.requests_per_second is not None
    if priced.shape_busy_seconds is not None or has_rate:
        priced = with_limits(priced, problem, step_seconds=None)
    for seconds, assignment in assignments_in_order(priced):
        placement = to_placement(problem, listed.families, listed.priced, assignment)
        if verify(problem, placement):
            continue
        evaluation = score(problem, placement, request.cost_model)
        if any(broken_limits(evaluation)):
            continue
        believed = seconds + seconds_without_shards(problem, seconds)
        found = evaluation.objective_seconds + move_seconds_of(priced, assignment)
        assert abs(found - believed) <= (_AGREEMENT + request.cost_model.rounding) * max(found, believed)
        return believed
    return math.inf
