"""greedy: options by price, then heaviest first onto the rank where it hurts least.

One construction needs two numbers: a cap on the largest piece (seconds) and a price of
bytes. Low caps choose finely cut options, which balance well and cost more in all; high caps
choose the cheapest options, which leave heavy pieces. No single cap is right, so that a sweep
tries a fixed list of them; the best construction then descends (see ``descent``). Everything
is counted in steps, never in seconds of wall clock, until the time limit cuts it.
"""

import time
from collections.abc import Iterator

from planner.evaluate import objective_seconds, rank_loads, violations
from planner.partitioners.base import Incumbent, OnIncumbent, SolveLimits
from planner.partitioners.builder import SearchView, search_view
from planner.partitioners.construct import choose_options, construct, even_share
from planner.partitioners.descent import TRIES_PER_SECOND, Tries, reoption, replace_tables
from planner.priced import Assignment, Outcome, PricedOptions, Reason, Termination

#: Caps on the largest piece, as multiples of the even share of the cheapest options.
CAPS = (8.0, 3.0, 2.0, 1.5, 1.2, 1.0, 0.85, 0.7, 0.55, 0.4, 0.25, 0.12)
#: Prices of the whole cluster's memory, in even shares of seconds, tried until a plan fits.
MEMORY_PRICES = (0.0, 0.5, 2.0, 8.0, 64.0, 1e4)


class Greedy:
    """The first plan of every solve."""

    name = "greedy"

    def solve(
        self,
        priced: PricedOptions,
        limits: SolveLimits,
        *,
        lower_bound_seconds: float = 0.0,
        start: Assignment | None = None,
        on_incumbent: OnIncumbent | None = None,
    ) -> Outcome:
        """Sweep, then descend from the best construction; ``start`` competes with the sweep."""
        deadline = time.monotonic() + limits.time_limit_seconds
        good_enough = lower_bound_seconds * (1 + limits.relative_gap)
        best: tuple[float, Assignment] | None = None
        limit = "iterations"
        tries = Tries(int(TRIES_PER_SECOND * (limits.work_limit_seconds or limits.time_limit_seconds)), deadline)
        for candidate in _candidates(search_view(priced), start, tries):
            value = objective_seconds(priced, rank_loads(priced, candidate).seconds)
            if best is None or value < best[0]:
                best = (value, candidate)
                if on_incumbent is not None:
                    on_incumbent(Incumbent(assignment=candidate, objective_seconds=value, partitioner=self.name))
            if best[0] <= good_enough:
                break
            if time.monotonic() > deadline:
                limit = "time"
                break
        if best is None:
            detail = f"no construction fits: {len(CAPS) * len(MEMORY_PRICES)} tried"
            return Outcome(assignment=None, termination=Termination(reason=Reason.NO_SOLUTION_FOUND, detail=detail))
        return Outcome(
            assignment=best[1],
            termination=Termination(reason=Reason.FEASIBLE, limit="time" if tries.timed_out else limit),
            partitioner=self.name,
        )


def _candidates(view: SearchView, start: Assignment | None, tries: Tries) -> Iterator[Assignment]:
    """Yield valid assignments: the start, the sweep, then the descents from the best so far."""
    best: tuple[float, Assignment] | None = None
    for candidate in _sweep(view, start):
        yield candidate
        value = objective_seconds(view.priced, rank_loads(view.priced, candidate).seconds)
        if best is None or value < best[0]:
            best = (value, candidate)
    if best is None:
        return
    last = best[1]
    for descent in (replace_tables, reoption, replace_tables):
        for candidate in descent(view, last, tries):
            yield candidate
            last = candidate


def _sweep(view: SearchView, start: Assignment | None) -> Iterator[Assignment]:
    """Yield the start if it is valid, then one plan per cap at the lowest memory price that fits."""
    if start is not None and not violations(view.priced, start):
        yield start
    share = even_share(view)
    first_price = 0
    for cap in CAPS:
        for price in range(first_price, len(MEMORY_PRICES)):
            built = construct(view, choose_options(view, cap * share, MEMORY_PRICES[price] * share))
            if built is not None:
                first_price = max(0, price - 1)  # the next cap needs about the same price
                yield built
                break
