"""One run of the search: several first plans race, and the best are heated, cut again and cooled again and again.

First plans from many choices of options race: their pieces only move. With very few tables per rank they are cut
again at once, and others race after them, which expect the phases to take what they take in the best plan so far.
Then the best plans are heated again, a little or a lot, cut again and cooled, in as many rounds as the effort allows:
few tables on few ranks take many hot rounds, a thousand tables one or two mild ones. Which temperature is right
differs from problem to problem, so that each is tried once and then whichever has gained most. Rounds end early if
many of them in a row gain nothing. The last part of the effort polishes the best plan. Entrants and rounds run side
by side, in threads.
"""

import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from planner.solver.evaluate import rank_loads
from planner.solver.partitioners.base import Effort
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.local_search.chain import FINAL_REFINEMENT, Chain, Stage, annealing, settle
from planner.solver.partitioners.local_search.constructions import by_choice_rule, constructions
from planner.solver.partitioners.local_search.elite_pool import ElitePool, TemperatureBandit
from planner.solver.partitioners.local_search.parallel_chains import ChainThread, ParallelChains
from planner.solver.partitioners.local_search.proposal_mix import proposals_per_item
from planner.solver.partitioners.local_search.rank_filling import fill_ranks
from planner.solver.partitioners.local_search.search_data import View
from planner.solver.partitioners.local_search.starts import target_of
from planner.solver.partitioners.local_search.successive_halving import halving_length, successive_halving
from planner.solver.problem import Assignment, RelaxationHint

_SETTLE_UNTIL, _REHEAT_UNTIL = 0.4, 0.85  # of the limit
_GENERATIONS_UNTIL = (0.2, 0.35, 0.5, 0.65)  # of it, where races follow each other
_KEEP_SHARE = 0.1  # of it, for a plan that runs already
_FIRST_REFINEMENT_SHARE = 0.05  # of it, for a known plan: cuts and moves that help its slowest ranks
#: Heats of a round, in objectives x items: what one table more or less on a rank changes is about 1.
_TEMPERATURES = (0.005, 0.03, 0.2, 1.0, 5.0)
_PER_ROUND = 4000  # proposals per item
_FEWEST_ROUNDS, _MOST_ROUNDS = 2, 12
#: Rounds in a row that gain less than this part of the objective each, after which no other follows.
IDLE_ROUNDS, IDLE_GAIN = 8, 1e-5
_MANY = 4  # items per rank with which one phase is nearly even from the start
_FEW = 6  # items per rank, with fewer of which ranks choose their pieces
_VERY_FEW = 2  # items per rank, with fewer of which no plan comes near the relaxation
_MOST_SLOWER = 1.4  # than the relaxation expects the slowest ranks to be where races learn, so that tastes differ in it
_LEAST_OF_EXPECTED = 0.2  # of the relaxation's slowest rank, that a phase counts for where a plan hardly has it
_FILL_UNTIL, _FILLED = 0.3, 2
_FEWEST_ENTRANTS, _MOST_ENTRANTS = 2, 9
_LEAST_PER_ENTRANT, _MOST_PER_ENTRANT = 100, 1000  # proposals per item in the first round of a race


