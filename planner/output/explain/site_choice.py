"""The best sites for the pieces of one table while all other tables stay where they are.

Every combination of sites is tried where there are few of them. Else pieces are placed one by one, widest
first, each where it costs least, and then each is placed again until none moves: a plan that could be made, so
that what it costs is an upper bound on the best choice. No code is shared with the searches of
:mod:`planner.solver.partitioners`.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cost_models.arrays import Bools, Floats, Ints
from planner.solver.problem import Objective, Scope, SolverProblem

MAX_COMBINATIONS = 2000  # of sites that are tried one and all
_MAX_ROUNDS = 3  # in which pieces are placed again
_ROUNDING = 1e-12  # relative; of an average that must not exceed what it bounds


Score = tuple[float, float]  # excess bytes, then seconds: a cut fits wherever it can


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCut:
    """A cut of one table and where its pieces go."""

    shapes: Ints  # (n,) widest first
    sites: Ints  # (n,)
    excess_bytes: float  # by which the fullest rank exceeds a tier; 0 where the cut fits
    objective_seconds: float
    is_best: bool  # whether nothing that could be chosen is better; else it is not known

    @property
    def score(self) -> Score:
        """What is minimised."""
        return self.excess_bytes, self.objective_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The plan without one table, and where that table may go."""

    priced: SolverProblem
    seconds: Floats  # (R, P)
    bytes: Floats  # (R, M)
    allowed: Bools  # (R,)

    def best_cut(self, cuts: Sequence[Ints], *, same_host: bool) -> PlacedCut | None:
        """Return the best of the cuts of one family, each a list of shapes; ``None`` where it has no site.

        Cuts, and hosts where pieces must share one, are tried in the order of what they cost at least, until
        that is no less than the best.
        """
        tries = [
            (self._floor(shapes, sites), number, shapes, sites)
            for number, cut in enumerate(cuts)
            for shapes in [cut[np.argsort(-self.priced.shape_columns[cut], kind="stable")]]  # widest first
            for sites in self._groups(int(shapes[0]), same_host)
            if len(sites)
        ]
        best: PlacedCut | None = None
        unproven: list[Score] = []  # floors of what was not tried one and all
        for floor, _, shapes, sites in sorted(tries, key=lambda one: one[:2]):
            if best is not None and best.score <= floor:
                break
            found = self._place(shapes, sites)
            if not found.is_best:
                unproven.append(floor)
            if best is None or found.score < best.score:
                best = found
        if best is None:
            return None
        return replace(best, is_best=all(best.score <= floor for floor in unproven))

    def _floor(self, shapes: Ints, sites: Ints) -> Score:
        """Return what the cut needs at least: its widest piece alone, and the average of the ranks it may use."""
        priced, widest = self.priced, int(shapes[0])
        ranks = self._ranks(widest, sites)  # (S, G)
        excess, objective = self._with_piece(self.seconds, self.bytes, ranks, widest)
        used = ranks.reshape(-1)
        work = np.sum(priced.shape_seconds[shapes], axis=0) * ranks.shape[1]
        average = np.sum(self.seconds[used], axis=0) + work * np.min(priced.rank_slowdown[used], axis=0)
        spread = average[None, None] / len(used) * (1 - _ROUNDING)
        evenly = _objectives(priced, self.seconds, spread)
        return float(np.min(excess)), float(max(np.min(objective), evenly[0]))

    def _with_piece(self, seconds: Floats, held: Floats, ranks: Ints, shape: int) -> tuple[Floats, Floats]:
        """Return excess bytes and objective of one piece on each of some sites, shape (S, G), each (S,)."""
        priced = self.priced
        with_it = seconds[ranks] + priced.shape_seconds[shape] * priced.rank_slowdown[ranks]  # (S, G, P)
        excess = np.max(held[ranks] + priced.shape_bytes[shape] - priced.capacity_bytes[ranks], axis=(1, 2))
        return np.maximum(excess, 0.0), _objectives(priced, seconds, with_it)

    def _groups(self, shape: int, same_host: bool) -> list[Ints]:
        """Return the sets of sites of which one has all pieces."""
        priced, scope = self.priced, Scope(int(self.priced.shape_scope[shape]))
        if scope is Scope.WORLD:
            return [np.zeros(1, dtype=np.int64)] if np.all(self.allowed) else []
        if scope is Scope.HOST:
            return [np.flatnonzero(np.all(self.allowed.reshape(priced.num_hosts, -1), axis=1))]
        ranks = np.flatnonzero(self.allowed)
        if not same_host:
            return [ranks]
        return [ranks[priced.host_of_rank[ranks] == host] for host in range(priced.num_hosts)]

    def _place(self, shapes: Ints, sites: Ints) -> PlacedCut:
        counts = tuple(len(list(equal)) for _, equal in itertools.groupby(shapes.tolist()))
        combinations = site_combinations(len(sites), counts)
        if combinations is None:
            return self._greedy(shapes, sites)
        return self._exhaustive(shapes, sites[combinations])

    def _ranks(self, shape: int, sites: Ints) -> Ints:
        """Return the ranks of sites, shape (*sites.shape, ranks of one site)."""
        width = int(self.priced.shape_ranks[shape])
        return sites[..., None] * width + np.arange(width)

    def _exhaustive(self, shapes: Ints, combinations: Ints) -> PlacedCut:
        """Try all combinations, shape (C, n)."""
        priced = self.priced
        ranks = self._ranks(int(shapes[0]), combinations)  # (C, n, G)
        together = (combinations[:, :, None] == combinations[:, None, :]).astype(np.float64)  # (C, n, n)
        added_seconds, added_bytes = together @ priced.shape_seconds[shapes], together @ priced.shape_bytes[shapes]
        seconds = self.seconds[ranks] + added_seconds[:, :, None, :] * priced.rank_slowdown[ranks]
        excess = self.bytes[ranks] + added_bytes[:, :, None, :] - priced.capacity_bytes[ranks]
        objective = _objectives(priced, self.seconds, seconds.reshape(len(ranks), -1, priced.num_phases))
        too_many = np.maximum(np.max(excess, axis=(1, 2, 3)), 0.0)
        best = int(np.lexsort((objective, too_many))[0])
        return PlacedCut(
            shapes=shapes,
            sites=combinations[best],
            excess_bytes=float(too_many[best]),
            objective_seconds=float(objective[best]),
            is_best=True,
        )

    def _greedy(self, shapes: Ints, sites: Ints) -> PlacedCut:
        """Place pieces one by one, and again until none moves."""
        priced = self.priced
        ranks = self._ranks(int(shapes[0]), sites)  # (S, G)
        seconds, held = self.seconds.copy(), self.bytes.copy()
        chosen = np.full(len(shapes), -1, dtype=np.int64)
        for _ in range(_MAX_ROUNDS):
            before = chosen.copy()
            for i, shape in enumerate(shapes.tolist()):
                if chosen[i] >= 0:
                    _add(priced, seconds, held, ranks[chosen[i]], shape, -1.0)
                too_many, objective = self._with_piece(seconds, held, ranks, shape)
                load = np.max(seconds[ranks] @ priced.phase_weight, axis=1)  # of equal ones, the least loaded
                chosen[i] = np.lexsort((load, objective, too_many))[0]
                _add(priced, seconds, held, ranks[chosen[i]], shape, 1.0)
            if np.array_equal(before, chosen):
                break
        # Added up again: pieces that were taken away again leave rounding behind.
        return replace(self._exhaustive(shapes, sites[chosen][None]), is_best=False)


