"""Parts of a plan small enough to be solved exactly while the rest of it stays where it is.

What keeps an objective up are the most loaded ranks of a phase that is far from balance. A neighbourhood of ranks
frees tables that touch those, and lets them go to the least loaded ranks and a few others; a neighbourhood of tables
frees fewer of them and lets them go anywhere, so that they may spread over hosts or all ranks, or come back from there.
"""

from dataclasses import replace

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.evaluate import rank_loads, touched_ranks
from planner.solver.problem import Assignment, Objective, SolverProblem

_SKIPPED = 0.3  # chance that the next rank in order is passed over, so that no two neighbourhoods are alike


def around_ranks(priced: SolverProblem, plan: Assignment, size: int, rng: np.random.Generator) -> SolverProblem:
    """Return the problem with about ``size`` tables of heavy and light ranks free to change places."""
    load = _binding_load(priced, plan, rng)
    touched = touched_ranks(priced, plan)
    local = ~priced.table_is_pinned & ~touched.all(axis=1)
    heavy_first = np.argsort(-load, kind="stable")
    chosen = [int(heavy_first[0])]
    sides = [_with_gaps(heavy_first[1:], rng), _with_gaps(heavy_first[:0:-1], rng)]
    while np.count_nonzero(local & touched[:, chosen].any(axis=1)) < size and len(chosen) < priced.num_ranks:
        side = sides[len(chosen) % 2]
        rest = side[~np.isin(side, chosen)]
        chosen.append(int(rest[0]))
    on_heaviest, elsewhere = touched[:, chosen[0]], touched[:, chosen[1:]].any(axis=1)
    first = rng.permutation(np.flatnonzero(local & on_heaviest))
    then = rng.permutation(np.flatnonzero(local & elsewhere & ~on_heaviest))
    half = max(size // 2, size - len(then))
    free = _whole_groups(priced, np.concatenate([first[:half], then])[:size])
    sites = touched.copy()
    sites[:, chosen] = True
    return _freed(priced, plan, free, priced.table_rank_allowed & sites)


def around_tables(priced: SolverProblem, plan: Assignment, size: int, rng: np.random.Generator) -> SolverProblem:
    """Return the problem with ``size`` tables free to go anywhere, half of them of the heaviest rank."""
    touched = touched_ranks(priced, plan)[:, int(np.argmax(_binding_load(priced, plan, rng)))]
    first = rng.permutation(np.flatnonzero(~priced.table_is_pinned & touched))[: (size + 1) // 2]
    then = rng.permutation(np.setdiff1d(np.flatnonzero(~priced.table_is_pinned), first))
    free = _whole_groups(priced, np.concatenate([first, then])[:size])
    return _freed(priced, plan, free, priced.table_rank_allowed)


def _binding_load(priced: SolverProblem, plan: Assignment, rng: np.random.Generator) -> Floats:
    """Return what ranks carry in a phase, shape (R,): each as likely as it is far from balance."""
    seconds = rank_loads(priced, plan).seconds * priced.phase_weight
    if priced.objective is Objective.MAX_RANK_TIME:
        total: Floats = seconds.sum(axis=1)
        return total
    slowest = seconds.max(axis=0)
    exposed = slowest - priced.phase_weight * priced.phase_window_seconds
    excess = np.clip(np.minimum(slowest - seconds.mean(axis=0), exposed), 0.0, None)
    if excess.sum() <= 0:  # everything is hidden, or nothing could be better
        excess = slowest + 1.0
    phase: Floats = seconds[:, rng.choice(priced.num_phases, p=excess / excess.sum())]
    return phase


def _with_gaps(order: Ints, rng: np.random.Generator) -> Ints:
    """Return the order with some of its members put at its end."""
    last = rng.random(len(order)) < _SKIPPED
    return np.concatenate([order[~last], order[last]])


def _whole_groups(priced: SolverProblem, tables: Ints) -> Bools:
    """Return which tables are free, shape (T,): of a same-rank group all or none."""
    free = np.zeros(priced.num_tables, dtype=np.bool_)
    free[tables] = True
    for group in priced.same_rank:
        free[group] = np.any(free[group]) and not np.any(priced.table_is_pinned[group])
    return free


def _freed(priced: SolverProblem, plan: Assignment, free: Bools, allowed: Bools) -> SolverProblem:
    """Return the problem with every other table pinned where the plan has it."""
    stays = ~free[priced.shape_table[plan.piece_shape]]
    return replace(
        priced,
        pinned_shape=plan.piece_shape[stays],
        pinned_site=plan.piece_site[stays],
        table_rank_allowed=np.where(free[:, None], allowed, priced.table_rank_allowed),
    )
