"""Cuts as listed options: which option an assignment's cut is, and a list that has all of them.

A search may cut a table in a way that no option lists. Partitioners that choose from the list can start
from such a plan only where its cuts are on the list too.
"""

from dataclasses import replace

import numpy as np

from cost_models.arrays import Ints
from planner.solver.problem import Assignment, SolverProblem
from planner.solver.segments import ranges_of


def options_of(priced: SolverProblem, assignment: Assignment) -> Ints:
    """Return the listed option with the cut of each table, shape (T,); -1 where none has it.

    The order of the pieces of a cut does not count. The assignment has pieces of every table.
    """
    shape = assignment.piece_shape
    first, last = ranges_of(priced.shape_table[shape], priced.num_tables)
    family = priced.shape_family[shape[first]]
    option_first, option_last = priced.options_of_family
    unit_first, unit_last = priced.units_of_option
    result = np.full(priced.num_tables, -1, dtype=np.int64)
    for table in range(priced.num_tables):
        low, high = int(option_first[family[table]]), int(option_last[family[table]])
        mine = np.sort(shape[first[table] : last[table]])
        same_size = np.flatnonzero(unit_last[low:high] - unit_first[low:high] == len(mine)) + low
        for option in same_size.tolist():
            if np.array_equal(np.sort(priced.unit_shape[unit_first[option] : unit_last[option]]), mine):
                result[table] = option
                break
    return result


def with_cuts_of(priced: SolverProblem, assignment: Assignment) -> SolverProblem:
    """Return the same problem with every cut of an assignment on the list of its family.

    Shapes and families keep their indices; options do not, since a new one is the last of its family.
    The same object comes back where nothing is missing.
    """
    missing = np.flatnonzero(options_of(priced, assignment) < 0)
    if len(missing) == 0:
        return priced
    shape = assignment.piece_shape
    first, last = ranges_of(priced.shape_table[shape], priced.num_tables)
    sizes = last[missing] - first[missing]
    new_unit_shape = np.concatenate([shape[first[table] : last[table]] for table in missing])
    new_family = priced.shape_family[shape[first[missing]]]
    # A stable sort by family puts new options behind those that are there.
    family = np.concatenate([priced.option_family, new_family])
    order = np.argsort(family, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    new_owner = np.repeat(np.arange(len(missing)) + priced.num_options, sizes)
    owner = rank[np.concatenate([priced.unit_option, new_owner])]
    by_owner = np.argsort(owner, kind="stable")
    return replace(
        priced,
        option_family=family[order],
        unit_option=owner[by_owner],
        unit_shape=np.concatenate([priced.unit_shape, new_unit_shape])[by_owner],
    )
