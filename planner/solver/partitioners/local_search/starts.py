"""Where searches begin: one option per item, chosen by price under a cap on the largest piece.

Cheap options leave heavy pieces, which balance badly; finely cut ones balance well and cost more in all.
No single trade is right, so that there are several starts: the relaxation's own choices where there is a
guide, rounded in two ways, then per cap the cheapest options whose largest piece
stays below that part of the slowest rank in every phase, and below a part of a rank's memory: pieces of more
than half a rank hardly pack.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.partitioners.local_search.search_data import View, unit_options
from planner.solver.problem import RelaxationHint, Scope
from planner.solver.segments import first_least

#: Largest piece of an option, in parts of the slowest rank of its phase and of a rank's memory.
CAPS = ((0.8, 0.55), (0.8, 1.0), (0.65, 0.5), (0.6, 0.35), (1.1, 1.0), (0.4, 1.0), (1.5, 1.0), (0.25, 1.0), (3.0, 1.0))
_ROUNDS = 4
_TOO_LARGE = 1e3  # an option over the cap is this much worse than one under it
_OUTSIDE = 1e12  # seconds of an option that is none of those to choose among, for each second of a good plan
_MEMORY_STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a good plan is expected to look like."""

    slowest_seconds: Floats  # (Q,)
    memory_price: Floats  # (M',) seconds per byte of the whole cluster


def targets_of(view: View, hint: RelaxationHint | None) -> tuple[Target, ...]:
    """Return the guide's word, and an estimate too where the guide's prices choose more bytes than there are.

    Of several tiers the relaxation mixes choices of one table, and its prices leave open which tables go where.
    """
    target = target_of(view, hint)
    chosen = view.option_bytes[choose(view, target, 1.0)].sum(axis=0)
    fits = bool(np.all(chosen <= view.data.capacity.sum(axis=0)))
    return (target,) if hint is None or fits else (target, target_of(view, None))


def target_of(view: View, hint: RelaxationHint | None) -> Target:
    """Take the guide's word, or estimate: cheapest options that fit, then ever better caps."""
    if hint is not None:
        slowest = hint.slowest_seconds
        phases = view.phases
        seconds = slowest if len(slowest) == len(view.data.weight) else slowest[phases]
        return Target(slowest_seconds=_not_zero(seconds), memory_price=hint.memory_price[view.tiers])
    price = np.zeros(view.data.capacity.shape[1])
    options = choose(view, Target(slowest_seconds=np.full(len(view.data.weight), np.inf), memory_price=price), 1.0)
    for _ in range(_ROUNDS):
        slowest = _not_zero(view.option_seconds[options].sum(axis=0) / view.data.rank_class.shape[0])
        price = _memory_price(view, slowest)
        options = choose(view, Target(slowest_seconds=slowest, memory_price=price), 1.0)
    return Target(slowest_seconds=slowest, memory_price=price)


def starts(view: View, target: Target, hint: RelaxationHint | None) -> Iterator[Ints]:
    """Yield choices of one option per item, shape (I,), the most promising first, no two alike."""
    seen: set[bytes] = set()
    for options in _candidates(view, target, hint):
        if options.tobytes() not in seen:
            seen.add(options.tobytes())
            yield options


def _candidates(view: View, target: Target, hint: RelaxationHint | None) -> Iterator[Ints]:
    """Yield choices, of which some may be alike."""
    of_memory = largest_of_memory(view)
    if hint is not None:
        yield _of_guide(view, target, hint.option)
        yield _of_guide(view, target, hint.second_option)
    for of_slowest, of_rank in CAPS:
        yield choose(view, target, of_slowest, of_memory / of_rank)
    yield fewest_pieces(view)


def fewest_pieces(view: View) -> Ints:
    """Return the option of every item on the fewest ranks, shape (I,): where groups keep apart, no more may be free."""
    local = len(view.data.rank_class) // view.data.host_allowed.shape[1]
    touched = np.array([1, local, len(view.data.rank_class)])[view.data.family_scope[view.data.option_family]]
    order = np.lexsort((view.option_seconds.sum(axis=1), touched * view.option_pieces, view.option_item))
    fewest: Ints = order[np.searchsorted(view.option_item[order], np.arange(len(view.data.item_columns)))]
    return fewest