def _add(priced: SolverProblem, seconds: Floats, held: Floats, ranks: Ints, shape: int, sign: float) -> None:
    seconds[ranks] += sign * priced.shape_seconds[shape] * priced.rank_slowdown[ranks]
    held[ranks] += sign * priced.shape_bytes[shape]


def _objectives(priced: SolverProblem, rest: Floats, changed: Floats) -> Floats:
    """Return the objective where some ranks, shape (C, n, P), carry more than in ``rest``, shape (R, P)."""
    if priced.objective is Objective.MAX_RANK_TIME:
        slowest: Floats = np.maximum(np.max(rest @ priced.phase_weight), np.max(changed @ priced.phase_weight, axis=1))
        return slowest
    phases = np.maximum(np.max(rest, axis=0), np.max(changed, axis=1))
    objective: Floats = np.maximum(phases - priced.phase_window_seconds, 0.0) @ priced.phase_weight
    return objective


@functools.lru_cache(maxsize=256)
def site_combinations(num_sites: int, counts: tuple[int, ...]) -> Ints | None:
    """Return every way to give sites to groups of equal pieces, shape (C, n); ``None`` where there are too many.

    ``counts`` are the sizes of the groups; pieces of one group may change places for nothing.
    """
    number = math.prod(math.comb(num_sites + count - 1, count) for count in counts)
    if number > MAX_COMBINATIONS:
        return None
    groups = (itertools.combinations_with_replacement(range(num_sites), count) for count in counts)
    rows = [tuple(itertools.chain.from_iterable(chosen)) for chosen in itertools.product(*groups)]
    result = np.array(rows, dtype=np.int64)
    result.flags.writeable = False
    return result
