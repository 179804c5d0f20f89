"""What a gap consists of: what other places for the same shards may gain, and what only other shards may.

Each table is fixed to the plan's choice: its family, and about its number of pieces. The average rank of these choices
is the time if ranks shared the work evenly. The branched and packed relaxation bounds how evenly they can share it, and
so all plans whose tables have these families and as many pieces.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools
from planner.solver.bounds.boxes import branch, never
from planner.solver.bounds.chain import ROUNDING
from planner.solver.bounds.relaxation import Relaxation, relaxations
from planner.solver.evaluate import step_seconds_of, used_kinds
from planner.solver.problem import Assignment, SolverProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSplit:
    """Seconds that add up to those between a plan and a bound; none is below zero."""

    balance_seconds: float  # what other places for the same pieces may gain, at most
    packing_seconds: float  # lost because no placement spreads the plan's pieces evenly
    choice_seconds: float  # what these pieces cost, spread evenly, above the choices that the bound mixes


def divide_gap(
    priced: SolverProblem,
    assignment: Assignment,
    bound_seconds: float,
    *,
    max_boxes: int,
    is_over: Callable[[], bool] = never,
) -> GapSplit:
    """Divide the seconds between the step of an assignment and a bound on all plans.

    The price of moving from a plan that runs already is in neither.
    """
    own = _with_own_starts(priced, assignment)
    found = step_seconds_of(priced, assignment)
    even, packed = bound_seconds, bound_seconds
    for model in relaxations(own):
        choices = _choices_of(model, own, assignment)
        branched = branch(model, max_boxes=max_boxes, known_seconds=found, choices=choices, is_over=is_over)
        even = max(even, _spread_evenly(model, choices) * (1 - ROUNDING))
        packed = max(packed, branched.bound_seconds * (1 - ROUNDING))
    packed = min(max(packed, even), found)
    even = min(even, packed)
    return GapSplit(
        balance_seconds=found - packed, packing_seconds=packed - even, choice_seconds=max(even - bound_seconds, 0.0)
    )


def _with_own_starts(priced: SolverProblem, assignment: Assignment) -> SolverProblem:
    """Return the problem of plans that pay just the starts of an assignment."""
    if not priced.num_kinds:
        return priced
    used = used_kinds(priced, assignment)
    return priced if np.array_equal(used, priced.charged_kinds) else replace(priced, charged_kinds=used)


def _choices_of(model: Relaxation, priced: SolverProblem, assignment: Assignment) -> Bools:
    """Return the choice of each table that its pieces are of, (C,): of the family, with no more pieces."""
    family = priced.shape_family[assignment.piece_shape]
    num_pieces = np.bincount(family, minlength=priced.num_families)
    of_plan = np.flatnonzero((num_pieces[model.family] > 0) & (model.pieces <= num_pieces[model.family]))
    chosen = np.zeros(len(model.family), dtype=np.bool_)
    is_last = np.append(model.family[of_plan[1:]] != model.family[of_plan[:-1]], True)
    chosen[of_plan[is_last]] = True
    return chosen


def _spread_evenly(model: Relaxation, choices: Bools) -> float:
    """Return what the step takes if every rank takes as much of each phase, seconds."""
    mean = np.sum(model.total[choices], axis=0)
    return float(model.weight @ np.maximum(mean - model.window, 0.0))
