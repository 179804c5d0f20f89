"""warm_start: begin with a plan of a neighbouring problem, whose tables lie where they lay or are cut as they were.

Batches and clusters of another size leave ranks another room. If tables do not fit as they were, those that are cheaper
by what memory costs now take less of it, and only these change.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.solver.partitioners.base import Effort, SolveLimits
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search.chain import FINAL_REFINEMENT, Chain
from planner.solver.partitioners.local_search.constructions import heaviest_first
from planner.solver.partitioners.local_search.search_data import View, search_view
from planner.solver.partitioners.local_search.starts import Target, choose_among, priced_cost, target_of
from planner.solver.partitioners.resume import legal_part, with_pins
from planner.solver.problem import Assignment, Outcome, SolverProblem, no_ints

NAME = "warm_start"
_CLOSE = 0.9  # part of the tables that lie where they lay


def begin_warm(priced: SolverProblem, in_place: Assignment, alike: Bools, limits: SolveLimits) -> tuple[Outcome, bool]:
    """Return the best plan that a few constructions from a known one lead to, and whether it is close to that one.

    The plan is refined as long as limits allow. It is close if hardly any table had to be placed again.

    Parameters
    ----------
    in_place
        Some of the tables, each with all its pieces where they can lie.
    alike
        Listed options, (O,), that are most like what is known of their table.
    """
    effort = Effort(limits)
    best = IncumbentTracker(priced, NAME, None)
    part = legal_part(priced, with_pins(priced, in_place))
    best.consider(part)  # as it is, to the last fraction of a byte: a search adds up in another order
    view = search_view(priced)
    in_use = _of_kinds_in_use(priced, alike)
    pinned = with_pins(priced, Assignment(piece_shape=no_ints(), piece_site=no_ints()))
    chains = [
        (chain, _part_of_tables(priced, stays))
        for known in (part, pinned)
        for chain, stays in _completed(view, known, alike, in_use, limits.seed)
    ]
    chain, stays = min(chains, key=lambda built: built[0].rating, default=(None, 0.0))
    is_close = stays >= _CLOSE
    if chain is not None:
        chain.run(FINAL_REFINEMENT, effort, 1.0, 0.0)
        if chain.best_seconds == np.inf and best.assignment is None:
            chain.repair(Effort(limits))
        best.consider(chain.assignment())
    detail = "" if best.assignment is not None else "no completion of the warm start fits the memory of every rank"
    return best.outcome(effort.limit, detail), is_close


def _part_of_tables(priced: SolverProblem, known: Assignment) -> float:
    return len(np.unique(priced.shape_table[known.piece_shape])) / priced.num_tables


def _of_kinds_in_use(priced: SolverProblem, alike: Bools) -> Bools:
    """Return the listed options of kinds that the known plan uses, (O,): another kind has a start of its own."""
    if not priced.num_kinds:
        return np.ones(priced.num_options, dtype=np.bool_)
    kind = priced.family_kind[priced.option_family]
    return np.isin(kind, kind[alike])


def _completed(
    view: View, known: Assignment, alike: Bools, in_use: Bools, seed: int
) -> Iterator[tuple[Chain, Assignment]]:
    """Yield the known tables with all others cut alike; if that does not fit, also with tables that take less room.

    The assignment is what stays as it is known.
    """
    target = target_of(view, None)
    is_known = np.zeros(view.priced.num_tables, dtype=np.bool_)
    is_known[view.priced.option_table[alike]] = True
    options = choose_among(view, target, np.where(is_known[view.priced.option_table], alike, in_use))
    chain = Chain(view, seed)
    if chain.complete(known, options, target, heaviest_first(view, options, target)):
        yield chain, known
        if chain.best_seconds < np.inf:
            return
    lighter = _lighter(view, target, options, choose_among(view, target, in_use))
    items = np.flatnonzero(lighter != options)
    changed = np.concatenate([no_ints(), *(view.items.tables[item] for item in items.tolist())])
    stays = ~np.isin(view.priced.shape_table[known.piece_shape], changed)
    rest = with_pins(view.priced, Assignment(piece_shape=known.piece_shape[stays], piece_site=known.piece_site[stays]))
    chain = Chain(view, seed)
    if chain.complete(rest, lighter, target, heaviest_first(view, lighter, target)):
        yield chain, rest


def _lighter(view: View, target: Target, options: Ints, others: Ints) -> Ints:
    """Return options with others for items that these make cheaper by taking less memory, at what it costs, (I,)."""
    cost = priced_cost(view, target)
    takes_less = np.any(view.option_bytes[others] < view.option_bytes[options], axis=1)
    return np.where(takes_less & (cost[others] < cost[options]), others, options)
