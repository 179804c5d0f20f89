"""First plans: options by price, then item by item onto the site where it hurts least."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from cost_models.arrays import Ints
from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.cost.site_choice import ALL_RANKS
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.option_choices import choose_by, option_choice_rules
from planner.solver.partitioners.local_search.search_data import View
from planner.solver.partitioners.local_search.starts import Target, fewest_pieces, starts, target_of, targets_of
from planner.solver.problem import RelaxationHint, Scope

#: Nominal work of looking at one site for one piece.
LOOK_SECONDS = 5e-8
#: Choices of options that are tried in one order before the next order: the first three are the best.
_AT_ONCE = 3

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


def constructions(view: View, hint: RelaxationHint | None, seed: int, effort: Effort) -> Iterator[Chain]:
    """Yield one state per choice of options and order, the most promising first.

    The memory of ranks is a price here and not a rule: a state may overflow, and is then for a search to mend.

    Late, the one that is under way is given up if there was one before; else it is finished, and unless it was built
    the choice that leaves most ranks free comes next, and last: a problem that has a plan does not go without.
    """
    target = target_of(view, hint)
    is_any_built = False
    for number, (order, options) in enumerate(_in_turns(view, target, hint)):
        if number and effort.is_late:
            break
        chain = Chain(view, seed)
        if _build(chain, view, options, order, target, effort, may_stop=is_any_built):
            is_any_built = True
            yield chain
    if not is_any_built and effort.is_late:
        chain = Chain(view, seed)
        if _build(chain, view, fewest_pieces(view), heaviest_first, target, effort, may_stop=False):
            yield chain


def _in_turns(view: View, target: Target, hint: RelaxationHint | None) -> Iterator[tuple[Order, Ints]]:
    """Yield orders and choices of options, a few choices at a time in one order after the other."""
    chosen = starts(view, target, hint)
    while some := list(itertools.islice(chosen, _AT_ONCE)):
        yield from itertools.product(ORDERS, some)


def by_choice_rule(
    view: View, hint: RelaxationHint | None, count: int, seeds: Iterator[int], effort: Effort, most_slower: float = 1.0
) -> Iterator[Chain]:
    """Try so many choices of options: the first starts, then one per taste, in either order by turns.

    A choice under which some piece has no legal site yields nothing; nor does one that ends late after another.
    """
    is_any_built = False
    for target, options, order in itertools.islice(_by_turns(view, hint, most_slower), count):
        if is_any_built and effort.is_late:
            return
        chain = Chain(view, next(seeds))
        if _build(chain, view, options, order, target, effort, may_stop=is_any_built):
            is_any_built = True
            yield chain


def _by_turns(view: View, hint: RelaxationHint | None, most_slower: float) -> Iterator[tuple[Target, Ints, Order]]:
    """Yield the first starts of each target, then tastes without end, with orders and targets by turns."""
    targets = targets_of(view, hint)
    for target, guide in zip(targets, (hint, None), strict=False):
        for options in itertools.islice(starts(view, target, guide), _AT_ONCE):
            yield target, options, heaviest_first
    turns = itertools.cycle(itertools.product(ORDERS, targets))
    for choice_rule, (order, target) in zip(option_choice_rules(most_slower), turns, strict=False):
        yield target, choose_by(view, target, choice_rule), order


def _build(
    chain: Chain, view: View, options: Ints, order: Order, target: Target, effort: Effort, *, may_stop: bool
) -> bool:
    """Build a state in an order; ``False`` where some piece has no legal site, or it ``may_stop`` and is late."""
    looks = float(np.sum(view.option_pieces[options])) * min(len(view.data.rank_class), ALL_RANKS)
    effort.spend(LOOK_SECONDS * looks)
    placing = least_choice_first(view, options, order(view, options, target))
    return chain.build(options, target, placing, effort if may_stop else None)


def least_choice_first(view: View, options: Ints, order: Ints) -> Ints:
    """Put what lies on all ranks first, so that the rest knows the room; then who may use few ranks or keeps apart."""
    data = view.data
    choice = data.allowed.sum(axis=1) - np.diff(data.apart_first)
    unlimited = choice == data.allowed.shape[1]
    choice = np.where(unlimited, data.allowed.shape[1], choice)
    choice[data.family_scope[data.option_family[options]] == Scope.WORLD] = 0
    return order[np.argsort(choice[order], kind="stable")]