def choose(
    view: View, target: Target, cap: float, over_memory: Floats | None = None, waste: Floats | None = None
) -> Ints:
    """Return the cheapest option of every item whose pieces stay under the cap, shape (I,).

    ``over_memory``, shape (O,), is the largest piece of every option in parts of the memory that it may take;
    ``waste``, shape (O,), the seconds that an option costs besides its price.
    """
    cost = priced_cost(view, target)
    if waste is not None:
        cost = cost + waste
    return _cheapest(view, cost, _over_cap(view, target, cap, over_memory), expected_seconds(target))


def _over_cap(view: View, target: Target, cap: float, over_memory: Floats | None = None) -> Floats:
    """Return the largest piece of every option in parts of what the cap allows, shape (O,)."""
    over: Floats = np.max((view.option_largest / target.slowest_seconds).T.copy(), axis=0) / cap
    return over if over_memory is None else np.maximum(over, over_memory)


def _cheapest(view: View, cost: Floats, over: Floats, expected: float) -> Ints:
    """Return the cheapest option of every item, those over the cap last, shape (I,)."""
    cost = np.where(over > 1, (cost + expected) * over * _TOO_LARGE, cost)
    return first_least(cost, view.data.item_option[:-1], view.option_item)


def expected_seconds(target: Target) -> float:
    """Return what the phases of the target take together, seconds."""
    return float(np.sum(target.slowest_seconds[np.isfinite(target.slowest_seconds)]))


def priced_cost(view: View, target: Target) -> Floats:
    """Return what every option costs: its seconds over all ranks, as a mean, and its bytes, shape (O,)."""
    return mean_seconds(view) + view.option_bytes @ target.memory_price


def mean_seconds(view: View) -> Floats:
    """Return the seconds of every option over all ranks, as a mean, shape (O,)."""
    mean: Floats = view.option_seconds @ view.data.weight / view.data.rank_class.shape[0]
    return mean


def choose_among(view: View, target: Target, some: Bools) -> Ints:
    """Return the cheapest of some listed options, (O,), for every item that has any of them, else of all, (I,)."""
    source = view.items.option_source
    is_among = (source >= 0) & some[np.maximum(source, 0)]
    has_any = np.zeros(len(view.data.item_columns), dtype=np.bool_)
    has_any[view.option_item[is_among]] = True
    outside = np.where(has_any[view.option_item] & ~is_among, _OUTSIDE * (1.0 + expected_seconds(target)), 0.0)
    return choose(view, target, 1.0, waste=outside)


def _of_guide(view: View, target: Target, guided: Ints) -> Ints:
    """Translate the options of tables to those of items, and choose for those without: groups, options not legal."""
    options = choose(view, target, 1.0)
    listed = np.flatnonzero(np.isin(view.items.option_source, guided))
    options[view.option_item[listed]] = listed
    return options


def largest_of_memory(view: View) -> Floats:
    """Return the largest piece of every option that is not on all ranks, in parts of the smallest rank, shape (O,)."""
    data, option = view.data, unit_options(view.data)
    part = memory_of_units(view)
    largest = np.zeros(len(view.option_item))
    np.maximum.at(largest, option, np.where(data.family_scope[data.option_family[option]] == Scope.WORLD, 0.0, part))
    return largest


def memory_of_units(view: View) -> Floats:
    """Return the memory of every unit, in parts of the smallest rank, where it takes most of it, shape (U,)."""
    data = view.data
    parts = data.shape_bytes[data.unit_shape] / np.maximum(np.min(data.capacity, axis=0), 1.0)
    return np.asarray(np.max(parts, axis=1))


def _memory_price(view: View, slowest: Floats) -> Floats:
    """Raise the price of bytes until the chosen options leave a little of the cluster's memory free."""
    capacity: Floats = np.sum(view.data.capacity, axis=0)
    price: Floats = np.zeros_like(capacity)
    step = float(np.sum(slowest)) / np.maximum(capacity, 1.0) * 1e-3
    target = Target(slowest_seconds=slowest, memory_price=price)
    over, expected, mean = _over_cap(view, target, 1.0), expected_seconds(target), mean_seconds(view)
    for _ in range(_MEMORY_STEPS):
        options = _cheapest(view, mean + view.option_bytes @ price, over, expected)
        short = view.option_bytes[options].sum(axis=0) > 0.97 * capacity
        if not np.any(short):
            break
        price = np.where(short, np.maximum(price * 2, step), price)
    return price


def _not_zero(seconds: Floats) -> Floats:
    """A phase that is almost nothing still has a scale."""
    floor = max(float(np.max(seconds)) * 1e-6, 1e-12)
    scaled: Floats = np.maximum(seconds, floor)
    return scaled
