"""Arrays of things that lie side by side by owner: options by table, shapes by family."""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Floats, Ints


def first_least(cost: Floats, first: Ints, owner: Ints) -> Ints:
    """Return for every owner the cheapest of what it owns, the first of equal ones, shape (owners,).

    ``cost`` and ``owner`` have one entry for each thing owned, those of an owner side by side and at least one;
    ``first`` are where they begin, shape (owners,).
    """
    cheapest = np.flatnonzero(cost == np.minimum.reduceat(cost, first)[owner])
    found: Ints = cheapest[np.searchsorted(owner[cheapest], np.arange(len(first)))]
    return found


def side_by_side(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return the owner of each thing owned, and its number, where an owner's begin at ``first``, both (sum of count,).

    ``first`` and ``count`` have shape (owners,).
    """
    owner = np.repeat(np.arange(len(count)), count)
    return owner, first[owner] + np.arange(len(owner)) - (np.cumsum(count) - count)[owner]


def by_owner(owner: Ints, of: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield every owner of some of the things, which have one entry in ``owner`` each, with its own of these."""
    order = of[np.argsort(owner[of], kind="stable")]
    starts = np.flatnonzero(np.diff(owner[order], prepend=-1))
    for part in np.split(order, starts[1:]) if len(order) else ():
        yield int(owner[part[0]]), part


def ends(count: Ints) -> Ints:
    """Return where the things of every owner begin, and where the last end, shape (owners + 1,)."""
    return np.concatenate([[0], np.cumsum(count)]).astype(np.int64)


def ranges_of(owner: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the first thing of each of ``count`` owners and one past its last, each (count,); ``owner`` is sorted."""
    owners = np.arange(count)
    return np.searchsorted(owner, owners), np.searchsorted(owner, owners, side="right")
