"""What a search sees of a problem: items, families, shapes and options as flat arrays.

An item is what is cut and placed as one: a table, or the tables of a same-rank group as one
table without cuts. Phases that no objective counts are left out, phases are one for max_rank_time,
and seconds exist once per class of equally fast ranks.
"""

import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.partitioners.carried import moving_items
from planner.priced import Assignment, Objective, PricedOptions, Scope

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Ints32 = NDArray[np.int32]

#: Combinations of the members' whole-table families that a same-rank group may choose from.
_GROUP_COMBINATIONS = 64


class Data(NamedTuple):
    """The arrays of a problem, as compiled code takes them. I items, R ranks, H hosts, Q phases."""

    item_columns: Ints  # (I,)
    item_fixed: Bools  # (I,) pinned: the search leaves it alone
    item_family: Ints  # (I + 1,) first family of each item
    item_option: Ints  # (I + 1,) first option of each item
    item_slot: Ints  # (I + 1,) first slot of each item: room for its pieces
    family_scope: Ints  # (F,)
    family_same_host: Bools  # (F,)
    family_min_pieces: Ints  # (F,)
    family_max_pieces: Ints  # (F,)
    family_shape: Ints  # (F + 1,) first shape of each family
    family_narrowest: Ints  # (F,) columns of its first shape
    shape_columns: Ints  # (S,)
    shape_seconds: Floats  # (classes, S, Q)
    shape_bytes: Floats  # (S, M)
    option_family: Ints  # (O,)
    option_unit: Ints  # (O + 1,) first unit of each option
    unit_shape: Ints  # (U,)
    rank_class: Ints  # (R,)
    rank_host: Ints  # (R,)
    capacity: Floats  # (R, M)
    allowed: Bools  # (I, R)
    host_allowed: Bools  # (I, H)
    apart_first: Ints  # (I + 1,) into apart_item
    apart_item: Ints  # items that may not share a rank with an item
    slot_item: Ints  # (slots,)
    weight: Floats  # (Q,)
    window: Floats  # (Q,)
    # What moves from a plan that runs already. A place is a rank, or R and a host; both arrays are empty without one.
    columns_before: Ints32  # (I, R + H) columns of an item that a piece on the place finds there
    column_bytes: Floats  # (I, R + H) bytes that each of these spares
    shape_item: Ints  # (S,)
    shape_moved: Floats  # (S,) bytes that a piece moves where it finds nothing; on all ranks, what it does move
    home_family: Ints  # (I,) the family that an item has where nothing of it moves; -1 where it cannot stay
    home_pieces: Ints  # (I,)
    home_shape: Ints  # (slots,)
    home_site: Ints  # (slots,)
    move: Floats  # (3,) seconds per byte, the most bytes, and bytes that count as one rank's overflow beyond


class View(NamedTuple):
    """Data, and the way back to tables."""

    priced: PricedOptions
    data: Data
    shape_members: list[tuple[int, ...]]  # (S,) table shapes that a search shape stands for
    option_seconds: Floats  # (O, Q) over all ranks, at the mean of the rank classes
    option_largest: Floats  # (O, Q) of the largest unit that is not on all ranks, in each phase
    option_bytes: Floats  # (O, M) over all ranks
    option_item: Ints  # (O,)
    option_source: Ints  # (O,) the listed option of the problem that it is; -1 for a group's
    option_pieces: Ints  # (O,)
    item_tables: list[tuple[int, ...]]
    phases: Ints  # (Q,) phases of the problem that the search sees; the first one where they are added up
    tiers: Ints  # (M,) tiers of the problem that the search sees


