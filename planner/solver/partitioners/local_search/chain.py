"""One search from one start: a state, the best plan it has seen, and the stages it goes through."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cost_models.arrays import Bools, Ints
from planner.solver.fixed_cuts import in_fixed_order
from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.kernels.anneal import anneal
from planner.solver.partitioners.kernels.construct.greedy import construct, restore
from planner.solver.partitioners.kernels.construct.rank_filling import Order, fill_hosts, place_rest
from planner.solver.partitioners.kernels.cost.smooth_cost import (
    count_moved,
    count_overflow,
    objective,
    refresh,
    rescale,
)
from planner.solver.partitioners.kernels.state.records import pack_data, pack_state
from planner.solver.partitioners.kernels.state.state import empty_state
from planner.solver.partitioners.local_search.items import Items
from planner.solver.partitioners.local_search.piece_order import order_for_fewest_moves
from planner.solver.partitioners.local_search.proposal_mix import (
    PAIR_REDISTRIBUTION_RATE,
    cumulative_mix,
    expected_redistribution_seconds,
    looked_seconds,
    looks_of,
    proposal_rates,
    work_seconds,
)
from planner.solver.partitioners.local_search.search_data import View, from_assignment, shape_families, to_assignment
from planner.solver.partitioners.local_search.starts import Target
from planner.solver.problem import Assignment

_BUILD_SMOOTHNESS = 20.0  # slowest load / tau while a plan is built
_EVERY = 16  # items between two counts of the weights while a plan is built
_PART = 64 * _EVERY  # items between two looks at the clock while a plan is built
# Objectives per capacity of one rank that bytes exceed: grows while the state does not fit, and falls again.
_PENALTY = 10.0
_MOST_PENALTY = 1e5
_PRICE_UP, _PRICE_DOWN = 1.2, 0.97
#: Bytes that may move are short once so many of them do; all of them together then cost some part of the objective.
_SPENT, _LEAST_MOVE_PRICE = 0.95, 1e-3
_CHUNK, _LEAST_CHUNK = 4096, 256  # proposals between two looks at the limit and at the plan
_COOLED_IN = 8  # chunks at least, so that a short stage cools too
#: Work of redistributions after which their count weighs as much as the expectation, and the part of both that the next
#: chunk remembers: most redistributions are seen to be hopeless at once, and a few take long.
_BELIEVED_SECONDS, _REMEMBERED = 5e-3, 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Temperature, smoothness and moves; temperature and smoothness go geometrically from first to last."""

    first_temperature: float  # Metropolis temperature in objectives
    last_temperature: float
    first_smoothness: float  # slowest load / tau
    last_smoothness: float
    cuts: bool  # whether tables are cut again, or pieces only move
    pair_redistribution_rate: float = 0.0  # part of the proposals that share the pieces of two ranks out again


def settle(items: int, proposals_per_item: float, *, is_even: bool) -> Stage:
    """Pieces move between ranks, at a smoothness that looks at many ranks at once.

    The search can afford ``proposals_per_item``: the fewer these are, the lower the first temperature. It is also
    low if the first plan is nearly even already, since a high temperature would only undo that plan.
    """
    temperature = min((0.01 if is_even else 0.3) / items, 3e-3) * min(1.0, proposals_per_item / 8000)
    return Stage(
        first_temperature=temperature,
        last_temperature=min(5e-6, temperature),
        first_smoothness=30.0,
        last_smoothness=800.0,
        cuts=False,
        pair_redistribution_rate=PAIR_REDISTRIBUTION_RATE,
    )


def annealing(temperature: float) -> Stage:
    """Tables are cut again around what has settled; the hotter, the less is left of it."""
    return Stage(
        first_temperature=temperature,
        last_temperature=min(5e-7, temperature),
        first_smoothness=30.0,
        last_smoothness=1500.0,
        cuts=True,
        pair_redistribution_rate=PAIR_REDISTRIBUTION_RATE,
    )


#: Only what helps the slowest ranks.
FINAL_REFINEMENT = Stage(
    first_temperature=1e-6, last_temperature=1e-7, first_smoothness=800.0, last_smoothness=4000.0, cuts=True
)


