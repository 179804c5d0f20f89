"""A search's state as tables and pieces, and its cost by definition: everything is counted again at every look.

Where rounding would decide, as between two ranks that are equally slow, ``Ambiguous`` is raised.
"""

import copy
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cost_models.arrays import Floats
from planner.solver.partitioners.local_search.chain import Chain
from tests.support.search_oracle.random_numbers import RandomNumbers

RANK, HOST, WORLD = 0, 1, 2
#: Relative differences below which rounding decides: of two numbers, and of a growth against what grows. The compiled
#: search adds weights to sums and takes them off, which costs digits (``undo_log``).
_RESOLUTION, _OF_COSTS = 1e-9, 1e-7
_FEWEST_DIGITS = 1e-290  # smaller numbers, such as weights of ranks that do next to nothing, lose theirs
_HIDDEN = 1e-3  # part of a hidden phase that counts
STEEPEST = 500.0  # exponents of weights from which the compiled search clips them


class Ambiguous(Exception):
    """Rounding decides here."""


class Piece(NamedTuple):
    """One piece of one table."""

    item: int
    slot: int
    scope: int
    shape: int
    site: int


def exceeds(one: float, other: float, scale: float = 0.0) -> bool:
    """Whether one number is larger than another, unless rounding decides; ``scale`` is what both are differences of."""
    if math.isinf(one) or math.isinf(other):
        return one > other
    if abs(one - other) <= max(_RESOLUTION * max(abs(one), abs(other)), _OF_COSTS * abs(scale), _FEWEST_DIGITS):
        raise Ambiguous
    return one > other