class AnnealingRun:
    """One run: its effort, its pool, and the random seeds of its chains."""

    def __init__(
        self, view: View, seeds: Iterator[int], effort: Effort, best: IncumbentTracker, good_seconds: float
    ) -> None:
        self._view, self._effort, self._best, self._good_seconds = view, effort, best, good_seconds
        self._parallel = ParallelChains(effort, self._is_worth_reporting, self._consider)
        self._seeds = seeds
        self._pool = ElitePool()
        self._late: list[Chain] = []  # plans that join the pool once it is refined
        self._items = len(view.data.item_columns)
        #: Whether good plans spread their seconds over the phases otherwise than the relaxation, which spreads loads
        #: freely, so that races have to find out how, and cut tables again while they do.
        self._learns = len(view.data.weight) > 1 and self._items <= _VERY_FEW * len(view.data.rank_class)
        self.is_idle = False  # whether rounds ended because they gained nothing
        #: proposals per item that the whole effort pays for
        self._proposals_per_item = proposals_per_item(effort.total_seconds, self._items)

    def settle(self, hint: RelaxationHint | None, start: Assignment | None, *, is_warm: bool = False) -> None:
        """Build first plans, move and swap their pieces, and look longest at those that do best.

        A start that is warm takes their place if the effort does not pay for them; else it waits for their best.
        """
        known = self._known(start)
        if known and is_warm and self._proposals_per_item < _MOST_PER_ENTRANT:
            # A race would be over before its plans were as good.
            self._refine_a_little(known)
            self._keep(known)
            return
        if is_warm:  # races and rounds find plans unlike it first
            self._late, known = known, []
        if self._view.priced.move is not None:
            # What a plan that runs already costs to leave, a construction has to make good first.
            self._parallel.each(functools.partial(self._settle_for, chain, _KEEP_SHARE) for chain in known)
        else:
            self._refine_a_little(known)
        filled = self._fill(hint)
        first_until, *later_until = _GENERATIONS_UNTIL if self._learns else (_SETTLE_UNTIL,)
        chains = self._halve_field(hint, filled, first_until) + known
        if all(chain.best_seconds == np.inf for chain in chains):
            chains += self._repaired(hint, chains)
        self._keep(chains)
        for until in later_until:
            if hint is not None and self._pool.plans and not self._done():
                self._keep(self._halve_field(self._as_found(hint), [], until))

    def _refine_a_little(self, known: list[Chain]) -> None:
        until = self._effort.fraction + _FIRST_REFINEMENT_SHARE
        self._parallel.each(functools.partial(self._run, chain, FINAL_REFINEMENT, until) for chain in known)

    def _halve_field(self, hint: RelaxationHint | None, entrants: list[Chain], until: float) -> list[Chain]:
        """Race given states and constructions of different tastes until a part of the effort; best first."""
        num_parallel = self._parallel.count
        share = max(until - self._effort.fraction, 0.0)
        worth = (
            share
            * self._proposals_per_item
            / (halving_length(_MOST_ENTRANTS, num_parallel) / _MOST_ENTRANTS * _LEAST_PER_ENTRANT)
        )
        count = int(np.clip(worth, _FEWEST_ENTRANTS, _MOST_ENTRANTS))
        field = count + len(entrants)
        length = min(share / halving_length(field, num_parallel), _MOST_PER_ENTRANT / self._proposals_per_item)

        def run(chain: Chain, times: int, thread: ChainThread) -> bool:
            thread.after_look(chain, is_better=True)
            self._settle_for(chain, length * times, thread)
            return thread.effort.fraction < 1 and not self._is_good(chain.best_seconds)

        most_slower = _MOST_SLOWER if self._learns else 1.0
        built = by_choice_rule(self._view, hint, count, self._seeds, self._effort, most_slower)
        return successive_halving(itertools.chain(entrants, built), run, self._parallel)

    def _keep(self, chains: list[Chain]) -> None:
        for chain in chains:
            self._pool.add(chain)
        self._consider_pool()

    def _as_found(self, hint: RelaxationHint) -> RelaxationHint:
        """Return a guide that expects the slowest ranks of the best plan so far."""
        loads = rank_loads(self._view.priced, self._pool.plans[0].assignment)
        slowest = np.maximum(np.max(loads.seconds, axis=0), _LEAST_OF_EXPECTED * hint.slowest_seconds)
        return replace(hint, slowest_seconds=slowest)

    def _settle_for(self, chain: Chain, share: float, thread: ChainThread) -> None:
        """Move and swap a chain's pieces, and cut them again where races learn, for a part of the effort."""
        data = self._view.data
        is_even = len(data.weight) == 1 and self._items >= _MANY * len(data.rank_class)
        stage = replace(settle(self._items, self._proposals_per_item * share, is_even=is_even), cuts=self._learns)
        self._run(chain, stage, thread.effort.fraction + share, thread)

    def _known(self, start: Assignment | None) -> list[Chain]:
        """Return a plan that is known as a chain, where there is one that the search can express."""
        chain = Chain(self._view, next(self._seeds))
        return [chain] if start is not None and chain.load(start) else []

    def _repaired(self, hint: RelaxationHint | None, chains: list[Chain]) -> list[Chain]:
        """Return a construction that fits, where memory is tight, or the nearest of all made to fit with other cuts."""
        chains = list(chains)
        for chain in constructions(self._view, hint, next(self._seeds), self._effort):
            chains.append(chain)
            if chain.best_seconds < np.inf or self._effort.fraction >= 1:
                break
        nearest = min(chains, key=lambda chain: chain.rating, default=None)
        if nearest is None:
            return []
        nearest.repair(self._effort)
        self._consider_best_of(nearest)
        return [nearest]

    def _fill(self, hint: RelaxationHint | None) -> list[Chain]:
        """Let ranks choose their pieces, where they hold few and one phase counts."""
        data = self._view.data
        few = len(data.item_columns) <= _FEW * len(data.rank_class)
        if not few or len(data.weight) > 1 or self._view.priced.move is not None:
            return []
        chains = []
        for chain in fill_ranks(self._view, target_of(self._view, hint), self._seeds, self._effort, _FILL_UNTIL):
            chains.append(chain)
            self._consider_best_of(chain)
        return sorted(chains, key=lambda chain: chain.rating)[:_FILLED]

    def reheat(self) -> None:
        """Heat, cut again and cool the best plans, round by round; as many rounds at once as run side by side."""
        num_parallel = self._parallel.count
        rounds = num_parallel * int(np.clip(self._proposals_per_item / _PER_ROUND, _FEWEST_ROUNDS, _MOST_ROUNDS))
        temperatures = TemperatureBandit(tuple(temperature / self._items for temperature in _TEMPERATURES))
        began, idle_rounds = self._effort.fraction, 0
        for first in range(0, rounds, num_parallel):
            if self._done() or not self._pool.plans:
                return
            last = min(first + num_parallel, rounds)
            until = began + (_REHEAT_UNTIL - began) * last / rounds
            before = self._pool.seconds
            chosen = [
                0 if index < _FEWEST_ROUNDS * num_parallel else temperatures.choose() for index in range(first, last)
            ]
            chains = [self._loaded(index) for index in range(first, last)]
            self._parallel.each(
                functools.partial(self._run, chain, annealing(temperatures[choice]), until)
                for chain, choice in zip(chains, chosen, strict=True)
            )
            for chain, choice in zip(chains, chosen, strict=True):
                self._pool.add(chain)
                temperatures.learn(choice, max(0.0, 1.0 - min(chain.best_seconds, before) / before))
            self._consider_pool()
            idle_rounds = 0 if self._pool.seconds < before * (1 - IDLE_GAIN) else idle_rounds + last - first
            self.is_idle = last < rounds and idle_rounds >= IDLE_ROUNDS * num_parallel
            if self.is_idle:
                return

    def refine(self) -> None:
        """Spend what is left on the best plan, with more threads on the second as well.

        After idle rounds that is no more than the usual part.
        """
        for chain in self._late:
            self._pool.add(chain)
        if self._done() or not self._pool.plans:
            return
        chains = [self._loaded(index) for index in range(min(self._parallel.count, len(self._pool.plans)))]
        until = min(self._effort.fraction + 1 - _REHEAT_UNTIL, 1.0) if self.is_idle else 1.0
        self._parallel.each(functools.partial(self._run, chain, FINAL_REFINEMENT, until) for chain in chains)
        for chain in chains:
            self._pool.add(chain)
        self._consider_pool()

    def _loaded(self, index: int) -> Chain:
        """Return a chain that begins with one of the two best plans, by turns."""
        chain = Chain(self._view, next(self._seeds))
        chain.load(self._pool.plans[index % 2 if len(self._pool.plans) > 1 else 0].assignment)
        return chain

    def _run(self, chain: Chain, stage: Stage, until: float, thread: ChainThread) -> None:
        chain.run(stage, thread.effort, until, self._good_seconds, functools.partial(thread.after_look, chain))

    def _done(self) -> bool:
        return self._effort.fraction >= 1 or self._is_good(min(self._best.seconds, self._pool.seconds))

    def _is_good(self, seconds: float) -> bool:
        return seconds <= self._good_seconds

    def _is_worth_reporting(self, seconds: float) -> bool:
        return self._best.is_worth_considering(seconds) or (self._is_good(seconds) and seconds < self._best.seconds)

    def _consider_best_of(self, chain: Chain) -> None:
        if self._is_worth_reporting(chain.best_seconds):
            self._consider(chain.assignment())

    def _consider_pool(self) -> None:
        if self._pool.seconds < self._best.seconds:
            self._consider(self._pool.plans[0].assignment)

    def _consider(self, assignment: Assignment | None) -> None:
        """Take a plan into account. The first good one ends the search, so that no thread's speed decides."""
        if (
            not self._is_good(self._best.seconds)
            and self._best.consider(assignment)
            and self._is_good(self._best.seconds)
        ):
            self._effort.stop()
