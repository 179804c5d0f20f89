"""The seam of the search: priced arrays in, an assignment and the reason for stopping out."""

import copy
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from planner.solver.problem import Assignment, Outcome, RelaxationHint, SolverProblem

#: Relative gap that counts as none: CP-SAT rounds to ticks, bounds are lowered by float rounding.
RESOLUTION = 1e-6
#: The limit of a search that ended early because it found nothing better for long.
NO_IMPROVEMENT = "no_improvement"
#: The limit of a solve that ended because no plan is below the value that was asked for.
CUTOFF = "cutoff"
#: Part of the limit by which work may fall behind the clock before the clock spends the rest.
_BEHIND = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveLimits:
    """When to stop, and what makes a solve repeatable."""

    time_limit_seconds: float = 10.0
    relative_gap: float = 0.005  # stop when the plan is proven this close to the best
    seed: int = 0
    #: same spec, seed and versions give the same plan whatever the load of the machine, unless work falls far behind
    #: the clock: effort is counted in work and not in seconds of wall clock
    reproducible: bool = True
    #: what a reproducible search spends, where that is less than the time limit; a member of
    #: a portfolio is given a fixed share, so that its work does not depend on the clock
    work_limit_seconds: float | None = None
    #: part of the time limit that a search may take once the clock counts; a portfolio keeps the rest for others
    time_share: float = 1.0
    #: value of the objective: once no plan is below it, the plan that is known is enough; a search by itself ignores it
    cutoff_seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 < self.time_limit_seconds <= 86_400:
            raise ValueError("Expected time_limit_seconds in (0, 86400].")
        if not 0 <= self.relative_gap <= 1:
            raise ValueError("Expected relative_gap in [0, 1].")
        if not 0 <= self.seed < 2**31:
            raise ValueError("Expected seed in [0, 2**31).")
        if self.cutoff_seconds is not None and not self.cutoff_seconds > 0:
            raise ValueError("Expected cutoff_seconds > 0.")

    @property
    def work_seconds(self) -> float:
        """What a reproducible search may spend."""
        return self.work_limit_seconds or self.time_limit_seconds

    def is_cut_off(self, bound_seconds: float) -> bool:
        """Whether a bound on the objective proves that no plan is below the cutoff."""
        return self.cutoff_seconds is not None and bound_seconds >= self.cutoff_seconds

    @property
    def ending_gap(self) -> float:
        """The relative gap at which a search ends, safely inside what is called optimal."""
        return self.relative_gap + RESOLUTION / 2


@dataclass(slots=True)
class Spent:
    """What an effort has spent, and since when the clock counts."""

    work_seconds: float = 0.0
    first_work_at_seconds: float | None = None  # of the clock; what comes before is not counted as work
    #: fraction of the work, and seconds, from which on the clock counts; ``None`` while work does
    handed_over: tuple[float, float] | None = None


class Effort:
    """How much of a limit is spent: work in reproducible searches, wall clock in others.

    If the machine is so busy or slow that work falls far behind the clock, the clock counts from then on, and the
    search says so: what a search does last, such as refining its best plan, is then shorter instead of missing.
    """

    def __init__(self, limits: SolveLimits) -> None:
        self.reproducible = limits.reproducible
        self._time_seconds = limits.time_limit_seconds
        self._share_seconds = limits.time_share * limits.time_limit_seconds
        self._work_limit_seconds = limits.work_seconds
        #: all that may be spent
        self.total_seconds = self._work_limit_seconds if limits.reproducible else self._time_seconds
        self._began_seconds = time.monotonic()
        self.spent = Spent(handed_over=None if limits.reproducible else (0.0, 0.0))
        self.part = (0.0, 1.0)  # of the whole effort: where this one begins and ends
        self._stopped = threading.Event()

    def fork(self, part: float = 1.0) -> "Effort":
        """Return an effort that begins where this one is, and ends with a part of what this one has left.

        The fork counts on its own, for one of several runs or for work in a thread. If one of the two is stopped, so is
        the other. ``join`` takes over what the fork spent.
        """
        forked = copy.copy(self)
        forked.spent = replace(self.spent)
        if part < 1.0:
            first, last = self.part
            began = min(self.spent_of_whole, last)
            forked.part = began, began + part * (last - began)
            forked.total_seconds *= (forked.part[1] - began) / (last - first)
        return forked

    def join(self, forked: Iterable["Effort"]) -> None:
        """Take over what was spent by the longest of the efforts that were forked from this one at the same time."""
        self.spent = max(forked, key=lambda one: one.spent_of_whole).spent

    @property
    def is_stopped(self) -> bool:
        """Whether the search was ended before its limit."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """End the search, from whichever thread."""
        self._stopped.set()

    def spend(self, work_seconds: float) -> None:
        """Count work that was done."""
        if self.spent.first_work_at_seconds is None:
            self.spent.first_work_at_seconds = time.monotonic()
        self.spent.work_seconds += work_seconds

    def _seconds_of_work(self) -> float:
        """Return what the clock says since the first work was counted."""
        began_seconds = self.spent.first_work_at_seconds
        return 0.0 if began_seconds is None else time.monotonic() - began_seconds

    @property
    def fraction(self) -> float:
        """What is spent, 1 or more at the limit; it never falls."""
        first, last = self.part
        return 1.0 if self.is_stopped else (self.spent_of_whole - first) / (last - first) if last > first else 1.0

    @property
    def spent_of_whole(self) -> float:
        """What is spent of the effort from which this one was forked as a part."""
        seconds = time.monotonic() - self._began_seconds
        if self.spent.handed_over is None:
            by_work = self.spent.work_seconds / self._work_limit_seconds
            if seconds < self._time_seconds and self._seconds_of_work() < (by_work + _BEHIND) * self._share_seconds:
                return by_work
            self.spent.handed_over = min(by_work, 1.0), seconds
        of_work, since_seconds = self.spent.handed_over
        if seconds >= self._share_seconds:
            return seconds / self._share_seconds
        return of_work + (1 - of_work) * (seconds - since_seconds) / (self._share_seconds - since_seconds)

    @property
    def is_late(self) -> bool:
        """Whether the clock has reached the limit, whatever work is left, or the search was stopped."""
        return self.is_stopped or time.monotonic() - self._began_seconds >= self._time_seconds

    @property
    def limit(self) -> str:
        """The name of the limit that ends this search."""
        return "deterministic_time" if self.spent.handed_over is None else "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """The best assignment so far, as it is streamed out of a running search."""

    assignment: Assignment
    objective_seconds: float
    partitioner: str


OnIncumbent = Callable[[Incumbent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """What a caller knows about good plans, and where better ones are reported."""

    lower_bound_seconds: float = 0.0  # that the caller has proved: a search stops early when it comes close
    start: Assignment | None = None  # to improve on
    is_start_warm: bool = False  # whether the start is as good as what searches end with, for a problem much like this
    hint: RelaxationHint | None = None
    on_incumbent: OnIncumbent | None = None

    def good_seconds(self, limits: SolveLimits) -> float:
        """Return the objective at which a search ends: within the gap of the bound."""
        return self.lower_bound_seconds * (1 + limits.ending_gap)


NO_OPTIONS = SearchOptions()


class Partitioner(Protocol):
    """Chooses cuts and sites. Deterministic for equal arguments unless a wall clock ends it.

    Returns a valid assignment, or the reason why there is none; only a partitioner that
    proves it may return INFEASIBLE.
    """

    @property
    def name(self) -> str:
        """The name used in specs."""
        ...

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Search until the limit, the gap or a proof."""
        ...
