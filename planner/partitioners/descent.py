"""Two descents from a finished plan, both counted in steps: equal inputs give equal plans.

``reoption`` changes one table's option and constructs everything anew: it gets out of plans
in which the other tables have settled around a bad option. ``replace_tables`` takes tables
off one at a time and puts each back with the option and sites of least energy.
"""

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.evaluate import objective_seconds, rank_loads
from planner.partitioners.builder import Builder, SearchView
from planner.partitioners.construct import construct, scale_target
from planner.priced import Assignment

Ints = NDArray[np.int64]

#: Placements that descents may try per second of limit; one takes 50-100 us for 16 ranks.
TRIES_PER_SECOND = 1_500
#: Rounds of ``replace_tables``; each looks at every table once, heaviest pieces first.
MAX_ROUNDS = 12


class Tries:
    """How many more placements may be tried, and the clock that ends them early on a busy machine."""

    def __init__(self, left: int, deadline_seconds: float) -> None:
        self.left = left
        self._deadline_seconds = deadline_seconds
        self.timed_out = False

    def spend(self, number: int) -> bool:
        """Take ``number`` tries; ``False`` once there were not enough, or no time is left."""
        self.left -= number
        self.timed_out = self.timed_out or time.monotonic() > self._deadline_seconds
        return self.left >= 0 and not self.timed_out


def reoption(view: SearchView, start: Assignment, tries: Tries) -> Iterator[Assignment]:
    """Yield ever better plans, each by one table's change of option and a new construction."""
    value = _value(view, start)
    options = start.chosen_option.copy()
    improved = True
    while improved:
        improved = False
        for table in np.argsort(-view.total[options].sum(axis=1), kind="stable"):
            for option in range(int(view.first_option[table]), int(view.last_option[table])):
                if option == options[table]:
                    continue
                if not tries.spend(view.priced.num_tables):
                    return
                changed = options.copy()
                changed[table] = option
                candidate = construct(view, changed)
                if candidate is not None and (found := _value(view, candidate)) < value * (1 - 1e-9):
                    value, options, improved = found, candidate.chosen_option.copy(), True
                    yield candidate


def replace_tables(view: SearchView, start: Assignment, tries: Tries) -> Iterator[Assignment]:
    """Yield ever better plans, each after a round over all tables."""
    value, assignment = _value(view, start), start
    for _ in range(MAX_ROUNDS):
        builder = _rebuild(view, assignment)
        moved = [_replace(view, builder, table, tries) for table in _heaviest_first(view, builder)]
        assignment = builder.assignment()
        found = _value(view, assignment)
        if found < value * (1 - 1e-9):
            value = found
            yield assignment
        elif not any(moved) or found > value * (1 + 1e-9):
            return


def _value(view: SearchView, assignment: Assignment) -> float:
    return objective_seconds(view.priced, rank_loads(view.priced, assignment).seconds)


def _rebuild(view: SearchView, assignment: Assignment) -> Builder:
    """A builder that holds a finished plan, with its slowest ranks as targets."""
    loads = rank_loads(view.priced, assignment).seconds * view.priced.phase_weight
    if view.seconds.shape[1] == 1:
        loads = loads.sum(axis=1, keepdims=True)
    builder = Builder(view, scale_target(loads.max(axis=0)))
    for table, option in enumerate(assignment.chosen_option):
        builder.restore(table, int(option), assignment.unit_site[view.first_unit[option] : view.last_unit[option]])
    return builder


def _heaviest_first(view: SearchView, builder: Builder) -> list[int]:
    """Tables outside same-rank groups, those with the heaviest pieces first."""
    free = np.flatnonzero(view.group_of_table < 0)
    return [int(t) for t in sorted(free, key=lambda t: (-float(view.big[builder.chosen[t]]), int(t)))]


def _replace(view: SearchView, builder: Builder, table: int, tries: Tries) -> bool:
    """Try every option of one table at its best sites; keep the one of least energy."""
    if not tries.spend(int(view.last_option[table] - view.first_option[table])):
        return False
    before = builder.energy()
    option = int(builder.chosen[table])
    sites = builder.unit_site[view.first_unit[option] : view.last_unit[option]].copy()
    builder.remove(table)
    best = (before * (1 - 1e-12), option, sites)
    for other in range(int(view.first_option[table]), int(view.last_option[table])):
        if builder.place([table], [other]):
            energy = builder.energy()
            if energy < best[0]:
                best = (energy, other, builder.unit_site[view.first_unit[other] : view.last_unit[other]].copy())
            builder.remove(table)
    builder.restore(table, best[1], best[2])
    return best[0] < before * (1 - 1e-12)