def search_view(priced: PricedOptions) -> View:
    """Flatten a problem once for all searches."""
    items = _items(priced)
    members: list[tuple[int, ...]] = []  # by search shape: the table shapes that it stands for
    families: list[tuple[int, int]] = []  # by search family: its source and its first shape
    options: list[tuple[int, Ints]] = []  # by option: its family and its units
    sources: list[int] = []  # by option: the listed option it is, -1 for a group's
    item_family, item_option, item_slot = [0], [0], [0]
    first_shape = 0
    shape_first, shape_last = priced.shapes_of_family
    table_first, table_last = priced.families_of_table
    option_first, option_last = priced.options_of_family
    unit_first, unit_last = priced.units_of_option
    possible = _possible_families(priced)
    for tables in items:
        most = 1
        if len(tables) == 1:
            of_table = np.arange(table_first[tables[0]], table_last[tables[0]])
            for family in of_table[possible[of_table]].tolist() or of_table.tolist():
                low = int(shape_first[family])
                for option in range(int(option_first[family]), int(option_last[family])):
                    units = priced.unit_shape[unit_first[option] : unit_last[option]] - low + first_shape
                    options.append((len(families), units))
                    sources.append(option)
                shapes = [(shape,) for shape in range(low, int(shape_last[family]))]
                members.extend(shapes)
                families.append((family, first_shape))
                first_shape += len(shapes)
                most = max(most, int(priced.family_max_pieces[family]))
        else:
            for shapes_of_group in _group_shapes(priced, tables):
                options.append((len(families), np.array([first_shape])))
                sources.append(-1)
                members.append(shapes_of_group)
                families.append((int(priced.shape_family[shapes_of_group[0]]), first_shape))
                first_shape += 1
        item_family.append(len(families))
        item_option.append(len(options))
        item_slot.append(item_slot[-1] + most)
    data = _data(priced, items, members, families, options, item_family, item_option, item_slot)
    touched = np.array([1, priced.ranks_per_host, priced.num_ranks])[data.family_scope]
    per_unit = data.shape_seconds.mean(axis=0)[data.unit_shape]
    owner = unit_options(data)
    seconds = np.zeros((len(options), data.weight.shape[0]))
    largest = np.zeros_like(seconds)
    sizes = np.zeros((len(options), data.capacity.shape[1]))
    np.add.at(seconds, owner, per_unit * touched[data.option_family[owner]][:, None])
    on_top = (data.family_scope[data.option_family[owner]] != Scope.WORLD)[:, None]
    np.maximum.at(largest, owner, np.where(on_top, per_unit, 0.0))
    np.add.at(sizes, owner, data.shape_bytes[data.unit_shape] * touched[data.option_family[owner]][:, None])
    view = View(
        priced=priced,
        data=data,
        shape_members=members,
        option_seconds=seconds,
        option_largest=largest,
        option_bytes=sizes,
        option_item=np.repeat(np.arange(len(items)), np.diff(data.item_option)),
        option_source=np.array(sources, dtype=np.int64),
        option_pieces=np.diff(data.option_unit),
        item_tables=items,
        phases=_seen_phases(priced),
        tiers=_seen_tiers(priced),
    )
    if priced.move is not None:
        home = Assignment(piece_shape=priced.move.home_shape.copy(), piece_site=priced.move.home_site.copy())
        _enter_homes(data, from_assignment(view, home))
    return view


def shape_families(data: Data) -> Ints:
    """Return the family of every shape, shape (S,)."""
    return np.repeat(np.arange(len(data.family_scope)), np.diff(data.family_shape))


def family_items(data: Data) -> Ints:
    """Return the item of every family, shape (F,)."""
    return np.repeat(np.arange(len(data.item_columns)), np.diff(data.item_family))


def unit_options(data: Data) -> Ints:
    """Return the option of every unit, shape (U,)."""
    return np.repeat(np.arange(len(data.option_family)), np.diff(data.option_unit))


def _enter_homes(data: Data, placed: "list[tuple[int, Ints, Ints] | None]") -> None:
    """Note where items are before anything moves."""
    for item, one in enumerate(placed):
        if one is not None:
            family, shapes, sites = one
            slots = slice(int(data.item_slot[item]), int(data.item_slot[item]) + len(shapes))
            data.home_family[item], data.home_pieces[item] = family, len(shapes)
            data.home_shape[slots], data.home_site[slots] = shapes, sites


