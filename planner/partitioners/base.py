"""The seam of the search: priced arrays in, an assignment and the reason for stopping out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from planner.priced import Assignment, Outcome, PricedOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveLimits:
    """When to stop, and what makes a solve repeatable."""

    time_limit_seconds: float = 10.0
    relative_gap: float = 0.005  # stop when the plan is proven this close to the best
    seed: int = 0
    #: same spec, seed and versions give the same plan whatever the load of the machine:
    #: effort is then counted in solver work, never in seconds of wall clock
    reproducible: bool = True
    #: what a reproducible search spends, where that is less than the time limit; a member of
    #: a portfolio is given a fixed share, so that its work does not depend on the clock
    work_limit_seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 0 < self.time_limit_seconds <= 86_400:
            raise ValueError("Expected time_limit_seconds in (0, 86400].")
        if not 0 <= self.relative_gap <= 1:
            raise ValueError("Expected relative_gap in [0, 1].")
        if not 0 <= self.seed < 2**31:
            raise ValueError("Expected seed in [0, 2**31).")


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """The best assignment so far, as it is streamed out of a running search."""

    assignment: Assignment
    objective_seconds: float
    partitioner: str


OnIncumbent = Callable[[Incumbent], None]


class Partitioner(Protocol):
    """Chooses options and sites. Deterministic for equal arguments unless a wall clock cuts it.

    Returns a valid assignment, or the reason why there is none; only a partitioner that
    proves it may return INFEASIBLE. ``lower_bound_seconds`` is a bound that the caller has
    already proved, for stopping early; ``start`` is an assignment to improve on.
    """

    @property
    def name(self) -> str:
        """The name used in specs."""
        ...

    def solve(
        self,
        priced: PricedOptions,
        limits: SolveLimits,
        *,
        lower_bound_seconds: float = 0.0,
        start: Assignment | None = None,
        on_incumbent: OnIncumbent | None = None,
    ) -> Outcome:
        """Search until the limit, the gap or a proof."""
        ...
