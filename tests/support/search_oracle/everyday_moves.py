"""Moves of single pieces: each returns the changed search where the cost grows by at most the bar, else nothing."""

import math

import numpy as np

from planner.solver.partitioners.kernels.cost.smooth_cost import LEAST_SUM
from tests.support.search_oracle.picks import any_site, pick_rank, pick_slot, pick_target, pressed_or_any_site, slot_on
from tests.support.search_oracle.plain_search import HOST, RANK, STEEPEST, Ambiguous, PlainSearch, exceeds

_STEP = 4  # columns between widths
_PAIRS = 12


def accepted(search: PlainSearch, trial: PlainSearch, bar: float) -> PlainSearch | None:
    return trial if search.accepts(trial, bar) else None


def move_piece(search: PlainSearch, scope: int, bar: float) -> PlainSearch | None:
    slot = pick_slot(search, scope)
    if slot is None:
        return None
    target = pick_target(search, scope, slot)
    if target == search.site[slot] or not search.may_shift(slot, scope, target):
        return None
    trial = search.trial()
    trial.shift(slot, scope, target)
    return accepted(search, trial, bar)


def swap_pieces(search: PlainSearch, scope: int, bar: float) -> PlainSearch | None:
    """Exchange two pieces of two sites: the first of a few pairs whose cost by slopes does not exceed the bar."""
    here, there = pressed_or_any_site(search, scope), any_site(search, scope)
    if here == there or not all(search.places[search.place(scope, site)] for site in (here, there)):
        return None
    foreseen = search.overflow() == 0 and (scope == RANK or len(search.data.shape_seconds) == 1)
    for _ in range(_PAIRS):
        one, other = slot_on(search, scope, here), slot_on(search, scope, there)
        assert one is not None
        assert other is not None
        trial = search.trial()
        trial.shift(one, scope, there)
        trial.shift(other, scope, here)
        if foreseen and exceeds(slope(search, trial), bar, search.cost()):
            continue
        if search.data.slot_item[one] == search.data.slot_item[other]:
            continue
        if search.may_shift(one, scope, there) and search.may_shift(other, scope, here):
            return accepted(search, trial, bar)
    return None


def slope(search: PlainSearch, trial: PlainSearch) -> float:
    """What a change adds at least to the cost, by the slopes of its phases; phases with hidden time count exactly.

    The compiled search knows nothing of such a phase whose weights all fall so far that their sum has no digits left.
    """
    data, loads, after = search.data, search.loads(), trial.loads()
    if np.any(after - loads > STEEPEST * search.tau):
        raise Ambiguous
    growth = data.weight * np.sum(search.softmax() * (after - loads), axis=0)
    exact = search.phase_costs(after) - search.phase_costs(loads)
    fallen = search.smooth_loads(after) - search.world_seconds() - search.reference
    exact[fallen < search.tau * np.log(LEAST_SUM)] = -np.inf
    price = search.move_price * (trial.moved_bytes() - search.moved_bytes())
    return float(np.sum(np.where(data.window > 0, exact, growth))) + price


def shift_columns(search: PlainSearch, item: int, bar: float) -> PlainSearch | None:
    pieces = search.num_pieces[item]
    if search.data.item_fixed[item] or search.data.item_cut_fixed[item] or pieces < 2:
        return None
    family = search.family[item]
    first, last = search.data.family_shape[family : family + 2].tolist()
    one, other = (search.slots(item)[search.random.below(pieces)] for _ in range(2))
    steps = 1 + search.random.below(4) if search.random.below(2) else 1 + search.random.below(last - first)
    wider, narrower = search.shape[one] + steps, search.shape[other] - steps
    if one == other or wider >= last or narrower < first:
        return None
    trial = search.trial()
    trial.shape[one], trial.shape[other] = wider, narrower
    trial.cut_sites = search.site[one], search.site[other]
    return accepted(search, trial, bar)


def kin(search: PlainSearch, item: int, *, whole: bool) -> int | None:
    """A random family of an item if it has the scope of its own, and is whole or in pieces as asked for."""
    data = search.data
    first, last = data.item_family[item : item + 2].tolist()
    family = first + search.random.below(last - first)
    fits = data.family_scope[family] == search.scope_of(item) and (data.family_max_pieces[family] == 1) == whole
    return family if fits else None


def shape_of_columns(search: PlainSearch, family: int, columns: int) -> int | None:
    """The shape of a family that has so many columns."""
    first, last = search.data.family_shape[family : family + 2].tolist()
    found = [shape for shape in range(first, last) if search.data.shape_columns[shape] == columns]
    return found[0] if found else None


def split_piece(search: PlainSearch, item: int, bar: float) -> PlainSearch | None:
    data, family, pieces = search.data, search.family[item], search.num_pieces[item]
    scope = search.scope_of(item)
    if data.item_fixed[item] or data.item_cut_fixed[item] or scope not in (RANK, HOST):
        return None
    into = family if data.family_max_pieces[family] > 1 else kin(search, item, whole=False)
    if into is None or pieces >= data.family_max_pieces[into]:
        return None
    slot = search.slots(item)[search.random.below(pieces)]
    columns, narrowest = int(data.shape_columns[search.shape[slot]]), int(data.family_narrowest[into])
    if columns < 2 * narrowest:
        return None
    cut = narrowest + _STEP * search.random.below((columns - 2 * narrowest) // _STEP + 1)
    left, moved = shape_of_columns(search, into, columns - cut), shape_of_columns(search, into, cut)
    if left is None or moved is None:
        return None
    site = search.site[slot]
    if scope == HOST:
        target = any_site(search, HOST)
    else:
        target = pick_rank(search, heavy=False)
        if data.family_same_host[into]:
            target = site // search.local * search.local + search.random.below(search.local)
    if target == site or not search.is_legal(item, scope, target):
        return None
    trial = search.trial()
    trial.shape[slot], trial.family[item], trial.num_pieces[item] = left, into, pieces + 1
    trial.put(trial.slots(item)[-1], scope, moved, target)
    trial.cut_sites = site, target
    return accepted(search, trial, bar)


def merge_pieces(search: PlainSearch, item: int, bar: float) -> PlainSearch | None:
    data, family, pieces = search.data, search.family[item], search.num_pieces[item]
    if data.item_fixed[item] or data.item_cut_fixed[item] or pieces < 2:
        return None
    into = family if pieces > data.family_min_pieces[family] else kin(search, item, whole=True)
    if into is None:
        return None
    slots, scope = search.slots(item), search.scope_of(item)
    one, other = (slots[search.random.below(pieces)] for _ in range(2))
    joined = shape_of_columns(search, into, sum(int(data.shape_columns[search.shape[slot]]) for slot in (one, other)))
    if one == other or joined is None:
        return None
    trial = search.trial()
    trial.shape[one] = joined
    trial.cut_sites = trial.site[one], trial.site[other]
    trial.delist(other, scope, trial.site[other])
    if other != slots[-1]:
        trial.delist(slots[-1], scope, trial.site[slots[-1]])
        trial.put(other, scope, trial.shape[slots[-1]], trial.site[slots[-1]])
    trial.num_pieces[item], trial.family[item] = pieces - 1, into
    return accepted(search, trial, bar)


def cut_at_random(search: PlainSearch, item: int) -> PlainSearch | None:
    """Cut a table in another way, whatever it costs."""
    cut = (shift_columns, split_piece, merge_pieces)[search.random.below(3)]
    return cut(search, item, math.inf)