def _items(priced: PricedOptions) -> list[tuple[int, ...]]:
    """Group tables into items, in the order of their first tables; overlapping groups are one."""
    group = np.arange(priced.num_tables)
    for members in priced.same_rank:
        joined = np.isin(group, group[members])
        group[joined] = group[members].min()
    items: dict[int, list[int]] = {}
    for table in range(priced.num_tables):
        items.setdefault(int(group[table]), []).append(table)
    return [tuple(tables) for tables in items.values()]


def _possible_families(priced: PricedOptions) -> Bools:
    """Mark the families whose pieces may be where they would be, shape (F,).

    What lies on all ranks is nothing for a table that may not use them all, or must keep away from another.
    """
    everywhere = np.all(priced.table_rank_allowed, axis=1)
    for group in priced.apart:
        if len(np.unique(group)) > 1:
            everywhere[group] = False
    free = (everywhere | priced.table_is_pinned)[priced.family_table]
    possible: Bools = free | (priced.family_scope != Scope.WORLD)
    return possible


def _group_shapes(priced: PricedOptions, tables: tuple[int, ...]) -> list[tuple[int, ...]]:
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


def _data(
    priced: PricedOptions,
    items: list[tuple[int, ...]],
    members: list[tuple[int, ...]],
    families: list[tuple[int, int]],
    options: list[tuple[int, Ints]],
    item_family: list[int],
    item_option: list[int],
    item_slot: list[int],
) -> Data:
    source = np.array([family for family, _ in families], dtype=np.int64)
    first_shape = np.array([first for _, first in families] + [len(members)], dtype=np.int64)
    lengths = np.array([len(shapes) for shapes in members])
    flat = np.array([shape for shapes in members for shape in shapes], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    seconds = np.add.reduceat(priced.shape_seconds[flat], starts, axis=0)
    sizes = np.add.reduceat(priced.shape_bytes[flat], starts, axis=0)
    columns = priced.shape_columns[flat[starts]]
    slowdown, rank_class = np.unique(priced.rank_slowdown, axis=0, return_inverse=True)
    counted = _seen_phases(priced)
    by_class = seconds[None, :, :] * slowdown[:, None, :]
    if priced.objective is Objective.MAX_RANK_TIME:
        by_class = (by_class @ priced.phase_weight)[:, :, None]
        weight, window = np.ones(1), np.zeros(1)
    else:
        by_class = by_class[:, :, counted]
        weight, window = priced.phase_weight[counted], priced.phase_window_seconds[counted]
    tiers = _seen_tiers(priced)
    leader = np.array([tables[0] for tables in items])
    allowed = np.stack([np.all(priced.table_rank_allowed[list(tables)], axis=0) for tables in items])
    apart = _apart_items(priced, items)
    num_units = np.array([len(units) for _, units in options])
    slots = np.array(item_slot, dtype=np.int64)
    moving = moving_items(priced, items, members, np.repeat(source, np.diff(first_shape)))
    return Data(
        item_columns=priced.table_columns[leader],  # a group is never cut
        item_fixed=priced.table_is_pinned[leader],
        item_family=np.array(item_family, dtype=np.int64),
        item_option=np.array(item_option, dtype=np.int64),
        item_slot=slots,
        family_scope=priced.family_scope[source].astype(np.int64),
        family_same_host=priced.family_same_host[source],
        family_min_pieces=priced.family_min_pieces[source],
        family_max_pieces=priced.family_max_pieces[source],
        family_shape=first_shape,
        family_narrowest=columns[first_shape[:-1]],
        shape_columns=columns,
        shape_seconds=np.ascontiguousarray(by_class),
        shape_bytes=np.ascontiguousarray(sizes[:, tiers]),
        option_family=np.array([family for family, _ in options], dtype=np.int64),
        option_unit=np.concatenate([[0], np.cumsum(num_units)]).astype(np.int64),
        unit_shape=np.concatenate([units for _, units in options]).astype(np.int64),
        rank_class=rank_class.reshape(-1).astype(np.int64),
        rank_host=priced.host_of_rank.copy(),
        capacity=np.ascontiguousarray(priced.capacity_bytes[:, tiers]),
        allowed=allowed,
        host_allowed=np.asarray(np.all(allowed.reshape(len(items), priced.num_hosts, -1), axis=2)),
        apart_first=np.cumsum([0, *(len(each) for each in apart)]),
        apart_item=np.array([item for each in apart for item in each], dtype=np.int64),
        slot_item=np.repeat(np.arange(len(items)), np.diff(slots)),
        weight=weight,
        window=window,
        columns_before=moving.columns_before,
        column_bytes=moving.column_bytes,
        shape_item=moving.shape_item,
        shape_moved=moving.shape_moved,
        home_family=np.full(len(items), -1, dtype=np.int64),
        home_pieces=np.zeros(len(items), dtype=np.int64),
        home_shape=np.full(slots[-1], -1, dtype=np.int64),
        home_site=np.full(slots[-1], -1, dtype=np.int64),
        move=moving.move,
    )


def _seen_phases(priced: PricedOptions) -> Ints:
    """Phases that count and in which anything happens; at least one."""
    counted = np.flatnonzero((priced.phase_weight > 0) & np.any(priced.shape_seconds > 0, axis=0))
    return counted if len(counted) else np.zeros(1, dtype=np.int64)


def _seen_tiers(priced: PricedOptions) -> Ints:
    """Tiers that anything lies in; at least one."""
    tiers = np.flatnonzero(np.any(priced.shape_bytes > 0, axis=0))
    return tiers if len(tiers) else np.zeros(1, dtype=np.int64)


def _apart_items(priced: PricedOptions, items: list[tuple[int, ...]]) -> list[list[int]]:
    """Return the items that each item may not share a rank with."""
    item_of = {table: item for item, tables in enumerate(items) for table in tables}
    apart: list[set[int]] = [set() for _ in items]
    for group in priced.apart:
        inside = {item_of[int(table)] for table in group}
        for item in inside:
            apart[item] |= inside - {item}
    return [sorted(each) for each in apart]


def to_assignment(view: View, slot_shape: Ints, slot_site: Ints, num_pieces: Ints) -> Assignment:
    """Turn the pieces of a search back into an assignment of tables."""
    data = view.data
    pieces: list[tuple[int, int, int]] = []
    for item, tables in enumerate(view.item_tables):
        first = int(data.item_slot[item])
        for slot in range(first, first + int(num_pieces[item])):
            shapes = view.shape_members[int(slot_shape[slot])]
            pieces.extend(zip(tables, shapes, itertools.repeat(int(slot_site[slot])), strict=False))
    pieces.sort(key=lambda piece: piece[0])  # stable: the pieces of a table stay in their order
    return Assignment(
        piece_shape=np.array([shape for _, shape, _ in pieces], dtype=np.int64),
        piece_site=np.array([site for _, _, site in pieces], dtype=np.int64),
    )


def from_assignment(view: View, assignment: Assignment) -> list[tuple[int, Ints, Ints] | None]:
    """Return family, shapes and sites of every item.

    ``None`` stands for an item of which the assignment has not all tables, and for a group whose tables are
    not as the search has them.
    """
    data, shape = view.data, assignment.piece_shape
    table_first = np.searchsorted(view.priced.shape_table[shape], np.arange(view.priced.num_tables + 1))
    search_shape = {members: index for index, members in enumerate(view.shape_members)}
    shape_family = shape_families(data)
    placed: list[tuple[int, Ints, Ints] | None] = []
    for tables in view.item_tables:
        if any(table_first[table] == table_first[table + 1] for table in tables):
            placed.append(None)
            continue
        low, high = int(table_first[tables[0]]), int(table_first[tables[0] + 1])
        sites = assignment.piece_site[low:high]
        if len(tables) == 1:
            found = [search_shape.get((int(piece),)) for piece in shape[low:high]]
        else:
            found = [search_shape.get(tuple(int(shape[table_first[table]]) for table in tables))]
            if len(np.unique(assignment.piece_site[table_first[list(tables)]])) > 1:
                found = [None]
        if any(index is None for index in found):
            placed.append(None)
            continue
        shapes = np.array(found, dtype=np.int64)
        placed.append((int(shape_family[shapes[0]]), shapes, sites[: len(shapes)].astype(np.int64)))
    return placed
