"""What a search sees of a problem: items, families, shapes and options as flat arrays.

Items are tables, or groups of them (:mod:`planner.solver.partitioners.local_search.items`). Phases that no objective
counts are left out, phases are one for max_rank_time, and seconds exist once per class of equally fast ranks.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.fixed_cuts import in_fixed_order
from planner.solver.memo import memoized_on_problem
from planner.solver.partitioners.local_search.items import Items, items_of
from planner.solver.partitioners.local_search.movement import moving_items
from planner.solver.problem import Assignment, Objective, Scope, SolverProblem
from planner.solver.segments import side_by_side

Ints32 = NDArray[np.int32]


class Data(NamedTuple):
    """The arrays of a problem, as compiled code takes them. I items, R ranks, H hosts, Q phases."""

    item_columns: Ints  # (I,)
    item_fixed: Bools  # (I,) pinned: the search leaves it alone
    item_cut_fixed: Bools  # (I,) its pieces move, and neither their number nor their widths change
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
    move: NDArray[np.void]  # (1,) of MOVE_TERMS


class View(NamedTuple):
    """Data, and the way back to tables."""

    priced: SolverProblem
    data: Data
    items: Items
    option_seconds: Floats  # (O, Q) over all ranks, at the mean of the rank classes
    option_largest: Floats  # (O, Q) of the largest unit that is not on all ranks, in each phase
    option_bytes: Floats  # (O, M) over all ranks
    option_item: Ints  # (O,)
    option_pieces: Ints  # (O,)
    phases: Ints  # (Q,) phases of the problem that the search sees; the first one where they are added up
    tiers: Ints  # (M,) tiers of the problem that the search sees


@memoized_on_problem
def search_view(priced: SolverProblem) -> View:
    """Flatten a problem once for all searches."""
    items = items_of(priced)
    data = _data(priced, items)
    touched = np.array([1, priced.ranks_per_host, priced.num_ranks])[data.family_scope]
    owner = unit_options(data)
    per_unit = data.shape_seconds.mean(axis=0)[data.unit_shape]
    times = touched[data.option_family[owner]][:, None]
    on_top = (data.family_scope[data.option_family[owner]] != Scope.WORLD)[:, None]
    view = View(
        priced=priced,
        data=data,
        items=items,
        option_seconds=_sums(per_unit * times, owner, len(data.option_family)),
        option_largest=np.maximum.reduceat(np.where(on_top, per_unit, 0.0), data.option_unit[:-1]),
        option_bytes=_sums(data.shape_bytes[data.unit_shape] * times, owner, len(data.option_family)),
        option_item=np.repeat(np.arange(len(items.tables)), np.diff(data.item_option)),
        option_pieces=np.diff(data.option_unit),
        phases=_seen_phases(priced),
        tiers=_seen_tiers(priced),
    )
    if priced.move is not None:
        home = Assignment(piece_shape=priced.move.home_shape.copy(), piece_site=priced.move.home_site.copy())
        _enter_homes(data, from_assignment(view, home))
    return view


def _sums(parts: Floats, owner: Ints, count: int) -> Floats:
    """Add up the parts of each owner in their order, shape (count, columns)."""
    return np.stack([np.bincount(owner, column, minlength=count) for column in parts.T], axis=1)


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


def _data(priced: SolverProblem, items: Items) -> Data:
    columns = priced.shape_columns[items.leader]
    seconds, sizes = (_of_members(items, cost) for cost in (priced.shape_seconds, priced.shape_bytes))
    slowdown, rank_class = np.unique(priced.rank_slowdown, axis=0, return_inverse=True)
    counted = _seen_phases(priced)
    by_class = seconds[None, :, :] * slowdown[:, None, :]
    if priced.objective is Objective.MAX_RANK_TIME:
        by_class = (by_class @ priced.phase_weight)[:, :, None]
        weight, window = np.ones(1), priced.window_seconds
    else:
        by_class = by_class[:, :, counted]
        weight, window = priced.phase_weight[counted], priced.window_seconds[counted]
    tiers = _seen_tiers(priced)
    leader = np.array([tables[0] for tables in items.tables])
    allowed = priced.table_rank_allowed[leader]
    for item, tables in enumerate(items.tables):
        if len(tables) > 1:
            allowed[item] = np.all(priced.table_rank_allowed[list(tables)], axis=0)
    apart = _apart_items(priced, items.tables)
    source, num_items = items.family_source, len(items.tables)
    return Data(
        item_columns=priced.table_columns[leader],  # a group is never cut
        item_fixed=np.array([priced.table_is_pinned[list(tables)].any() for tables in items.tables]),
        item_cut_fixed=priced.table_has_fixed_cut[leader],
        item_family=items.item_family,
        item_option=items.item_option,
        item_slot=items.item_slot,
        family_scope=priced.family_scope[source].astype(np.int64),
        family_same_host=priced.family_same_host[source],
        family_min_pieces=priced.family_min_pieces[source],
        family_max_pieces=priced.family_max_pieces[source],
        family_shape=items.family_shape,
        family_narrowest=columns[items.family_shape[:-1]],
        shape_columns=columns,
        shape_seconds=np.ascontiguousarray(by_class),
        shape_bytes=np.ascontiguousarray(sizes[:, tiers]),
        option_family=items.option_family,
        option_unit=items.option_unit,
        unit_shape=items.unit_shape,
        rank_class=rank_class.reshape(-1).astype(np.int64),
        rank_host=priced.host_of_rank.copy(),
        capacity=np.ascontiguousarray(priced.capacity_bytes[:, tiers]),
        allowed=allowed,
        host_allowed=np.asarray(np.all(allowed.reshape(num_items, priced.num_hosts, -1), axis=2)),
        apart_first=np.cumsum([0, *(len(each) for each in apart)]),
        apart_item=np.array([item for each in apart for item in each], dtype=np.int64),
        slot_item=np.repeat(np.arange(num_items), np.diff(items.item_slot)),
        weight=weight,
        window=window,
        home_family=np.full(num_items, -1, dtype=np.int64),
        home_pieces=np.zeros(num_items, dtype=np.int64),
        home_shape=np.full(items.item_slot[-1], -1, dtype=np.int64),
        home_site=np.full(items.item_slot[-1], -1, dtype=np.int64),
        **moving_items(priced, items)._asdict(),
    )


def _of_members(items: Items, cost: Floats) -> Floats:
    """Return what the shapes of a search cost, which may stand for several of the problem, shape (S, columns)."""
    of_shapes: Floats = cost[items.leader]
    several = np.flatnonzero(np.diff(items.shape_member) > 1)
    for shape in several.tolist():
        of_shapes[shape] = np.add.reduce(cost[items.members(shape)], axis=0)
    return of_shapes


def _seen_phases(priced: SolverProblem) -> Ints:
    """Phases that count and in which anything happens; at least one."""
    happens = np.any(priced.shape_seconds > 0, axis=0) | (priced.charged_seconds > 0)
    counted = np.flatnonzero((priced.phase_weight > 0) & happens)
    return counted if len(counted) else np.zeros(1, dtype=np.int64)


def _seen_tiers(priced: SolverProblem) -> Ints:
    """Tiers that anything lies in; at least one."""
    tiers = np.flatnonzero(np.any(priced.shape_bytes > 0, axis=0))
    return tiers if len(tiers) else np.zeros(1, dtype=np.int64)


def _apart_items(priced: SolverProblem, items: list[tuple[int, ...]]) -> list[list[int]]:
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
    items = view.items
    _, slot = side_by_side(items.item_slot[:-1], num_pieces)
    shape = slot_shape[slot]
    piece, member = side_by_side(items.shape_member[shape], np.diff(items.shape_member)[shape])
    piece_shape = items.member_shape[member]
    order = np.argsort(view.priced.shape_table[piece_shape], kind="stable")  # pieces of a table stay in their order
    placed = Assignment(piece_shape=piece_shape[order], piece_site=slot_site[slot][piece][order].astype(np.int64))
    return in_fixed_order(view.priced, placed)


def from_assignment(view: View, assignment: Assignment) -> list[tuple[int, Ints, Ints] | None]:
    """Return family, shapes and sites of every item.

    ``None`` stands for an item of which the assignment has not all tables, and for a group whose tables are
    not as the search has them.
    """
    items, shape, site = view.items, assignment.piece_shape, assignment.piece_site
    first = np.searchsorted(view.priced.shape_table[shape], np.arange(view.priced.num_tables + 1)).tolist()
    search_shape = np.full(view.priced.num_shapes, -1, dtype=np.int64)
    search_shape[items.leader] = np.arange(len(items.leader))
    found, shape_family = search_shape[shape], shape_families(view.data)
    placed: list[tuple[int, Ints, Ints] | None] = []
    for item, tables in enumerate(items.tables):
        if any(first[table] == first[table + 1] for table in tables):
            placed.append(None)
            continue
        low, high = first[tables[0]], first[tables[0] + 1]
        shapes, sites = found[low:high], site[low:high]
        if len(tables) > 1:
            pieces = [first[table] for table in tables]
            shapes, sites = _group_shape(view, item, shape[pieces]), sites[:1]
            if len(np.unique(site[pieces])) > 1:
                shapes = np.full(1, -1, dtype=np.int64)
        if np.any(shapes < 0):
            placed.append(None)
            continue
        placed.append((int(shape_family[shapes[0]]), shapes.copy(), sites.astype(np.int64)))
    return placed


def _group_shape(view: View, item: int, members: Ints) -> Ints:
    """Return the shape of a group's item that stands for these shapes of its tables, or -1, shape (1,)."""
    low, high = view.items.family_shape[view.items.item_family[[item, item + 1]]].tolist()
    same = (shape for shape in range(low, high) if np.array_equal(view.items.members(shape), members))
    return np.array([next(same, -1)], dtype=np.int64)
