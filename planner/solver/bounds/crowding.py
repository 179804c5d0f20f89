"""What leaves the other tables too little memory, whatever the others choose.

A choice of a table is in no plan where its bytes and the least bytes of all other tables exceed what the cluster has.
Without that choice, other choices may exceed it too, so the rule is applied until it drops no more. Replicas of large
tables are such choices: a relaxation that mixes them with others is far too optimistic.
"""

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.bounds.relaxation import Relaxation
from planner.solver.problem import SolverProblem

_MORE, _MORE_BYTES = 1 + 1e-9, 1.0  # than the room: sums of whole bytes are never off by so much


def crowding_families(priced: SolverProblem) -> Bools:
    """Return families that leave the other tables too little memory, shape (F,).

    There are none if a table would have no family left: a search reports which tables are too large.

    A table takes at least columns x min over widths w of bytes(w) / w of a family in each tier of the whole cluster,
    since the widths of its pieces add up to its columns.
    """
    if not priced.num_families:
        return np.zeros(0, dtype=np.bool_)
    left = _families_with_room(priced)
    return np.zeros(priced.num_families, dtype=np.bool_) if left is None else ~left


def exceed_memory(priced: SolverProblem) -> bool:
    """Whether the tables take more memory than the cluster has, whatever families they choose."""
    return _families_with_room(priced) is None


def _families_with_room(priced: SolverProblem) -> Bools | None:
    """Return families that leave the other tables room, (F,); ``None`` where a table has none left."""
    first, _ = priced.shapes_of_family
    per_column = np.minimum.reduceat(priced.shape_total_bytes / priced.shape_columns[:, None], first, axis=0)
    taken: Floats = per_column * priced.table_columns[priced.family_table][:, None]
    room: Floats = priced.capacity_bytes.sum(axis=0)
    every = np.ones(priced.num_families, dtype=np.bool_)
    return _with_room(priced.family_table, priced.num_tables, taken, room, every)


def choices_with_room(model: Relaxation, left: Bools) -> Bools | None:
    """Return those of some choices that leave the other tables room, (C,); ``None`` where a table has none left."""
    return _with_room(model.choice_table, model.num_tables, model.total_bytes, model.cluster_bytes, left)


def _with_room(table: Ints, num_tables: int, taken: Floats, room: Floats, left: Bools) -> Bools | None:
    """Drop what exceeds the room with the least of all other tables, until nothing does or a table has none."""
    room = room * _MORE + _MORE_BYTES
    while np.all(np.bincount(table[left], minlength=num_tables)):
        least = np.full((num_tables, len(room)), np.inf)
        np.minimum.at(least, table[left], taken[left])
        fits = left & np.all((least.sum(axis=0) - least)[table] + taken <= room, axis=1)
        if np.array_equal(fits, left):
            return left
        left = fits
    return None
