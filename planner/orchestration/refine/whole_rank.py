"""Moves whole shards to other ranks, alone or in exchange, while the model of whole ranks finds an improvement.

A search with additive prices balances what shards cost by themselves. Near its end, what a shard costs depends on what
else lies on its rank, which only the model itself knows: it prices many changes at a time. The slowest rank
of each phase gives shards away or exchanges them. If no change helps, the best of those that cost little is made
and the plan is improved again from there; the result is the best plan of all. Cuts, kernels and tiers do not change.
"""

import time
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from cost_models.protocol import AssignmentModel
from cost_models.vocabulary import Holders, Scheme
from planner.domain.plan.placement import Placement
from planner.domain.plan.shards import Shards
from planner.domain.problem.problem import Problem
from planner.options.enumerate import table_rank_allowed
from planner.pricing.memory.ledger import capacity_bytes
from planner.pricing.placed_work import PlacedWork
from planner.pricing.step.phases import objective_of_ranks, phase_windows
from planner.pricing.step.starts import starts_of_placement

#: Schemes whose shards may each lie on any rank; shards of the other schemes depend on each other.
_FREE = tuple(scheme for scheme in Scheme if scheme.facts.holders is Holders.RANK and not scheme.facts.keeps_host)
_AT_A_TIME, _LEAST_CHANGES = 256, 32  # changes priced together; least that a search for changes counts as
#: Nominal work of one change: seconds, and seconds per rank; measured on one core with 4 to 128 ranks.
_CHANGE_SECONDS, _CHANGE_RANK_SECONDS = 8e-6, 1.5e-6
_MOST_CHANGES = 2_000_000
_LEAST_GAIN = 1e-9  # relative
_MOST_LOSS = 0.02  # relative to the best plan: how much worse a plan may be that is improved again
_TABU = 12  # changes during which a shard that was moved on purpose to a worse place may not move


@dataclass(frozen=True, slots=True)
class RefinedPlacement:
    """The result of a refinement."""

    placement: Placement  # the given one if none is better
    is_cut_by_clock: bool  # before its work was done: the result may not repeat


def refine_whole_ranks(
    problem: Problem, placement: Placement, model: AssignmentModel, seed: int, work_seconds: float, until_seconds: float
) -> RefinedPlacement:
    """Return the best placement that was found by moving shards of ``placement``.

    Ends by counted work, so that plans repeat, and at ``until_seconds`` of the monotonic clock.
    """
    if min(problem.world_size, len(placement.all_shards())) < 2:
        return RefinedPlacement(placement, False)
    if any(placed.hot_rows for placed in placement.tables):  # their shards go in pairs
        return RefinedPlacement(placement, False)
    start = _Refinement(problem, placement, model, seed)
    if not start.movable.any():
        return RefinedPlacement(placement, False)
    best = start.run(work_seconds, until_seconds)
    return RefinedPlacement(placement if best is None else _with_ranks(placement, best), start.is_cut_by_clock)


