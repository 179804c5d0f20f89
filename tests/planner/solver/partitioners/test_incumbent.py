from dataclasses import replace

import numpy as np

from planner.solver.evaluate import objective_of
from planner.solver.partitioners.base import Incumbent
from planner.solver.partitioners.incumbent import IncumbentTracker
from planner.solver.problem import Reason
from tests.support.planning.builders import best_assignment, random_priced


def test_only_valid_and_better_plans_are_preserved() -> None:
    priced = random_priced(0, num_tables=2)
    optimum = best_assignment(priced)
    assert optimum is not None
    reported: list[Incumbent] = []
    best = IncumbentTracker(priced, "a", reported.append)
    assert best.outcome("time").reason is Reason.NO_SOLUTION_FOUND
    assert not best.consider(None)
    assert best.consider(optimum)
    assert not best.consider(optimum)
    full = IncumbentTracker(replace(priced, capacity_bytes=np.zeros_like(priced.capacity_bytes)), "a", None)
    assert not full.consider(optimum)
    assert full.assignment is None
    outcome = best.outcome("time", "why")
    assert outcome.assignment is optimum
    assert (outcome.partitioner, outcome.limit, outcome.detail) == ("a", "time", "why")
    assert [incumbent.objective_seconds for incumbent in reported] == [objective_of(priced, optimum)]
