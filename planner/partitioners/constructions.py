"""First plans: options by price, then item by item onto the site where it hurts least."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from planner.partitioners.base import Effort
from planner.partitioners.chain import Chain
from planner.partitioners.starts import Target, starts, target_of
from planner.partitioners.view import View
from planner.priced import Guide

Ints = NDArray[np.int64]

#: Nominal work of looking at one site for one piece.
_LOOK_SECONDS = 5e-8

Order = Callable[[View, Ints, Target], Ints]


def heaviest_first(view: View, options: Ints, target: Target) -> Ints:
    """Order items by the largest part of a slowest rank that one of their pieces takes, shape (I,)."""
    heaviest = np.max(view.option_largest[options] / target.slowest_seconds, axis=1)
    return np.argsort(-heaviest, kind="stable")


def largest_first(view: View, options: Ints, target: Target) -> Ints:
    """Order items by the bytes of their options, shape (I,)."""
    del target
    return np.argsort(-np.sum(view.option_bytes[options], axis=1), kind="stable")


#: The second order helps where memory is tight.
ORDERS: tuple[Order, ...] = (heaviest_first, largest_first)


def constructions(view: View, guide: Guide | None, seed: int, effort: Effort) -> Iterator[Chain]:
    """Yield one state per choice of options and order, the most promising first.

    The memory of ranks is a price here and not a rule: a state may overflow, and is then for a search to mend.
    """
    target = target_of(view, guide)
    for options in starts(view, target, guide):
        for order in ORDERS:
            chain = Chain(view, seed)
            looks = float(np.sum(view.option_pieces[options])) * len(view.data.rank_class)
            effort.spend(_LOOK_SECONDS * looks)
            if chain.build(options, target, _narrow_first(view, order(view, options, target))):
                yield chain


def _narrow_first(view: View, order: Ints) -> Ints:
    """Items that may use few ranks, or must keep away from others, go first: they have the least choice."""
    data = view.data
    choice = data.allowed.sum(axis=1) - np.diff(data.apart_first)
    unlimited = choice == data.allowed.shape[1]
    return order[np.argsort(np.where(unlimited, data.allowed.shape[1], choice)[order], kind="stable")]
