"""Ranks that are alike for a piece, and plans whose pieces are put together again on them by differencing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.evaluate import objective_of, rank_loads
from planner.solver.partitioners.ldm.differencing import difference
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem

_HIDDEN = 1e-3  # what a second counts that dense compute hides


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What differencing looks at."""

    sharpness: float  # see differencing.difference
    memory: float  # what a full rank counts in every tier, in parts of the objective


def interchanged(priced: SolverProblem, assignment: Assignment, balance: Balance) -> Assignment:
    """Return a plan of the same cuts whose free pieces change places with each other; memory is no more than a price.

    Every class of equal ranks keeps its pieces. Rules other than memory stay as well kept as they were.
    """
    site = assignment.piece_site.copy()
    for members, free, absent in _exchanges(priced, assignment.piece_shape, site):
        keep = ~(free | absent)
        fixed = Assignment(piece_shape=assignment.piece_shape[keep], piece_site=site[keep])
        shape = assignment.piece_shape[free]
        loads, on_ranks = rank_loads(priced, fixed), members[0]
        importance = _importance(priced, rank_loads(priced, assignment).seconds)
        pieces = [priced.shape_seconds[shape] * (priced.rank_slowdown[on_ranks] * importance)]
        ranks = [loads.seconds[members] * importance]
        if priced.objective is Objective.MAX_RANK_TIME:
            pieces, ranks = ([one.sum(axis=1, keepdims=True) for one in both] for both in (pieces, ranks))
        if balance.memory > 0:
            price = balance.memory * objective_of(priced, assignment) / np.maximum(priced.capacity_bytes[on_ranks], 1.0)
            pieces.append(priced.shape_bytes[shape] * price)
            ranks.append(loads.bytes[members] * price)
        given, carried = np.concatenate(pieces, axis=1), np.concatenate(ranks, axis=1)
        used = np.any(given > 0, axis=0)
        used[0] = True
        site[free] = members[difference(given[:, used], carried[:, used], balance.sharpness)]
    return Assignment(piece_shape=assignment.piece_shape, piece_site=site)


def is_movable(priced: SolverProblem, shape: Ints) -> Bools:
    """Whether pieces of these shapes go onto one rank each whatever becomes of other pieces, shape (N,)."""
    tied = priced.table_is_pinned.copy()
    for group in (*priced.same_rank, *priced.apart):
        tied[group] = True
    on_rank = (priced.shape_scope == Scope.RANK) & ~priced.family_same_host[priced.shape_family]
    movable: Bools = on_rank[shape] & ~tied[priced.shape_table[shape]]
    return movable


def _exchanges(priced: SolverProblem, shape: Ints, site: Ints) -> Iterator[tuple[Ints, Bools, Bools]]:
    """Yield ranks, the pieces on them that may be on any of them, and those that are thought away.

    First come pieces that may use some ranks only, on those that the same tables may use, as if the others
    were not there; then the others, on all ranks of one speed and capacity. Sites may change from one to the next.
    """
    movable, table = is_movable(priced, shape), priced.shape_table[shape]
    alike = np.concatenate([priced.capacity_bytes, priced.rank_slowdown], axis=1)
    finer, coarser = _classes(alike, priced.table_rank_allowed.T), _classes(alike)

    def on(members: Ints) -> Bools:
        anywhere = np.count_nonzero(priced.table_rank_allowed[:, members], axis=1) == len(members)
        found: Bools = movable & anywhere[table] & np.isin(site, members)
        return found

    widely = np.zeros_like(movable)
    for members in coarser:
        widely |= on(members)
    nothing = np.zeros_like(movable)
    for members, free, absent in (
        *((members, on(members) & ~widely, widely) for members in finer),
        *((members, on(members), nothing) for members in coarser),
    ):
        if len(members) > 1 and np.any(free):
            yield members, free, absent


def _classes(*marks: NDArray[Any]) -> list[Ints]:
    """Return the ranks that have the same marks, given per rank in rows."""
    classes: dict[bytes, list[int]] = {}
    for rank, rows in enumerate(zip(*marks, strict=True)):
        classes.setdefault(b"".join(row.tobytes() for row in rows), []).append(rank)
    return [np.array(members) for members in classes.values()]


def _importance(priced: SolverProblem, seconds: Floats) -> Floats:
    """Return what a second of each phase counts, shape (P,), given what ranks carry, shape (R, P)."""
    is_step = priced.objective is Objective.STEP_TIME
    hidden = is_step & (seconds.max(axis=0) <= priced.window_seconds)
    counts = np.where(hidden, _HIDDEN, 1.0)
    weighted: Floats = priced.phase_weight * counts
    return weighted
