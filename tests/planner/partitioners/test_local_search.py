import itertools
from dataclasses import replace

import numpy as np

from planner.evaluate import objective_of, violations
from planner.partitioners.base import Effort
from planner.partitioners.best import Best
from planner.partitioners.constructions import by_taste
from planner.partitioners.greedy import Greedy
from planner.partitioners.local_search import LocalSearch, _Search
from planner.partitioners.view import search_view
from planner.priced import Scope
from planner.pricing import restrict
from tests.contracts.partitioner import LIMITS, PartitionerContract
from tests.planner.builders import brute_force, random_priced


class TestLocalSearch(PartitionerContract):
    partitioner = LocalSearch()
    limits = replace(LIMITS, work_limit_seconds=0.2)


def test_it_finds_the_optimum_over_all_cuts() -> None:
    """Nearly always, and comes within a percent of it; also where the best plan needs a cut that is not listed."""
    exact, unlisted = 0, 0
    for seed in range(8):
        priced = random_priced(seed, num_tables=2, num_hosts=1, columns=24, slowdown=True, fill=0.9)
        priced = restrict(priced, priced.family_scope == Scope.RANK)
        best, listed = brute_force(priced), brute_force(priced, listed=True)
        assert best is not None
        assert listed is not None
        unlisted += best < listed * (1 - 1e-9)
        outcome = LocalSearch().solve(priced, LIMITS)
        assert outcome.assignment is not None
        value = objective_of(priced, outcome.assignment)
        assert value <= best * 1.01, seed
        exact += value <= best * (1 + 1e-9)
    assert exact >= 7
    assert unlisted, "some instance should need an unlisted cut"


def test_first_plans_settle_before_any_is_cut_anew() -> None:
    """Pieces move in every first plan, so that the best of them is faster than any that is only built."""
    priced = random_priced(0, num_tables=24)
    view, best = search_view(priced), Best(priced, "local_search", None)
    built = [chain.best_seconds for chain in by_taste(view, None, 9, itertools.count(), Effort(LIMITS))]
    search = _Search(view, 0, Effort(LIMITS), best, 0.0)
    search.settle(None, None)
    assert best.seconds < 0.99 * min(built)


def test_it_improves_on_greedy() -> None:
    better = 0
    for seed in range(4):
        priced = random_priced(seed, num_tables=12)
        values = []
        for partitioner in (Greedy(), LocalSearch()):
            outcome = partitioner.solve(priced, replace(LIMITS, work_limit_seconds=0.2))
            assert outcome.assignment is not None
            values.append(objective_of(priced, outcome.assignment))
        assert values[1] <= values[0] * (1 + 1e-12)
        better += values[1] < values[0] * (1 - 1e-6)
    assert better >= 2


def test_memory_that_is_almost_full() -> None:
    """Whole tables that fit the ranks only in pairs of a large and a small one."""
    priced = random_priced(3, num_tables=8, num_hosts=1, ranks_per_host=4)
    whole = restrict(priced, (priced.family_scope == Scope.RANK) & (priced.family_max_pieces == 1))
    sizes = np.array([70.0, 30, 65, 35, 60, 40, 55, 45])[whole.shape_table][:, None]
    tight = replace(whole, shape_bytes=sizes, shape_total_bytes=sizes, capacity_bytes=np.full((4, 1), 100.0))
    outcome = LocalSearch().solve(tight, LIMITS)
    assert outcome.assignment is not None
    assert violations(tight, outcome.assignment) == []


def test_a_plan_within_the_gap_ends_the_search() -> None:
    priced = random_priced(2, num_tables=6)
    first = LocalSearch().solve(priced, LIMITS)
    assert first.assignment is not None
    known = objective_of(priced, first.assignment)
    again = LocalSearch().solve(priced, LIMITS, start=first.assignment, lower_bound_seconds=known)
    assert again.termination.limit == "gap"
    assert again.assignment is first.assignment