class PlainSearch:
    """Pieces by slot, slots by place, and the scales of the smooth cost; a place is a rank, or R and a host."""

    def __init__(self, chain: Chain) -> None:
        arrays, data = chain._arrays, chain._view.data  # noqa: SLF001
        self.data = data
        self.num_ranks, self.num_hosts = len(data.rank_host), data.host_allowed.shape[1]
        self.local = self.num_ranks // self.num_hosts
        self.shape, self.site = arrays.slot_shape.tolist(), arrays.slot_site.tolist()
        self.num_pieces, self.family = arrays.num_pieces.tolist(), arrays.family.tolist()
        self.places = [
            slots[:count].tolist() for slots, count in zip(arrays.site_slots, arrays.site_count, strict=True)
        ]
        self.tau, self.reference = arrays.tau.copy(), arrays.reference.copy()
        self.penalty = float(arrays.counters["overflow_penalty"][0])
        self.move_price = float(arrays.counters["move_price"][0])
        self.random = RandomNumbers(int(arrays.seed[0]))
        self.cut_sites: tuple[int, int] | None = None  # of the two pieces that the last cut changed

    def trial(self) -> "PlainSearch":
        """A copy to change, which draws from the same random numbers."""
        other = copy.copy(self)
        other.shape, other.site = self.shape.copy(), self.site.copy()
        other.num_pieces, other.family = self.num_pieces.copy(), self.family.copy()
        other.places = [slots.copy() for slots in self.places]
        return other

    # Pieces and places.

    def scope_of(self, item: int) -> int:
        return int(self.data.family_scope[self.family[item]])

    def slots(self, item: int) -> range:
        first = int(self.data.item_slot[item])
        return range(first, first + self.num_pieces[item])

    def pieces(self) -> Iterator[Piece]:
        for item in range(len(self.num_pieces)):
            for slot in self.slots(item):
                yield Piece(item, slot, self.scope_of(item), self.shape[slot], self.site[slot])

    def num_sites(self, scope: int) -> int:
        return self.num_ranks if scope == RANK else self.num_hosts

    def place(self, scope: int, site: int) -> int:
        return site if scope == RANK else self.num_ranks + site

    def ranks_of(self, scope: int, site: int) -> range:
        if scope == WORLD:
            return range(self.num_ranks)
        return range(site, site + 1) if scope == RANK else range(site * self.local, (site + 1) * self.local)

    def enlist(self, slot: int, scope: int, site: int) -> None:
        if scope != WORLD:
            self.places[self.place(scope, site)].append(slot)

    def delist(self, slot: int, scope: int, site: int) -> None:
        """Take a slot off its list; the last one takes its turn."""
        if scope != WORLD:
            slots = self.places[self.place(scope, site)]
            slots[slots.index(slot)] = slots[-1]
            slots.pop()

    def shift(self, slot: int, scope: int, target: int) -> None:
        """Put a piece on another site."""
        self.delist(slot, scope, self.site[slot])
        self.enlist(slot, scope, target)
        self.site[slot] = target

    def put(self, slot: int, scope: int, shape: int, site: int) -> None:
        self.shape[slot], self.site[slot] = shape, site
        self.enlist(slot, scope, site)

    # What ranks carry, and what it costs.

    def loads(self) -> Floats:
        """Seconds of every rank in every phase, shape (R, Q), with what lies on all ranks."""
        loads = np.zeros((self.num_ranks, len(self.tau)))
        for piece in self.pieces():
            for rank in self.ranks_of(piece.scope, piece.site):
                loads[rank] += self.data.shape_seconds[self.data.rank_class[rank], piece.shape]
        return loads

    def world_seconds(self) -> Floats:
        """Seconds of what lies on all ranks, shape (Q,); none where ranks differ in speed."""
        seconds = np.zeros(len(self.tau))
        for piece in self.pieces():
            if piece.scope == WORLD and len(self.data.shape_seconds) == 1:
                seconds += self.data.shape_seconds[0, piece.shape]
        return seconds

    def bytes(self) -> Floats:
        """Bytes of every rank in every tier, shape (R, M), with what lies on all ranks."""
        used = np.zeros(self.data.capacity.shape)
        for piece in self.pieces():
            for rank in self.ranks_of(piece.scope, piece.site):
                used[rank] += self.data.shape_bytes[piece.shape]
        return used

    def columns(self) -> np.ndarray:
        """Columns of every item on every place, shape (I, R + H)."""
        columns = np.zeros((len(self.num_pieces), self.num_ranks + self.num_hosts), dtype=np.int64)
        for piece in self.pieces():
            if piece.scope != WORLD:
                columns[piece.item, self.place(piece.scope, piece.site)] += self.data.shape_columns[piece.shape]
        return columns

    @property
    def moves_cost(self) -> bool:
        return len(self.data.columns_before) > 0

    def moved_bytes(self) -> float:
        if not self.moves_cost:
            return 0.0
        moved = sum(float(self.data.shape_moved[piece.shape]) for piece in self.pieces())
        return moved - float(np.sum(np.minimum(self.data.columns_before, self.columns()) * self.data.column_bytes))

    def overflow(self) -> float:
        excess = np.maximum(self.bytes() - self.data.capacity, 0.0) / np.maximum(self.data.capacity, 1.0)
        move = self.data.move[0]
        return float(np.sum(excess)) + max(0.0, self.moved_bytes() - move["max_bytes"]) / move["overflow_unit_bytes"]

    def smooth_loads(self, loads: Floats) -> Floats:
        """The smooth maximum over ranks of each phase, shape (Q,)."""
        slowest = np.max(loads, axis=0)
        smooth: Floats = slowest + self.tau * np.log(np.sum(np.exp((loads - slowest) / self.tau), axis=0))
        return smooth

    def phase_costs(self, loads: Floats) -> Floats:
        """Cost of each phase, shape (Q,): what is not hidden of the smooth maximum."""
        smooth = self.smooth_loads(loads)
        hidden = np.where(self.data.window > 0, _HIDDEN * smooth, 0.0)
        return self.data.weight * (np.maximum(smooth - self.data.window, 0.0) + hidden)

    def cost(self) -> float:
        price = self.move_price * self.moved_bytes() + self.penalty * self.overflow()
        return float(np.sum(self.phase_costs(self.loads()))) + price

    def accepts(self, trial: "PlainSearch", bar: float) -> bool:
        """Whether a changed search costs at most the bar more."""
        before, after = self.cost(), trial.cost()
        return not exceeds(after - before, bar, before)

    def softmax(self) -> Floats:
        """Each rank's part of the weights of a phase, shape (R, Q); picks follow weights, which may be clipped."""
        loads = self.loads()
        slowest = np.max(loads, axis=0) - self.world_seconds()
        if np.any(np.abs(slowest - self.reference) > STEEPEST * self.tau):
            raise Ambiguous
        weights = np.exp((loads - np.max(loads, axis=0)) / self.tau)
        parts: Floats = weights / np.sum(weights, axis=0)
        return parts

    # What is legal.

    def apart_ranks(self, item: int) -> set[int]:
        """Ranks with a piece of an item that must keep apart from this one."""
        first, last = self.data.apart_first[item : item + 2]
        apart = set(self.data.apart_item[first:last].tolist())
        return {
            rank for piece in self.pieces() if piece.item in apart for rank in self.ranks_of(piece.scope, piece.site)
        }

    def is_legal(self, item: int, scope: int, site: int) -> bool:
        """Whether an item may use a rank, or all ranks of a host."""
        if scope == WORLD:
            return True
        ranks = list(self.ranks_of(scope, site))
        return bool(np.all(self.data.allowed[item, ranks])) and not self.apart_ranks(item) & set(ranks)

    def may_shift(self, slot: int, scope: int, site: int) -> bool:
        """Whether the piece of a slot may go to another rank or host, the other pieces staying where they are."""
        item = int(self.data.slot_item[slot])
        if self.data.item_fixed[item] or not self.is_legal(item, scope, site):
            return False
        if scope == HOST or not self.data.family_same_host[self.family[item]] or self.num_pieces[item] == 1:
            return True
        return site // self.local == self.site[slot] // self.local
