r"""Choices of options that differ in what a piece's size costs: as many as a search has time for.

Seconds and bytes at the relaxation's prices say what an option costs a cluster that is filled to the brim; they say
nothing of what is wasted where large pieces do not fit next to each other. The waste grows about with the
square of a piece's size, so that an option with pieces of parts :math:`s_u` of a rank costs besides

.. math:: \kappa \sum_u s_u^2 / R

objectives, on R ranks. How much :math:`\kappa` should be, how much bytes count as size and how large a piece may be at
all differs from problem to problem, and plans from different choices end far apart. A Kronecker sequence spreads
them evenly however many are taken, without chance.

References
----------
Sequence: M. Roberts, "The unreasonable effectiveness of quasirandom sequences" (2018), powers of the root of
:math:`x^5 = x + 1`.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Floats, Ints
from planner.solver.partitioners.local_search.search_data import View, unit_options
from planner.solver.partitioners.local_search.starts import (
    Target,
    choose,
    expected_seconds,
    largest_of_memory,
    memory_of_units,
)
from planner.solver.problem import Scope

_ROOT = 1.1347241384015194  # of x^6 = x + 1
_LEAST_PRICE, _MOST_PRICE = 0.003, 0.6
_MOST_OF_BYTES = 1.2
_LEAST_CAP, _LEAST_MEMORY_CAP = 0.5, 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionChoiceRule:
    """What size costs, and how large a piece may be."""

    price: float  # kappa, objectives
    of_bytes: float  # a piece's part of a rank's memory counts as size, times this
    cap: float  # of a slowest rank's seconds in any phase
    memory_cap: float  # of a rank's memory
    slower: float  # than the relaxation expects a slowest rank may be


def option_choice_rules(most_slower: float = 1.0) -> Iterator[OptionChoiceRule]:
    """Yield tastes without end, always the same."""
    steps = _ROOT ** -np.arange(1.0, 6.0)
    for index in itertools.count(1):
        a, b, c, d, e = ((0.5 + index * steps) % 1).tolist()
        yield OptionChoiceRule(
            price=_LEAST_PRICE * (_MOST_PRICE / _LEAST_PRICE) ** a,
            of_bytes=_MOST_OF_BYTES * b,
            cap=_LEAST_CAP + (1 - _LEAST_CAP) * c,
            memory_cap=_LEAST_MEMORY_CAP + (1 - _LEAST_MEMORY_CAP) * d,
            slower=1 + (most_slower - 1) * e,
        )


def choose_by(view: View, target: Target, choice_rule: OptionChoiceRule) -> Ints:
    """Return the option of every item that is cheapest by a taste, shape (I,)."""
    target = replace(target, slowest_seconds=choice_rule.slower * target.slowest_seconds)
    waste = choice_rule.price * expected_seconds(target) * _squares(view, target, choice_rule.of_bytes)
    return choose(view, target, choice_rule.cap, largest_of_memory(view) / choice_rule.memory_cap, waste)


def _squares(view: View, target: Target, of_bytes: float) -> Floats:
    """Return the squares of the parts of a rank that an option's pieces take, as a mean over ranks, shape (O,).

    What lies on all ranks alike wastes nothing.
    """
    data, option = view.data, unit_options(view.data)
    ranks, hosts = len(data.rank_class), data.host_allowed.shape[1]
    seconds = data.shape_seconds.mean(axis=0)[data.unit_shape] / target.slowest_seconds
    part = np.maximum(np.max(seconds, axis=1), of_bytes * memory_of_units(view))
    scope = data.family_scope[data.option_family[option]]
    touched = np.where(scope == Scope.HOST, ranks // hosts, np.where(scope == Scope.WORLD, 0, 1))
    return np.bincount(option, weights=part**2 * touched, minlength=len(view.option_item)) / ranks
