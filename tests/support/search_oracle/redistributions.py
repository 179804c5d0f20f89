"""The pieces of two or three sites, shared out in all ways by brute force."""

import itertools
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats
from planner.solver.partitioners.kernels.moves.three_rank_redistribution import MAX_REDISTRIBUTED
from planner.solver.partitioners.kernels.state.state import MOST_PIECES
from tests.support.search_oracle.everyday_moves import accepted, cut_at_random
from tests.support.search_oracle.picks import any_site, pick_item, pick_site
from tests.support.search_oracle.plain_search import WORLD, Ambiguous, PlainSearch

_SHARPEST = 150.0
_LESS = 1 - 1e-9
_MOST = 600.0  # exponents are clipped
_CLOSE = 1e-7  # relative difference of two ways below which rounding decides
_TRIED = 32  # sets that the compiled search tries for the first of three sites
_MOST_PIECES = 10  # of three sites: 59,049 ways


def gather(search: PlainSearch, scope: int, sites: list[int], most: int) -> list[int]:
    """Slots of pieces that may lie on any of the sites; of more than there is room for, a random sample."""
    listed: list[int] = []
    seen = 0
    for site in sites:
        for slot in search.places[search.place(scope, site)]:
            if not all(search.may_shift(slot, scope, other) for other in sites if other != site):
                continue
            seen += 1
            if len(listed) < most:
                listed.append(slot)
            elif (at := search.random.below(seen)) < most:
                listed[at] = slot
    return listed


def sites_of(search: PlainSearch, scope: int, sites: list[int]) -> list[list[int]]:
    return [list(search.ranks_of(scope, site)) for site in sites]


def ways(count: int, sites: int) -> np.ndarray:
    """Every way to put so many pieces on sites, shape (ways, count)."""
    return np.array(list(itertools.product(range(sites), repeat=count)), dtype=np.int64).reshape(sites**count, count)


def shared_out(search: PlainSearch, scope: int, sites: list[int], slots: list[int], way: np.ndarray) -> PlainSearch:
    trial = search.trial()
    for slot, goal in zip(slots, way.tolist(), strict=True):
        if search.site[slot] != sites[goal]:
            trial.shift(slot, scope, sites[goal])
    return trial


def redistribute_two(search: PlainSearch, scope: int, bar: float) -> PlainSearch | None:
    here, there = pick_site(search, scope, heavy=True), any_site(search, scope)
    if here == there:
        return None
    sites = [here, there]
    slots = gather(search, scope, sites, MOST_PIECES)
    home = np.array([sites.index(search.site[slot]) for slot in slots], dtype=np.int64)
    all_ways = ways(len(slots), 2)
    reference = search.reference + search.world_seconds()
    tau = np.maximum(search.tau, reference / _SHARPEST)
    costs = np.zeros(len(all_ways))
    fits = np.ones(len(all_ways), dtype=np.bool_)
    loads, used = search.loads(), search.bytes()
    for side, ranks in enumerate(sites_of(search, scope, sites)):
        kind = search.data.rank_class[ranks[0]]
        shapes = [search.shape[slot] for slot in slots]
        change = (all_ways == side).astype(np.float64) - (home == side)
        seconds = change @ search.data.shape_seconds[kind, shapes]
        size = change @ search.data.shape_bytes[shapes]
        for rank in ranks:
            costs += np.exp(np.minimum((loads[rank] + seconds - reference) / tau, _MOST)) @ (search.data.weight * tau)
            fits &= np.all(used[rank] + size <= search.data.capacity[rank], axis=1)
    if search.moves_cost:
        moved = [shared_out(search, scope, sites, slots, way).moved_bytes() for way in all_ways]
        costs += search.move_price * (np.array(moved) - search.moved_bytes())
    is_home = np.all(all_ways == home, axis=1)
    now = float(costs[is_home][0])
    found = np.flatnonzero(fits & ~is_home & (costs < now * (1 + _CLOSE)))
    found = found[np.argsort(costs[found])]
    if not len(found):
        return None
    best = costs[found[0]]
    if best > now * (1 - _CLOSE) or np.any(costs[found[1:2]] <= best * (1 + _CLOSE)):
        raise Ambiguous
    return accepted(search, shared_out(search, scope, sites, slots, all_ways[found[0]]), bar)


