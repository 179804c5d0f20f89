"""resume: begin where a plan that runs already is, and change what the new problem does not allow.

Tables that may stay where they are stay; those that are new, or may not, are placed around them where
they hurt least; where the memory of some rank is too small, pieces move until it is not.
"""

import numpy as np

from cost_models.arrays import Bools
from planner.solver.evaluate import touched_ranks
from planner.solver.partitioners.base import Effort, OnIncumbent, SolveLimits
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import heaviest_first
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.partitioners.local_search.starts import choose, target_of
from planner.solver.problem import Assignment, Outcome, SolverProblem

NAME = "previous_plan"


def resume(
    priced: SolverProblem, before: Assignment, limits: SolveLimits, *, on_incumbent: OnIncumbent | None = None
) -> Outcome:
    """Complete, and mend, an assignment of some of the tables.

    If all tables may stay, that is a plan as it is, to the last fraction of a byte: a search adds up in another order.
    """
    effort = Effort(limits)
    best = IncumbentTracker(priced, NAME, on_incumbent)
    part = legal_part(priced, with_pins(priced, before))
    best.consider(part)
    view = search_view(priced)
    target = target_of(view, None)
    options = choose(view, target, 1.0)
    chain = Chain(view, limits.seed)
    if chain.complete(part, options, target, heaviest_first(view, options, target)):
        best.consider(chain.assignment())
        if best.assignment is None:
            chain.repair(effort)
            best.consider(chain.assignment())
    detail = "" if best.assignment is not None else "the previous plan could not be mended"
    return best.outcome(effort.limit if effort.fraction >= 1 else "iterations", detail)


def with_pins(priced: SolverProblem, part: Assignment) -> Assignment:
    """Return an assignment with the pinned tables where they are pinned."""
    free = ~priced.table_is_pinned[priced.shape_table[part.piece_shape]]
    shape = np.concatenate([part.piece_shape[free], priced.pinned_shape])
    site = np.concatenate([part.piece_site[free], priced.pinned_site])
    order = np.argsort(priced.shape_table[shape], kind="stable")
    return Assignment(piece_shape=shape[order], piece_site=site[order])


def legal_part(priced: SolverProblem, before: Assignment) -> Assignment:
    """Return the tables that may be where they are: on allowed ranks, and apart from those that come first.

    Pinned tables come before all others.
    """
    touched = touched_ranks(priced, before)
    is_allowed: Bools = ~np.any(touched & ~priced.table_rank_allowed, axis=1)
    for group in priced.apart:
        taken = np.zeros(priced.num_ranks, dtype=np.bool_)
        for table in sorted(group.tolist(), key=lambda table: (not priced.table_is_pinned[table], table)):
            is_allowed[table] = is_allowed[table] and not np.any(taken & touched[table])
            if is_allowed[table]:
                taken |= touched[table]
    allowed_pieces = is_allowed[priced.shape_table[before.piece_shape]]
    return Assignment(piece_shape=before.piece_shape[allowed_pieces], piece_site=before.piece_site[allowed_pieces])
