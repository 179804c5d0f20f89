"""Where a search begins: a plan of a neighbouring problem, as far as this one has its tables, cuts and ranks.

The plan may be of another cluster, of other statistics or of other tables. A table whose shards are those of a family
can lie where it lay. Of every table that the plan names the sharding type is known, and into how many pieces its
columns were cut: that is worth as much where there are more or fewer ranks than there were.
"""

from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.domain.plan.placement import Placement
from planner.domain.problem.problem import Problem
from planner.options.enumerate import Families
from planner.orchestration.placement.from_placement import families_like, pieces_of
from planner.solver.problem import Assignment, SolverProblem
from planner.solver.segments import ranges_of

#: What a family has in common with what a plan has of its table: nothing, the sharding type, the kernel, all storage.
_NOTHING, _SCHEME, _KERNEL, _STORAGE = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStart:
    """A plan in terms of the families of a problem."""

    likeness: Ints  # (F,) what each family has in common with what the plan has of its table
    num_pieces: Ints  # (T,) into which the plan cuts the columns of each table; 0 of tables that it lacks
    # Pieces of tables whose shards are those of a family: by table, left to right.
    piece_family: Ints  # (N,)
    piece_columns: Ints  # (N,)
    piece_site: Ints  # (N,)

    def in_place(self, priced: SolverProblem) -> Assignment:
        """Return the tables that can lie where they lay, each with all its pieces."""
        widest = int(max(priced.shape_columns.max(), self.piece_columns.max(initial=0))) + 1
        keys = priced.family_source[priced.shape_family] * widest + priced.shape_columns
        order = np.argsort(keys)
        wanted = self.piece_family * widest + self.piece_columns
        shape = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
        is_whole = ~np.isin(self.piece_family, self.piece_family[keys[shape] != wanted])
        return Assignment(piece_shape=shape[is_whole], piece_site=self.piece_site[is_whole])

    def alike(self, priced: SolverProblem) -> Bools:
        """Return which listed options are most like what the plan has of their table, (O,); none of tables it lacks."""
        likeness, options_of_table = (
            self.likeness[priced.family_source],
            ranges_of(priced.option_table, priced.num_tables),
        )
        first, last = priced.units_of_option
        pieces_apart = np.abs(last - first - self.num_pieces[priced.option_table])
        unlike = (_STORAGE - likeness[priced.option_family]) * (pieces_apart.max(initial=0) + 1) + pieces_apart
        least = np.minimum.reduceat(unlike, options_of_table[0])
        is_like: Bools = (unlike == least[priced.option_table]) & (likeness[priced.option_family] > _NOTHING)
        return is_like


def locate_warm_start(problem: Problem, families: Families, placement: Placement) -> WarmStart:
    """Find a plan among the families of a problem, which names tables as the plan does."""
    by_name = {placed.name: placed for placed in placement.tables}
    placed = [by_name.get(table.name) for table in problem.tables]
    wanted = np.array([(-1, -1) if one is None else (one.sharding_type, one.compute_kernel) for one in placed])
    table, *of_family = np.array([(one.table, one.scheme, one.kernel) for one in families.families]).T
    is_scheme, is_kernel = of_family == wanted[table].T
    likeness = np.where(is_scheme, np.where(is_kernel, _KERNEL, _SCHEME), _NOTHING)
    pieces: list[tuple[int, int, int]] = []
    for one, family in zip(placed, families_like(problem, families, placed), strict=True):
        if one is None or family is None:
            continue
        likeness[family] = _STORAGE
        pieces += [(family, *piece) for piece in pieces_of(problem, families.families[family], one) or ()]
    found = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    return WarmStart(
        likeness=likeness,
        num_pieces=np.array([0 if one is None else len(np.unique(one.shards.column_offset)) for one in placed]),
        piece_family=found[:, 0].copy(),
        piece_columns=found[:, 1].copy(),
        piece_site=found[:, 2].copy(),
    )
