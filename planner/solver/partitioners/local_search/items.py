"""Items of a search, with the families, shapes and options that each may have, as flat arrays.

An item is what is cut and placed as one: a table, or the tables of a same-rank group as one table without cuts, which
has a family of one shape for each combination of its tables' whole-table families.
"""

import itertools
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.solver.problem import Scope, SolverProblem
from planner.solver.segments import ends, side_by_side

#: Combinations of the members' whole-table families that a same-rank group may choose from.
_GROUP_COMBINATIONS = 64


class Items(NamedTuple):
    """What a search chooses from. I items; F, S, O and U count families, shapes, options and units as it sees them."""

    tables: list[tuple[int, ...]]  # of every item
    item_family: Ints  # (I + 1,) first family of each item
    item_option: Ints  # (I + 1,)
    item_slot: Ints  # (I + 1,) first slot of each item: room for its pieces
    family_source: Ints  # (F,) family of the problem; of a group that of its first table
    family_shape: Ints  # (F + 1,)
    shape_member: Ints  # (S + 1,) into member_shape
    member_shape: Ints  # shapes of the problem that a shape stands for: one, or one for each table of a group
    option_family: Ints  # (O,)
    option_source: Ints  # (O,) the listed option of the problem that it is; -1 for a group's
    option_unit: Ints  # (O + 1,)
    unit_shape: Ints  # (U,)

    def members(self, shape: int) -> Ints:
        """Return the shapes of the problem that a shape of the search stands for."""
        return self.member_shape[self.shape_member[shape] : self.shape_member[shape + 1]]

    @property
    def leader(self) -> Ints:
        """The first shape of the problem that every shape stands for, (S,)."""
        first: Ints = self.member_shape[self.shape_member[:-1]]
        return first


def items_of(priced: SolverProblem) -> Items:
    """List what a search chooses from, in the order of the items' first tables."""
    tables = _tables(priced)
    item_of_table = np.full(priced.num_tables, -1, dtype=np.int64)  # of tables that are items of their own
    alone = [(index, members[0]) for index, members in enumerate(tables) if len(members) == 1]
    item_of_table[[table for _, table in alone]] = [index for index, _ in alone]
    groups = [
        (index, shapes)
        for index, members in enumerate(tables)
        if len(members) > 1
        for shapes in _group_shapes(priced, members)
    ]
    free = np.flatnonzero(_usable_families(priced) & (item_of_table[priced.family_table] >= 0))
    of_groups = np.array([index for index, _ in groups], dtype=np.int64)
    item = np.concatenate([item_of_table[priced.family_table[free]], of_groups])
    order = np.argsort(item, kind="stable")
    first_members = np.array([shapes[0] for _, shapes in groups], dtype=np.int64)
    source = np.concatenate([free, priced.shape_family[first_members]])[order]
    group = np.concatenate([np.full(len(free), -1), np.arange(len(groups))])[order]  # -1: a table alone
    is_group = group >= 0

    first, last = priced.shapes_of_family
    begin = first[source]
    begin[is_group] = first_members[group[is_group]]
    num_shapes = np.where(is_group, 1, last[source] - first[source])
    family_shape = ends(num_shapes)
    _, leader = side_by_side(begin, num_shapes)
    num_members = np.ones(len(leader), dtype=np.int64)
    num_members[family_shape[:-1][is_group]] = [len(groups[one][1]) for one in group[is_group].tolist()]
    shape_member = ends(num_members)
    member_shape = np.repeat(leader, num_members)
    for shape, one in zip(family_shape[:-1][is_group].tolist(), group[is_group].tolist(), strict=True):
        member_shape[shape_member[shape] : shape_member[shape + 1]] = groups[one][1]

    first, last = priced.options_of_family
    num_options = np.where(is_group, 1, last[source] - first[source])
    option_family, option_source = side_by_side(first[source], num_options)
    option_source[is_group[option_family]] = -1
    listed = option_source >= 0
    first, last = priced.units_of_option
    num_units = np.where(listed, last[option_source] - first[option_source], 1)
    unit_option, unit_source = side_by_side(np.where(listed, first[option_source], 0), num_units)
    family = option_family[unit_option]
    unit_shape = np.where(
        listed[unit_option], priced.unit_shape[unit_source] - begin[family] + family_shape[family], family_shape[family]
    )
    item = item[order]
    of_items = np.arange(len(tables) + 1)
    most = np.ones(len(tables), dtype=np.int64)
    np.maximum.at(most, item[~is_group], priced.family_max_pieces[source[~is_group]])
    return Items(
        tables=tables,
        item_family=np.searchsorted(item, of_items),
        item_option=np.searchsorted(item[option_family], of_items),
        item_slot=ends(most),
        family_source=source,
        family_shape=family_shape,
        shape_member=shape_member,
        member_shape=member_shape,
        option_family=option_family,
        option_source=option_source,
        option_unit=ends(num_units),
        unit_shape=unit_shape,
    )


def _tables(priced: SolverProblem) -> list[tuple[int, ...]]:
    """Group tables into items, in the order of their first tables; overlapping groups are one."""
    group = np.arange(priced.num_tables)
    for members in priced.same_rank:
        joined = np.isin(group, group[members])
        group[joined] = group[members].min()
    items: dict[int, list[int]] = {}
    for table, first in enumerate(group.tolist()):
        items.setdefault(first, []).append(table)
    return [tuple(tables) for tables in items.values()]


def _usable_families(priced: SolverProblem) -> Bools:
    """Mark the families whose pieces may be where they would be, shape (F,); all of a table that has no such.

    What lies on all ranks is nothing for a table that may not use them all, or must keep away from another.
    """
    everywhere = np.all(priced.table_rank_allowed, axis=1)
    for group in priced.apart:
        if len(np.unique(group)) > 1:
            everywhere[group] = False
    free = (everywhere | priced.table_is_pinned)[priced.family_table]
    possible: Bools = free | (priced.family_scope != Scope.WORLD)
    any_possible = np.zeros(priced.num_tables, dtype=np.bool_)
    any_possible[priced.family_table[possible]] = True
    return possible | ~any_possible[priced.family_table]


def _group_shapes(priced: SolverProblem, tables: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return combinations of whole tables that can share a rank, the cheapest first."""
    first, last = priced.families_of_table
    shape_first, _ = priced.shapes_of_family
    seconds = priced.shape_seconds @ priced.phase_weight
    choices = []
    for table in tables:
        whole = [
            int(shape_first[f])
            for f in range(int(first[table]), int(last[table]))
            if priced.family_scope[f] == Scope.RANK and priced.family_min_pieces[f] == 1
        ]
        choices.append(sorted(whole, key=lambda shape: (seconds[shape], shape)))
    return list(itertools.islice(itertools.product(*choices), _GROUP_COMBINATIONS))
