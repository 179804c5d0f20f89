"""What a move tries: at random, and more often where the cost is made."""

import numpy as np

from tests.support.search_oracle.plain_search import RANK, PlainSearch, exceeds

_TOURNAMENT = 5


def pressures(search: PlainSearch) -> np.ndarray:
    """How much the cost falls with a rank's load, shape (R,)."""
    return search.softmax() @ search.data.weight


def pick_rank(search: PlainSearch, *, heavy: bool) -> int:
    pressure = pressures(search)
    best = search.random.below(search.num_ranks)
    for _ in range(_TOURNAMENT - 1):
        other = search.random.below(search.num_ranks)
        if other != best and exceeds(pressure[other], pressure[best]) == heavy:
            best = other
    return best


def pick_site(search: PlainSearch, scope: int, *, heavy: bool) -> int:
    rank = pick_rank(search, heavy=heavy)
    return rank if scope == RANK else rank // search.local


def slot_on(search: PlainSearch, scope: int, site: int) -> int | None:
    slots = search.places[search.place(scope, site)]
    return slots[search.random.below(len(slots))] if slots else None


def any_site(search: PlainSearch, scope: int) -> int:
    return search.random.below(search.num_sites(scope))


def pressed_or_any_site(search: PlainSearch, scope: int) -> int:
    return pick_site(search, scope, heavy=True) if search.random.below(2) else any_site(search, scope)


def pick_slot(search: PlainSearch, scope: int) -> int | None:
    for _ in range(4):
        slot = slot_on(search, scope, pressed_or_any_site(search, scope))
        if slot is not None:
            return slot
    return None


def pick_item(search: PlainSearch) -> int:
    if search.random.below(2):
        slot = pick_slot(search, RANK)
        if slot is not None:
            return int(search.data.slot_item[slot])
    return search.random.below(len(search.num_pieces))


def pick_target(search: PlainSearch, scope: int, slot: int) -> int:
    """A site for a piece: often one under little pressure, of its own host where the table has to stay there."""
    item = search.data.slot_item[slot]
    if scope == RANK and search.data.family_same_host[search.family[item]] and search.num_pieces[item] > 1:
        return search.site[slot] // search.local * search.local + search.random.below(search.local)
    return pick_site(search, scope, heavy=False) if search.random.below(2) else any_site(search, scope)