class Slopes(NamedTuple):
    """What loads cost by the slopes of the smooth cost: the sum of price * e^((load - reference) / tau), each (Q,)."""

    price: Floats
    reference: Floats
    tau: Floats

    def cost(self, loads: Floats) -> Floats:
        """Return the cost of loads, shape (..., Q)."""
        cost: Floats = np.exp(np.minimum((loads - self.reference) / self.tau, _MOST)) @ self.price
        return cost

    def load_of(self, loads: Floats) -> Floats:
        """Return the load, shape (Q,), of one rank that weighs what all ranks of a site do, whose loads are (R, Q)."""
        if len(loads) == 1:
            return loads[0]
        weights = np.sum(np.exp((loads - self.reference) / self.tau), axis=0)
        load: Floats = self.reference + self.tau * np.log(np.maximum(weights, 1e-300))
        return load


def slopes_of(search: PlainSearch) -> Slopes:
    """Return the slopes at the loads as they are."""
    loads = search.loads()
    slowest = np.max(loads, axis=0)
    sums = np.sum(np.exp((loads - slowest) / search.tau), axis=0)
    return Slopes(search.data.weight * search.tau / sums, slowest, search.tau)


def cost_of_sites(search: PlainSearch, scope: int, sites: list[int]) -> float:
    """Return what the ranks of sites cost by slopes."""
    return float(np.sum(slopes_of(search).cost(search.loads()[np.concatenate(sites_of(search, scope, sites))])))


def in_turn(search: PlainSearch, sites: list[int]) -> list[int]:
    turn = search.random.below(3)
    ordered = [0, 0, 0]
    for index, site in enumerate(sites):
        ordered[(turn + index) % 3] = site
    return ordered


def redistribute_three(search: PlainSearch, scope: int, bar: float) -> PlainSearch | None:
    if search.num_sites(scope) < 3:
        return redistribute_two(search, scope, bar)
    here = pick_site(search, scope, heavy=True)
    there, third = any_site(search, scope), any_site(search, scope)
    if len({here, there, third}) < 3:
        return None
    sites = in_turn(search, [here, there, third])
    return share_out_three(search, search, scope, sites, cost_of_sites(search, scope, sites) * _LESS, bar)


def cut_and_redistribute(search: PlainSearch, bar: float) -> PlainSearch | None:
    item = pick_item(search)
    scope = search.scope_of(item)
    if scope == WORLD or search.num_sites(scope) < 3:
        return None
    cut = cut_at_random(search, item)
    if cut is None:
        return None
    assert cut.cut_sites is not None
    one, other = cut.cut_sites
    if one == other:
        return None
    third = any_site(search, scope)
    if third in (one, other):
        return None
    budget = bar + cost_of_sites(search, scope, [one, other, third])
    return share_out_three(search, cut, scope, in_turn(search, [one, other, third]), budget, bar)


def share_out_three(
    search: PlainSearch, cut: PlainSearch, scope: int, sites: list[int], budget: float, bar: float
) -> PlainSearch | None:
    """The way of least cost by slopes under the budget, if the first site has few sets, all of which are tried."""
    data, ranks, slopes = search.data, sites_of(search, scope, sites), slopes_of(search)
    kinds = {int(data.rank_class[rank]) for group in ranks for rank in group}
    if len(kinds) > 1 or not budget > 0:
        return None
    slots = gather(cut, scope, sites, MAX_REDISTRIBUTED)
    if len(slots) > _MOST_PIECES:
        raise Ambiguous
    home = np.array([sites.index(cut.site[slot]) for slot in slots], dtype=np.int64)
    shapes, all_ways = [cut.shape[slot] for slot in slots], ways(len(slots), 3)
    loads, used = cut.loads(), cut.bytes()
    fits = np.ones(len(all_ways), dtype=np.bool_)
    seconds, (kind,) = np.zeros((3, len(all_ways), len(search.tau))), kinds
    for side, group in enumerate(ranks):
        change = (all_ways == side).astype(np.float64) - (home == side)
        seconds[side] = slopes.load_of(loads[group]) + change @ data.shape_seconds[kind, shapes]
        size = change @ data.shape_bytes[shapes]
        for rank in group:
            fits &= np.all(used[rank] + size <= data.capacity[rank] + 1e-6, axis=1)
    at_least = slopes.cost(seconds[0]) + 2 * slopes.cost((seconds[1] + seconds[2]) / 2)
    if len(np.unique(all_ways[at_least < budget * (1 + _CLOSE)] == 0, axis=0)) > _TRIED:
        raise Ambiguous
    costs = np.sum(slopes.cost(seconds), axis=0)
    found = np.flatnonzero(fits & (costs < budget * (1 + _CLOSE)))
    found = found[np.argsort(costs[found])]
    if not len(found):
        return None
    best = costs[found[0]]
    if best > budget * (1 - _CLOSE) or np.any(costs[found[1:2]] <= best * (1 + _CLOSE)):
        raise Ambiguous
    return accepted(search, shared_out(cut, scope, sites, slots, all_ways[found[0]]), bar)