class _Refinement:
    """One plan while its shards move."""

    def __init__(self, problem: Problem, placement: Placement, model: AssignmentModel, seed: int) -> None:
        placed = PlacedWork.of(problem, placement)
        shards = placed.shards()
        self._problem, self._counted = problem, model.counted_phases
        self._windows, self._slowdown = phase_windows(problem), problem.cluster.phase_slowdown()
        self._rng = np.random.default_rng(seed)
        self._rank = placement.all_shards().rank.copy()
        self._table = placement.table_of_shards()
        self._bytes = placed.bytes_apart(problem)[placed.kind]
        index_of = {table.name: index for index, table in enumerate(problem.tables)}
        self._allowed = table_rank_allowed(problem)[[index_of[table.name] for table in placement.tables]]
        self._free = capacity_bytes(problem)
        np.subtract.at(self._free, self._rank, self._bytes)
        self._pieces = np.zeros((len(placement.tables), problem.world_size), dtype=np.int64)
        np.add.at(self._pieces, (self._table, self._rank), 1)
        self.movable = _movable(problem, placement)
        #: every rank's, and the same wherever shards lie
        self._starts = starts_of_placement(problem, placement, model, problem.cluster.hardware).by_phase
        work = shards.work.take(shards.kind)
        self._now = model.assigned(work, shards.rank, problem.cluster.hardware)
        self._tabu = np.full(len(self._rank), -_TABU)
        self.is_cut_by_clock = False

    def run(self, work_seconds: float, until_seconds: float) -> Ints | None:
        """Move shards until a limit; return the ranks of the best plan, ``None`` if that is the first."""
        ranks = self._problem.world_size
        left = min(work_seconds / (_CHANGE_SECONDS + _CHANGE_RANK_SECONDS * ranks), _MOST_CHANGES)
        seconds = self._now.seconds
        first = now = self._objective(seconds[None])[0]
        best_seconds, best, turn = first, self._rank.copy(), 0
        while left > 0:
            if time.monotonic() >= until_seconds:
                self.is_cut_by_clock = True
                break
            shards, to = self._changes(seconds, turn)
            left -= max(len(shards), _LEAST_CHANGES)
            if not len(shards):
                turn += 1
                continue
            after = self._now.after(shards, to)
            objective = self._objective(after)
            chosen = int(np.argmin(objective))
            if objective[chosen] > best_seconds * (1 + _MOST_LOSS):
                turn += 1
                if now > best_seconds * (1 + _LEAST_GAIN):
                    self._return_to(best)
                    seconds, now = self._now.seconds, best_seconds
                continue
            worse = objective[chosen] >= now * (1 - _LEAST_GAIN)
            self._move(shards[chosen], to[chosen])
            seconds, now, turn = self._now.seconds, float(objective[chosen]), turn + 1
            if worse:
                self._tabu[shards[chosen]] = turn
            if now < best_seconds * (1 - _LEAST_GAIN):
                best_seconds, best = now, self._rank.copy()
        return best if best_seconds < first * (1 - _LEAST_GAIN) else None

    def _objective(self, seconds: Floats) -> Floats:
        """Return the objective of each of (K, num_ranks, NUM_PHASES) seconds."""
        return objective_of_ranks(self._problem, self._counted, seconds * self._slowdown + self._starts)

    def _slowest(self, seconds: Floats) -> Ints:
        """Return the ranks that the objective waits for."""
        slowed = seconds * self._slowdown + self._starts
        if self._problem.objective == "step_time":
            waits = self._counted & (slowed.max(axis=0) > self._windows)
            return np.unique(np.argmax(slowed[:, waits], axis=0))
        return np.array([np.argmax(slowed @ self._counted.astype(np.float64))], dtype=np.int64)

    def _changes(self, seconds: Floats, turn: int) -> tuple[Ints, Ints]:
        """Return changes that memory and constraints allow: shards (K, 2) and where they go.

        A change moves a shard, and its second shard does not move, or exchanges both. Half of them are of the ranks
        that the objective waits for.
        """
        may = self.movable & (turn - self._tabu >= _TABU)
        others = np.flatnonzero(may)
        if not len(others):
            return np.zeros((0, 2), dtype=np.int64), np.zeros((0, 2), dtype=np.int64)
        slowest = np.flatnonzero(may & np.isin(self._rank, self._slowest(seconds)))
        # What the others hold matters too: the slowest rank waits for their parts of its exchanges.
        ranks, most = np.arange(self._problem.world_size), _AT_A_TIME // 4
        drawn = [self._drawn(givers, others, most) for givers in (slowest, others)]
        moves = [self._drawn(givers, ranks, most) for givers in (slowest, others)]
        movers, to = (np.concatenate(parts) for parts in zip(*moves, strict=True))
        first, second = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        goes = self._rank[movers] != to
        movers, to = movers[goes], to[goes]
        unmoved = (movers + 1) % len(self._rank)  # any other shard
        apart = self._rank[first] != self._rank[second]
        first, second = first[apart], second[apart]
        shards = np.concatenate([np.stack([movers, unmoved], axis=1), np.stack([first, second], axis=1)])
        goals = np.concatenate(
            [np.stack([to, self._rank[unmoved]], axis=1), np.stack([self._rank[second], self._rank[first]], axis=1)]
        )
        legal = self._legal(shards, goals)
        return shards[legal], goals[legal]

    def _drawn(self, one: Ints, other: Ints, most: int) -> tuple[Ints, Ints]:
        """Return pairs of one and the other: all, or so many drawn at random."""
        count = len(one) * len(other)
        pairs = np.arange(count) if count <= most else self._rng.choice(count, most, replace=False)
        return one[pairs // len(other)], other[pairs % len(other)]

    def _legal(self, shards: Ints, ranks: Ints) -> Bools:
        """Return which changes leave every shard where it may be and every rank with memory."""
        here = self._rank[shards]
        legal: Bools = np.all(self._allowed[self._table[shards], ranks] | (here == ranks), axis=1)
        gained = self._bytes[shards[:, 0]] - self._bytes[shards[:, 1]] * (here != ranks)[:, 1, None]
        legal &= np.all(gained <= self._free[ranks[:, 0]], axis=1)
        exchanged = here[:, 1] != ranks[:, 1]
        legal &= np.all(-gained <= self._free[ranks[:, 1]], axis=1) | ~exchanged
        for place in range(2):
            moved = here[:, place] != ranks[:, place]
            num_pieces = self._pieces[self._table[shards[:, place]], ranks[:, place]]
            legal &= (num_pieces == 0) | ~moved  # one piece of a table on a rank
        return legal

    def _move(self, shards: Ints, ranks: Ints) -> None:
        tables, size = self._table[shards], self._bytes[shards]
        for where, sign in ((self._rank[shards], -1), (ranks, 1)):
            np.subtract.at(self._free, where, sign * size)
            np.add.at(self._pieces, (tables, where), sign)
        self._rank[shards] = ranks
        self._now = self._now.moved(shards, ranks)

    def _return_to(self, rank: Ints) -> None:
        """Return to the best plan."""
        other = np.flatnonzero(self._rank != rank)
        self._move(other, rank[other])


def _movable(problem: Problem, placement: Placement) -> Bools:
    """Return which shards move alone: of tables cut by columns at most, in no group, not pinned."""
    grouped = {table for group in (*problem.same_rank, *problem.apart) for table in group}
    by_name = {table.name: i for i, table in enumerate(problem.tables)}
    free = []
    for placed in placement.tables:
        table = by_name[placed.name]
        pinned = problem.tables[table].constraints.pinned is not None
        free.append(placed.sharding_type in _FREE and table not in grouped and not pinned)
    return np.array(free, dtype=np.bool_)[placement.table_of_shards()]


def _with_ranks(placement: Placement, rank: Ints) -> Placement:
    """Return the placement with its shards on other ranks."""
    columns = placement.all_shards().columns.copy()
    columns[0] = rank
    ends = np.cumsum([len(placed.shards) for placed in placement.tables])
    parts = Shards(columns).split(ends)
    tables = (replace(placed, shards=part) for placed, part in zip(placement.tables, parts, strict=True))
    return replace(placement, tables=tuple(tables))
