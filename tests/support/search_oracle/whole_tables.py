"""Moves of whole tables: placed under another listed option, each piece where it adds least, or sent home."""

import numpy as np

from tests.support.search_oracle.everyday_moves import accepted
from tests.support.search_oracle.picks import pick_item
from tests.support.search_oracle.plain_search import HOST, RANK, Ambiguous, PlainSearch, exceeds

_MOST = 300.0  # exponents beyond which the compiled search clips them


def without(search: PlainSearch, item: int) -> PlainSearch:
    """The search without a table's pieces."""
    trial = search.trial()
    for slot in search.slots(item):
        trial.delist(slot, search.scope_of(item), search.site[slot])
    trial.num_pieces[item] = 0
    return trial


def replace_item(search: PlainSearch, bar: float) -> PlainSearch | None:
    item = pick_item(search)
    if search.data.item_fixed[item]:
        return None
    first, last = search.data.item_option[item : item + 2].tolist()
    option = first + search.random.below(last - first)
    trial = without(search, item)
    return accepted(search, trial, bar) if place_units(trial, item, option) else None


def place_units(search: PlainSearch, item: int, option: int) -> bool:
    """Place the listed pieces of an option in turn; ``False`` where one has no legal site."""
    data = search.data
    family = search.family[item] = int(data.option_family[option])
    scope, ranks = search.scope_of(item), range(search.num_ranks)
    units = data.unit_shape[data.option_unit[option] : data.option_unit[option + 1]].tolist()
    if data.family_same_host[family]:
        anchor = best_site(search, item, RANK, units[0], ranks)
        if anchor is None:
            return False
        ranks = search.ranks_of(HOST, anchor // search.local)
    for shape in units:
        sites = ranks if scope == RANK else range(search.num_hosts) if scope == HOST else range(1)
        site = best_site(search, item, scope, shape, sites) if scope in (RANK, HOST) else 0
        if site is None:
            return False
        search.num_pieces[item] += 1
        search.put(search.slots(item)[-1], scope, shape, site)
    return True


def best_site(search: PlainSearch, item: int, scope: int, shape: int, sites: range) -> int | None:
    """The legal site on whose ranks a piece adds least, to first order in how many ranks it slows down."""
    legal = [site for site in sites if search.is_legal(item, scope, site)]
    values = {site: added(search, item, scope, site, shape) for site in legal}
    best = min(values, key=lambda site: values[site], default=None)
    for site, value in values.items():
        if site != best:
            exceeds(value, values[best])  # type: ignore[index]
    return best


def added(search: PlainSearch, item: int, scope: int, site: int, shape: int) -> float:
    data, total, used = search.data, 0.0, search.bytes()
    softmax = search.softmax()
    for rank in search.ranks_of(scope, site):
        seconds = data.shape_seconds[data.rank_class[rank], shape]
        if np.any(seconds > _MOST * search.tau):  # clipped
            raise Ambiguous
        gain = np.expm1(seconds / search.tau)
        total += float(np.sum(data.weight * search.tau * gain * softmax[rank]))
        excess = np.maximum(used[rank] + data.shape_bytes[shape] - data.capacity[rank], 0.0)
        total += search.penalty * float(np.sum(excess / np.maximum(data.capacity[rank], 1.0)))
    if not search.moves_cost:
        return total
    place = search.place(scope, site)
    before, here = int(data.columns_before[item, place]), int(search.columns()[item, place])
    found = min(before, here + int(data.shape_columns[shape])) - min(before, here)
    moved = float(data.shape_moved[shape] - found * data.column_bytes[item, place])
    move, so_far = data.move[0], search.moved_bytes()
    beyond = max(0.0, so_far + moved - max(so_far, float(move["max_bytes"]))) / float(move["overflow_unit_bytes"])
    return total + search.move_price * moved + search.penalty * beyond


def send_home(search: PlainSearch, bar: float) -> PlainSearch | None:
    data, item = search.data, pick_item(search)
    home, pieces = int(data.home_family[item]), int(data.home_pieces[item])
    slots = range(int(data.item_slot[item]), int(data.item_slot[item]) + pieces)
    goal = [(int(data.home_shape[slot]), int(data.home_site[slot])) for slot in slots]
    if data.item_fixed[item] or home < 0:
        return None
    if search.family[item] == home and goal == [(search.shape[slot], search.site[slot]) for slot in search.slots(item)]:
        return None
    trial = without(search, item)
    trial.family[item], scope = home, int(data.family_scope[home])
    if not all(search.is_legal(item, scope, site) for _, site in goal):
        return None
    trial.num_pieces[item] = pieces
    for slot, (shape, site) in zip(slots, goal, strict=True):
        trial.put(slot, scope, shape, site)
    return accepted(search, trial, bar)
