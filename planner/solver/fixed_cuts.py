"""Cuts that are given, with their order: a search decides where their pieces go, and nothing else."""

import numpy as np

from cost_models.arrays import Ints
from planner.solver.problem import Assignment, SolverProblem


def in_fixed_order(priced: SolverProblem, assignment: Assignment) -> Assignment:
    """Return the same pieces on the same sites, those of fixed cuts in the order of the cut.

    Pieces of equal width stay in their order. An assignment that cuts such tables in another way is returned unchanged.
    """
    shape, site = assignment.piece_shape, assignment.piece_site
    mine = np.flatnonzero(priced.table_has_fixed_cut[priced.shape_table[shape]])
    if not len(mine):
        return assignment
    columns = priced.shape_columns[shape[mine]]
    have = np.lexsort((columns, priced.shape_table[shape[mine]]))
    want = np.lexsort((priced.fixed_cut_columns, priced.fixed_cut_table))
    if not np.array_equal(columns[have], priced.fixed_cut_columns[want]):
        return assignment
    source = np.arange(len(shape))
    source[mine[want]] = mine[have]
    return Assignment(piece_shape=shape[source], piece_site=site[source])


def has_fixed_cuts(priced: SolverProblem, shape: Ints) -> bool:
    """Whether the pieces of tables with fixed cuts, in the order of tables, have the given widths in their order."""
    mine = priced.table_has_fixed_cut[priced.shape_table[shape]]
    return np.array_equal(priced.shape_columns[shape[mine]], priced.fixed_cut_columns)