_REPAIR = Stage(first_temperature=1e-5, last_temperature=1e-6, first_smoothness=30.0, last_smoothness=100.0, cuts=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """What came of letting ranks choose."""

    is_built: bool  # else some piece has no legal site, and the state is of no use
    left_over: Bools  # (I,) what no rank chose, or not all of it
    num_cells: float  # of knapsacks that were looked at


class Chain:
    """A state that one search changes, and the best plan it has seen."""

    def __init__(self, view: View, seed: int) -> None:
        self._view = view
        self._data = pack_data(view.data)
        self._arrays = empty_state(view.data, seed)
        self._state = pack_state(self._arrays)
        self._penalty = _PENALTY
        self._move_price = float(view.data.move["price_per_byte"][0])
        self._arrays.counters["move_price"] = self._move_price
        self.best_seconds = np.inf
        self._best: tuple[Ints, Ints, Ints] | None = None
        self._expected_seconds = self._counted_seconds = 0.0  # work of recent redistributions of three ranks

    def build(self, options: Ints, target: Target, order: Ints, within: Effort | None = None) -> bool:
        """Place every item under its option, pinned ones first.

        ``False`` where one has no legal site, or the effort ``within`` which it is to end is late.
        """
        free = self._begin(target, order)
        for first in range(0, len(free), _PART):
            if first and within is not None and within.is_late:
                return False
            if not construct(self._data, self._state, free[first : first + _PART], options, _EVERY):
                return False
        self.look()
        return True

    def fill(self, order: Order, target: Target, options: Ints, first: Bools, rest: Ints) -> Filled:
        """Let every rank choose its pieces.

        Items that are to be placed ``first``, shape (I,), each under its option, leave ranks the rest; what no rank
        chose is placed in the order of ``rest`` where it hurts least.
        """
        data = self._view.data
        free = self._begin(target, rest)
        built = construct(self._data, self._state, free[first[free]], options, _EVERY)
        remaining = np.where(first | data.item_fixed, 0, data.item_columns)
        looked = fill_hosts(self._data, self._state, order, remaining) if built else 0.0
        left: Bools = remaining > 0
        missing = free[self._arrays.num_pieces[free] == 0]
        rescale(self._data, self._state)
        built = (
            built
            and place_rest(self._data, self._state, remaining)
            and construct(self._data, self._state, missing, options, _EVERY)
        )
        if built:
            self.look()
        return Filled(is_built=bool(built), left_over=left, num_cells=float(looked))

    def load(self, assignment: Assignment) -> bool:
        """Take over a plan; ``False`` where the search cannot express it."""
        placed = from_assignment(self._view, assignment)
        if any(one is None for one in placed):
            return False
        self._restore(placed)
        self.look()
        return True

    def complete(self, known: Assignment, options: Ints, target: Target, order: Ints) -> bool:
        """Take over the tables that a plan has, and place the others under their options; ``False`` as in ``build``."""
        placed = from_assignment(self._view, known)
        self._prepare(target)
        self._restore(placed)
        missing = np.array([one is None for one in placed])
        built = construct(self._data, self._state, order[missing[order]], options, _EVERY)
        if built:
            self.look()
        return bool(built)

    def _restore(self, placed: list[tuple[int, Ints, Ints] | None]) -> None:
        for item, one in enumerate(placed):
            if one is not None:
                restore(self._data, self._state, item, *one)

    def _begin(self, target: Target, order: Ints) -> Ints:
        """Place the pinned items; return the others in this order."""
        self._prepare(target)
        for item, (family, shapes, sites) in _pinned(self._view).items():
            restore(self._data, self._state, item, family, shapes, sites)
        return order[~self._view.data.item_fixed[order]]

    def _prepare(self, target: Target) -> None:
        """Set the scales that a plan is built at."""
        refresh(self._data, self._state, 1.0, _PENALTY * float(np.sum(target.slowest_seconds)))
        self._arrays.tau[:] = target.slowest_seconds / _BUILD_SMOOTHNESS

    def look(self) -> bool:
        """Compare the state with the best plan so far; keep it where it fits and is faster."""
        count_moved(self._data, self._state)
        count_overflow(self._data, self._state)
        seconds = self.seconds
        fits = self._arrays.counters["overflow"][0] <= 0
        self._penalty = (
            max(self._penalty * _PRICE_DOWN, _PENALTY) if fits else min(self._penalty * _PRICE_UP, _MOST_PENALTY)
        )
        if not fits or seconds >= self.best_seconds:
            return False
        self.best_seconds = seconds
        self._best = (self._arrays.slot_shape.copy(), self._arrays.slot_site.copy(), self._arrays.num_pieces.copy())
        return True

    @property
    def seconds(self) -> float:
        """Objective of the state as it is, whether it fits or not."""
        return float(objective(self._data, self._state))

    @property
    def rating(self) -> tuple[bool, float]:
        """What to sort chains by, best first: those with a plan by its objective, then by what they lack."""
        if self._best is not None:
            return False, self.best_seconds
        over = float(self._arrays.counters["overflow"][0]) / len(self._view.data.rank_class)
        return True, self.seconds * (1.0 + _PENALTY * over)

    @property
    def _relative_work(self) -> float:
        """Counted work of recent redistributions, in parts of the expected work."""
        return (_BELIEVED_SECONDS + self._counted_seconds) / (_BELIEVED_SECONDS + self._expected_seconds)

    def run(
        self,
        stage: Stage,
        effort: Effort,
        until: float,
        good_seconds: float,
        after_look: Callable[[bool], None] | None = None,
    ) -> None:
        """Go through a stage until the effort reaches ``until``, or a plan of ``good_seconds`` is found.

        ``after_look`` is called after every chunk, with whether the state is a better plan.
        """
        began = effort.fraction
        scale = max(self.seconds, 1e-12)
        part_seconds = (until - began) * effort.total_seconds / _COOLED_IN
        self._arrays.counters["overflow_penalty"] = self._penalty * scale
        while (now := effort.fraction) < min(until, 1.0) and self.best_seconds > good_seconds:
            self._adapt_move_price(scale)
            done = (now - began) / max(until - began, 1e-12)
            temperature = stage.first_temperature * (stage.last_temperature / stage.first_temperature) ** done
            smoothness = stage.first_smoothness * (stage.last_smoothness / stage.first_smoothness) ** done
            pieces = self._arrays.site_count
            rates = proposal_rates(
                self._view,
                pieces,
                smoothness,
                pair=stage.pair_redistribution_rate,
                cuts=stage.cuts,
                relative_work=self._relative_work,
            )
            without_redistributions = work_seconds(self._view, rates, cuts=stage.cuts)
            expected = expected_redistribution_seconds(self._view, pieces, rates)
            each = without_redistributions + self._relative_work * expected
            proposals = int(np.clip(part_seconds / each, _LEAST_CHUNK, _CHUNK))
            self._arrays.looked[0] = 0.0
            proposals = anneal(
                self._data,
                self._state,
                proposals,
                temperature * scale,
                smoothness,
                self._penalty * scale,
                cumulative_mix(rates),
                looks_of(max(part_seconds, _LEAST_CHUNK * each)),
            )
            counted = looked_seconds(float(self._arrays.looked[0]))
            self._expected_seconds = _REMEMBERED * self._expected_seconds + proposals * expected
            self._counted_seconds = _REMEMBERED * self._counted_seconds + counted
            effort.spend(proposals * without_redistributions + counted)
            is_better = self.look()
            if after_look is not None:
                after_look(is_better)

    def repair(self, effort: Effort, until: float = 1.0) -> None:
        """Make the pieces fit the memory of their ranks; the first plan that fits ends it."""
        self.run(_REPAIR, effort, until, sys.float_info.max)

    def _adapt_move_price(self, scale: float) -> None:
        """Where few bytes may move, let them cost so much that the search spends them on what helps most."""
        per_byte, most_bytes, _ = self._view.data.move[0].tolist()
        if not np.isfinite(most_bytes):
            return
        is_spent = self._arrays.counters["moved_bytes"][0] > _SPENT * most_bytes
        highest_price = scale / max(most_bytes, 1.0)
        self._move_price = (
            min(self._move_price * _PRICE_UP, highest_price) if is_spent else self._move_price * _PRICE_DOWN
        )
        self._move_price = max(self._move_price, float(per_byte), _LEAST_MOVE_PRICE * highest_price)
        self._arrays.counters["move_price"] = self._move_price

    def assignment(self) -> Assignment | None:
        """Return the best plan seen, if any fitted."""
        if self._best is None:
            return None
        priced = self._view.priced
        return in_fixed_order(priced, order_for_fewest_moves(priced, to_assignment(self._view, *self._best)))


def _members(items: Items, shape: int) -> set[int]:
    """Return the shapes of the tables of a group, one of each."""
    return set(items.member_shape[items.shape_member[shape] : items.shape_member[shape + 1]].tolist())


def _pinned(view: View) -> dict[int, tuple[int, Ints, Ints]]:
    """Return family, shapes and sites of the items that the user fixed."""
    priced = view.priced
    if not len(priced.pinned_shape):
        return {}
    items, shape_family = view.items, shape_families(view.data)
    search_shape = np.full(priced.num_shapes, -1, dtype=np.int64)
    search_shape[items.leader] = np.arange(len(items.leader))
    table = priced.shape_table[priced.pinned_shape]
    pinned = {}
    for item, members in enumerate(items.tables):
        mine = np.isin(table, members)
        if not np.any(mine):
            continue
        shapes, sites = priced.pinned_shape[mine], priced.pinned_site[mine]
        if len(members) == 1:
            shapes = search_shape[shapes]
        else:  # tables of one rank: a shape of the group that has those of all its pinned tables
            of_group = items.family_shape[items.item_family[item] : items.item_family[item + 1]].tolist()
            shapes = np.array([shape for shape in of_group if set(shapes.tolist()) <= _members(items, shape)][:1])
            sites = sites[:1]
        pinned[item] = (int(shape_family[shapes[0]]), shapes, sites)
    return pinned
