"""ldm: options by price, then the largest differencing method on every class of equal ranks.

Pieces that are bound (to hosts, to all ranks, to some ranks, to other tables) are placed first, heaviest first; the
others even out what those leave uneven (:mod:`planner.solver.partitioners.ldm.differencing`). In one coordinate, which
is ``max_rank_time``, the slowest rank comes far closer to the mean than by placing one piece after the other. Where
ranks overflow, bytes become coordinates of their own; a plan that overflows all the same is repaired by moving and
swapping pieces, if it would be better than those that fit.
"""

from collections.abc import Iterator

import numpy as np

from cost_models.arrays import Ints
from planner.solver.evaluate import objective_of, rank_loads
from planner.solver.partitioners.base import NO_OPTIONS, Effort, SearchOptions, SolveLimits
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.partitioners.ldm.rank_symmetry import Balance, interchanged, is_movable
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import heaviest_first
from planner.solver.partitioners.local_search.search_data import View, search_view, to_assignment
from planner.solver.partitioners.local_search.starts import Target, starts, target_of
from planner.solver.problem import Assignment, Objective, Outcome, SolverProblem

#: None of them is best for all instances of several phases.
_SHARPNESSES = (4.0, 15.0, 60.0)
#: What memory counts: more, as long as plans overflow.
_MEMORY = (0.0, 0.1, 0.5, 2.0)
# Nominal work of differencing one piece, and of looking at one phase of one rank for it.
_PIECE_SECONDS, _LOOK_SECONDS = 6e-5, 3e-8
_OVERFLOW = 10.0  # objectives that the capacity of one rank is worth where plans that do not fit are compared
_REPAIR_SHARE = 0.2  # of the limit, for a plan that would be better than those that fit


class Ldm:
    """Constructs, and searches only for a plan that fits."""

    name = "ldm"

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Difference every choice of options, and the start if there is one."""
        effort = Effort(limits)
        best = IncumbentTracker(priced, self.name, options.on_incumbent)
        search = _Search(priced, effort, best, options.good_seconds(limits))
        view = search_view(priced)
        for draft in _drafts(view, options, limits.seed, effort):
            search.difference(draft)
            if search.done:
                break
        search.repair(view, limits.seed)
        detail = "" if best.assignment is not None else "no construction fits the memory of every rank"
        return best.outcome(effort.limit if effort.fraction >= 1 else "iterations", detail)


class _Search:
    """What has been found so far: the best plan, and the most promising one that overflows."""

    def __init__(self, priced: SolverProblem, effort: Effort, best: IncumbentTracker, good_seconds: float) -> None:
        self._priced, self._effort, self._best, self._good_seconds = priced, effort, best, good_seconds
        self._one_phase = priced.objective is Objective.MAX_RANK_TIME
        self._memory = 0  # where it had to count, it will have to again
        self._overflowing: Assignment | None = None
        self._rating = np.inf

    @property
    def done(self) -> bool:
        """Whether the effort is spent or the best plan is good."""
        return self._effort.fraction >= 1 or self._best.seconds <= self._good_seconds

    def difference(self, draft: Assignment) -> None:
        """Put the draft's pieces together again, with as little regard to memory as lets them fit."""
        work = len(draft.piece_shape) * (
            _PIECE_SECONDS + _LOOK_SECONDS * self._priced.num_ranks * self._priced.num_phases
        )
        self._consider(draft)
        for sharpness in _SHARPNESSES[: 1 if self._one_phase else None]:
            for memory in range(self._memory, len(_MEMORY)):
                if self.done:
                    return
                self._effort.spend(work)
                balance = Balance(sharpness=sharpness, memory=_MEMORY[memory])
                if self._consider(interchanged(self._priced, draft, balance)):
                    self._memory = memory
                    break

    def repair(self, view: View, seed: int) -> None:
        """Make the most promising plan fit that overflows, unless one that fits is as good."""
        if self.done or self._overflowing is None:
            return
        if objective_of(self._priced, self._overflowing) >= self._best.seconds:
            return
        chain = Chain(view, seed)
        if chain.load(self._overflowing):
            until = 1.0 if self._best.assignment is None else min(1.0, self._effort.fraction + _REPAIR_SHARE)
            chain.repair(self._effort, until)
            self._best.consider(chain.assignment())

    def _consider(self, plan: Assignment) -> bool:
        """Keep a plan if it is better than the best, or overflows and may become so; say whether it fits."""
        excess = rank_loads(self._priced, plan).bytes - self._priced.capacity_bytes
        over = float(np.sum(np.maximum(excess, 0.0) / np.maximum(self._priced.capacity_bytes, 1.0)))
        if over <= 0:
            self._best.consider(plan)
            return True
        rating = objective_of(self._priced, plan) * (1 + _OVERFLOW * over)
        if rating < self._rating:
            self._overflowing, self._rating = plan, rating
        return False


class _Draft(Chain):
    """A construction that is looked at before it fits."""

    def as_it_is(self) -> Assignment:
        """Return the plan, though its memory may overflow."""
        state = self._arrays
        return to_assignment(self._view, state.slot_shape, state.slot_site, state.num_pieces)


def _drafts(view: View, known: SearchOptions, seed: int, effort: Effort) -> Iterator[Assignment]:
    """Yield plans whose memory may overflow: the start, then one per choice of options, the most promising first."""
    if known.start is not None:
        yield known.start
    target = target_of(view, known.hint)
    is_any = known.start is not None
    for options in starts(view, target, known.hint):
        if is_any and effort.is_late:
            return
        draft = _Draft(view, seed)
        effort.spend(_LOOK_SECONDS * float(np.sum(view.option_pieces[options])) * view.priced.num_ranks)
        if draft.build(options, target, _bound_first(view, options, target), effort if is_any else None):
            is_any = True
            yield draft.as_it_is()


def _bound_first(view: View, options: Ints, target: Target) -> Ints:
    """Order items with the least choice of ranks first and those that differencing will move last, shape (I,)."""
    data = view.data
    choice = data.allowed.sum(axis=1) - np.diff(data.apart_first)
    first_shape = view.items.leader[data.unit_shape[data.option_unit[options]]]
    movable = is_movable(view.priced, first_shape)
    order = heaviest_first(view, options, target)
    return order[np.argsort(np.where(movable, data.allowed.shape[1] + 1, choice)[order], kind="stable")]
