"""Seconds of the stages of one solve: a stopwatch around the pipeline's own functions.

What a stage calls that is a stage of its own (a plan that is verified while the search goes on)
counts there and not twice.
"""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from planner.orchestration import explore as mode_search
from planner.orchestration import list_options as listing
from planner.orchestration.answers import finish_plan as finishing
from planner.orchestration.family_sets import branch_kinds, family_set, kind_sets
from planner.solver.partitioners.base import NO_OPTIONS, Partitioner, SearchOptions, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.problem import Outcome, SolverProblem

#: Stages in the order of a solve, each with a module that calls its functions, and these.
_FUNCTIONS = (
    ("enumerate", listing, ("enumerate_families",)),
    ("price", listing, ("price",)),
    ("prune", mode_search, ("compatible_family_sets", "restrict", "prune")),
    ("prune", kind_sets, ("restrict", "dominated_families", "replaced_kinds")),
    ("bound", mode_search, ("quick_bound", "lower_bound")),
    ("bound", branch_kinds, ("lower_bound",)),
    ("finish", finishing, ("to_placement", "score", "verify")),
)
#: "parse": spec to problem. "first plan": the construction before anything that takes time.
#: "finish": every plan that is streamed, scored and verified from its geometry.
STAGES = ("parse", "enumerate", "price", "prune", "first plan", "bound", "search", "finish")


class StageClock:
    """Adds up seconds by stage."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self._running: list[str] = []
        self._since_seconds = 0.0

    @contextlib.contextmanager
    def within(self, stage: str) -> Iterator[None]:
        """Charge what happens inside to a stage; the stage around it stands still."""
        self._charge()
        self._running.append(stage)
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    def _charge(self) -> None:
        now = time.monotonic()
        if self._running:
            self.seconds[self._running[-1]] += now - self._since_seconds
        self._since_seconds = now

    @contextlib.contextmanager
    def around_pipeline(self) -> Iterator[None]:
        """Time the stages of every solve inside; call with one solve at a time."""
        with contextlib.ExitStack() as patches:
            for stage, module, names in _FUNCTIONS:
                for name in names:
                    timed = self._timed(stage, getattr(module, name))
                    patches.enter_context(mock.patch.object(module, name, timed))
            first = functools.partial(_first_plan, self)
            patches.enter_context(mock.patch.object(family_set, "Greedy", first))
            yield

    def _timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.within(stage):
                return function(*args, **kwargs)

        return timed


class Timed:
    """A partitioner whose solves are charged to a stage."""

    def __init__(self, inner: Partitioner, clock: StageClock, stage: str) -> None:
        self._inner, self._clock, self._stage = inner, clock, stage

    @property
    def name(self) -> str:
        """The name of the partitioner inside."""
        return self._inner.name

    def solve(self, priced: SolverProblem, limits: SolveLimits, options: SearchOptions = NO_OPTIONS) -> Outcome:
        """Search as the partitioner inside does."""
        with self._clock.within(self._stage):
            return self._inner.solve(priced, limits, options)


def _first_plan(clock: StageClock, **given: bool) -> Timed:
    return Timed(Greedy(**given), clock, "first plan")
