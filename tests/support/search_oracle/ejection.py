"""A piece is driven off a pressed rank; ranks that have too much then hand it on in exchanges."""

import numpy as np

from planner.solver.partitioners.kernels.state.state import MOST_SWAPS
from tests.support.search_oracle.picks import any_site, pick_rank, slot_on
from tests.support.search_oracle.plain_search import RANK, PlainSearch, exceeds

_ATTEMPTS, _PAIRS = 40, 12


def eject_piece(search: PlainSearch, bar: float) -> PlainSearch | None:
    here, there = pick_rank(search, heavy=True), any_site(search, RANK)
    slot = slot_on(search, RANK, here)
    if slot is None or here == there or not search.may_shift(slot, RANK, there):
        return None
    trial = search.trial()
    trial.shift(slot, RANK, there)
    if np.any(trial.bytes()[there] > trial.data.capacity[there]):
        return None
    touched, shifted = [here, there], 0
    if search.accepts(trial, bar):
        return trial
    for _ in range(_ATTEMPTS):
        slow, other = slowest(trial, touched), any_site(trial, RANK)
        if slow == other or trial.data.rank_class[slow] != trial.data.rank_class[other]:
            continue
        swap = best_swap(trial, slow, other, slot if other == here else None)
        if swap is None:
            continue
        trial = swapped(trial, slow, other, *swap)
        touched += [rank for rank in (slow, other) if rank not in touched]
        shifted += 1 + (swap[1] is not None)
        if search.accepts(trial, bar):
            return trial
        if shifted + 2 > 2 * MOST_SWAPS:
            break
    return None


def slowest(search: PlainSearch, ranks: list[int]) -> int:
    """The rank whose weights cost most."""
    value = search.softmax() @ (search.data.weight * search.tau)
    best = ranks[0]
    for rank in ranks[1:]:
        if exceeds(value[rank], value[best]):
            best = rank
    return best


def fits(before: PlainSearch, after: PlainSearch, ranks: list[int]) -> bool:
    """Whether every rank has room in each tier in which it holds more than before."""
    used, grown = after.bytes()[ranks], after.bytes()[ranks] > before.bytes()[ranks]
    return not np.any(grown & (used > before.data.capacity[ranks]))


def swapped(search: PlainSearch, here: int, there: int, out: int, into: int | None) -> PlainSearch:
    trial = search.trial()
    trial.shift(out, RANK, there)
    if into is not None:
        trial.shift(into, RANK, here)
    return trial


def best_swap(search: PlainSearch, here: int, there: int, fixed: int | None) -> tuple[int, int | None] | None:
    """The exchange, of a few, by which the weights of two ranks cost least; nothing where none makes them cost less."""
    best, least = None, 0.0
    for _ in range(_PAIRS):
        out = slot_on(search, RANK, here)
        pick = search.random.below(len(search.places[there]) + 1)
        into = search.places[there][pick - 1] if pick else None
        if out is None or out == fixed:
            continue
        if into is not None and search.data.slot_item[out] == search.data.slot_item[into]:
            continue
        trial = swapped(search, here, there, out, into)
        if (out, into) == best:
            continue
        before, after = weight_costs(search, trial, [here, there])
        value = after - before
        if not exceeds(least, value, max(before, after)):
            continue
        if not search.may_shift(out, RANK, there) or (into is not None and not search.may_shift(into, RANK, here)):
            continue
        if fits(search, trial, [here, there]):
            best, least = (out, into), value
    return best


def weight_costs(search: PlainSearch, trial: PlainSearch, ranks: list[int]) -> tuple[float, float]:
    """What the weights of some ranks cost before and after a change, at the price of a weight before."""
    step = (trial.loads()[ranks] - search.loads()[ranks]) / search.tau
    costs = search.data.weight * search.tau * search.softmax()[ranks]
    return float(np.sum(costs)), float(np.sum(costs * np.exp(np.clip(step, -300.0, 300.0))))
