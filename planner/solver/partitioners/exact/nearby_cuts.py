"""Cuts that no list has, near those of a plan: partitioners that choose from a list may then choose them too."""

import numpy as np

from cost_models.arrays import Ints
from planner.solver.partitioners.exact.listed_cuts import with_cuts_of
from planner.solver.problem import Assignment, SolverProblem

_MOVES = 3  # split, merge, shift


def with_nearby_cuts(priced: SolverProblem, plan: Assignment, rounds: int, rng: np.random.Generator) -> SolverProblem:
    """Return the problem with up to ``rounds`` more cuts on the list of every table that is not pinned.

    The cuts of the plan are on the list as well. Shapes and families keep their indices.
    """
    listed = with_cuts_of(priced, plan)
    table = priced.shape_table[plan.piece_shape]
    first = np.searchsorted(table, np.arange(priced.num_tables + 1))
    own = [plan.piece_shape[first[t] : first[t + 1]] for t in range(priced.num_tables)]
    for _ in range(rounds):
        cuts = [cut if priced.table_is_pinned[t] else _nearby_cut(priced, cut, rng) for t, cut in enumerate(own)]
        shape = np.concatenate(cuts)
        listed = with_cuts_of(listed, Assignment(piece_shape=shape, piece_site=np.zeros_like(shape)))
    return listed


def _nearby_cut(priced: SolverProblem, cut: Ints, rng: np.random.Generator) -> Ints:
    """Return a cut with a piece split, two merged, or columns shifted between two; the same if that is illegal."""
    widths = priced.shape_columns[cut]
    one, other = rng.permutation(len(cut))[[0, -1]].tolist()
    move = rng.integers(_MOVES) if len(cut) > 1 else 0
    part = int(rng.choice(_widths_of_kin(priced, cut)))
    if move == 0:
        changed = np.append(np.delete(widths, one), [part, widths[one] - part])
    elif move == 1:
        changed = np.append(np.delete(widths, [one, other]), widths[one] + widths[other])
    else:
        changed = np.append(np.delete(widths, [one, other]), [part, widths[one] + widths[other] - part])
    changed = np.sort(changed)[::-1]
    for family in _kin(priced, cut):
        low, high = (int(ends[family]) for ends in priced.shapes_of_family)
        found = low + np.searchsorted(priced.shape_columns[low:high], changed)
        few = priced.family_min_pieces[family] <= len(found) <= priced.family_max_pieces[family]
        if few and np.all(found < high) and np.array_equal(priced.shape_columns[found], changed):
            return found
    return cut


def _kin(priced: SolverProblem, cut: Ints) -> list[int]:
    """Return the families whose pieces lie on the same kind of site, the cut's own first."""
    own = int(priced.shape_family[cut[0]])
    table = priced.family_table[own]
    families = np.arange(priced.families_of_table[0][table], priced.families_of_table[1][table])
    alike = priced.family_scope[families] == priced.family_scope[own]
    return sorted(families[alike].tolist(), key=lambda family: (family != own, family))


def _widths_of_kin(priced: SolverProblem, cut: Ints) -> Ints:
    """Return the widths that pieces of those families have, columns."""
    shapes = [np.arange(*(int(ends[family]) for ends in priced.shapes_of_family)) for family in _kin(priced, cut)]
    return np.unique(priced.shape_columns[np.concatenate(shapes)])
