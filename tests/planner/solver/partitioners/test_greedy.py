"""greedy: the contract of partitioners, and which of its constructions is the first plan of a solve."""

import pytest

from planner.solver.evaluate import objective_of
from planner.solver.partitioners import greedy
from planner.solver.partitioners.base import SearchOptions
from planner.solver.partitioners.greedy import Greedy
from tests.support.contracts.partitioner import LIMITS, PartitionerContract
from tests.support.planning.builders import random_priced


class TestGreedy(PartitionerContract):
    partitioner = Greedy()


def test_a_first_plan_is_the_best_of_a_few_where_they_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve tables on four ranks: one construction, then as many as the looks of three pay for; one plan is told."""
    better = 0
    for seed in range(10):
        priced = random_priced(seed, num_tables=12)
        reached = []
        for constructions in (1, 3, 1000):
            monkeypatch.setattr(greedy, "_FIRST_LOOKS", constructions * 12 * priced.num_ranks)
            reported: list[float] = []
            found = Greedy(first_of_few=True).solve(
                priced,
                LIMITS,
                SearchOptions(
                    on_incumbent=lambda incumbent, reported=reported: reported.append(incumbent.objective_seconds)
                ),
            )
            assert found.assignment is not None
            reached.append(objective_of(priced, found.assignment))
            assert reported == [reached[-1]]
        whole = Greedy().solve(priced, LIMITS).assignment
        assert whole is not None
        assert reached == sorted(reached, reverse=True)
        assert reached[-1] == objective_of(priced, whole)
        better += reached[1] < reached[0]
    assert better >= 2
