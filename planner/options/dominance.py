"""Families that no plan needs, since another one replaces them piece by piece at no cost.

One family replaces another of the same table where it lands on the same kind of site, is no less free to place, allows
at least the same numbers of pieces and widths, and is nowhere dearer, width by width. That is a preorder; of equal
families the first stays. A family that is replaced is then replaced by one that stays, so that pairs can be compared
alone, and all at once.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.options.schemes.blocks import COLUMN_STEP
from planner.solver.problem import SolverProblem

_PAIRS = 500_000  # that are looked at together: they take little memory next to the problem


def dominated_families(priced: SolverProblem) -> Bools:
    """Return families that another family of the same table replaces at no cost, shape (F,).

    Neither what the user fixed nor what tables are cut by now is among them: whatever replaced it would have to be
    moved to.
    """
    dominated = np.zeros(priced.num_families, dtype=np.bool_)
    for better, worse in _all_replacements(priced):
        dominated[_dropped(priced, better, worse)] = True
    return dominated & ~_needed(priced)


def dominated_within_kinds(priced: SolverProblem) -> Bools:
    """Return families that one of the same kind replaces at no cost, and all of replaced kinds, shape (F,)."""
    kind = priced.family_kind
    dominated = np.zeros(priced.num_families, dtype=np.bool_)
    for better, worse in _all_replacements(priced):
        alike = kind[better] == kind[worse]
        dominated[_dropped(priced, better[alike], worse[alike])] = True
    return (dominated & ~_needed(priced)) | (replaced_kinds(priced) >= 0)[kind]


def replaced_kinds(priced: SolverProblem) -> Ints:
    """Return, of each kind, another kind that starts no later and replaces its families at no cost, (K,); -1 for none.

    Of kinds that replace each other the first stays.
    """
    kinds = priced.num_kinds
    replaced = np.zeros((priced.num_families, kinds), dtype=np.bool_)  # by which kinds
    for better, worse in _all_replacements(priced):
        replaced[worse, priced.family_kind[better]] = True
    replaced[_needed(priced)] = False
    by = np.ones((kinds, kinds), dtype=np.bool_)
    for kind in range(kinds):
        by[kind] = np.all(replaced[priced.family_kind == kind], axis=0)
    starts = priced.kind_start_seconds[:, priced.phase_weight > 0]
    by &= np.all(starts[None] <= starts[:, None], axis=2)
    np.fill_diagonal(by, False)
    by &= np.tri(kinds, k=-1, dtype=np.bool_) | ~by.T  # [kind, other]: the other comes first, or replaces it one way
    by &= ~np.any(by, axis=1)  # by one that stays itself
    result: Ints = np.where(np.any(by, axis=1), np.argmax(by, axis=1), -1)
    return result


def _dropped(priced: SolverProblem, better: Ints, worse: Ints) -> Ints:
    """Return the worse families of some pairs; of two that replace each other the first stays."""
    mutual = np.isin(better * priced.num_families + worse, worse * priced.num_families + better)
    dropped: Ints = worse[(better < worse) | ~mutual]
    return dropped


def _needed(priced: SolverProblem) -> Bools:
    """Return families that stay whatever replaces them, (F,)."""
    needed: Bools = priced.table_is_pinned[priced.family_table]
    return needed if priced.move is None else needed | priced.move.family_in_use


def _all_replacements(priced: SolverProblem) -> Iterator[tuple[Ints, Ints]]:
    """Yield, part by part, pairs of families of which one replaces the other: the better ones and the worse ones."""
    counted = np.flatnonzero(priced.phase_weight > 0)
    cost = np.concatenate([priced.shape_seconds[:, counted], priced.shape_bytes], axis=1).T.copy()
    cost = cost[np.ptp(cost, axis=1) > 0] if cost.shape[1] else cost  # what all have alike decides nothing
    start, stop = priced.families_of_table
    pairs = np.cumsum((stop - start) ** 2)
    parts = np.searchsorted(pairs, np.arange(0, int(pairs[-1]) + _PAIRS, _PAIRS), side="right")
    for first, last in zip(parts[:-1].tolist(), parts[1:].tolist(), strict=True):
        yield _replacements(priced, cost, *_pairs_of_tables(start[first:last], stop[first:last]))


def _pairs_of_tables(start: Ints, stop: Ints) -> tuple[Ints, Ints]:
    """Return all pairs of different families of the same table; families of a table are ``start`` to ``stop``."""
    count = stop - start
    one = np.repeat(np.arange(len(count)), count**2)
    place = np.arange(len(one)) - np.repeat(np.cumsum(count**2) - count**2, count**2)
    better, worse = start[one] + place // count[one], start[one] + place % count[one]
    different = better != worse
    return better[different], worse[different]


def _replacements(priced: SolverProblem, cost: Floats, better: Ints, worse: Ints) -> tuple[Ints, Ints]:
    """Return those of the pairs in which ``better`` replaces ``worse``; ``cost`` has shape (costs, S)."""
    first, last = priced.shapes_of_family
    narrowest, widest = priced.shape_columns[first], priced.shape_columns[last - 1]
    may = priced.family_scope[better] == priced.family_scope[worse]
    better, worse = better[may], worse[may]
    may = (
        (~priced.family_same_host[better] | priced.family_same_host[worse])
        & (priced.family_min_pieces[better] <= priced.family_min_pieces[worse])
        & (priced.family_max_pieces[better] >= priced.family_max_pieces[worse])
        & (narrowest[better] <= narrowest[worse])
        & (widest[better] >= widest[worse])
    )
    better, worse = better[may], worse[may]
    for width in (narrowest, widest):  # most pairs need no other look
        better, worse = _no_costlier_at(cost, first, narrowest, better, worse, width[worse])
    steps = last[worse] - first[worse]
    pair = np.repeat(np.arange(len(worse)), steps)
    mine = first[worse][pair] + np.arange(len(pair)) - (np.cumsum(steps) - steps)[pair]
    theirs = _shape_of_width(first, narrowest, better[pair], priced.shape_columns[mine])
    is_costlier = np.zeros(len(worse), dtype=np.bool_)
    for one in cost:
        is_costlier[pair[one[theirs] > one[mine]]] = True
    return better[~is_costlier], worse[~is_costlier]


def _no_costlier_at(
    cost: Floats, first: Ints, narrowest: Ints, better: Ints, worse: Ints, columns: Ints
) -> tuple[Ints, Ints]:
    """Return the pairs whose better family costs no more in pieces of so many columns, shape (pairs,)."""
    theirs = _shape_of_width(first, narrowest, better, columns)
    mine = _shape_of_width(first, narrowest, worse, columns)
    for one in cost:
        may = one[theirs] <= one[mine]
        better, worse, theirs, mine = better[may], worse[may], theirs[may], mine[may]
    return better, worse


def _shape_of_width(first: Ints, narrowest: Ints, family: Ints, columns: Ints) -> Ints:
    shape: Ints = first[family] + (columns - narrowest[family]) // COLUMN_STEP
    return shape
