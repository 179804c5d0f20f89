"""greedy: the contract of partitioners, and which of its constructions is the first plan of a solve."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from planner.solver.evaluate import objective_of
from planner.solver.partitioners import base, greedy
from planner.solver.partitioners.base import Effort, SearchOptions, SolveLimits
from planner.solver.partitioners.greedy import Greedy
from planner.solver.partitioners.local_search import chain as chain_module
from planner.solver.partitioners.local_search.chain import Chain
from planner.solver.partitioners.local_search.constructions import constructions, heaviest_first
from planner.solver.partitioners.local_search.search_data import search_view
from planner.solver.partitioners.local_search.starts import choose, target_of
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
        for number in (1, 3, 1000):
            monkeypatch.setattr(greedy, "_FIRST_LOOKS", number * 12 * priced.num_ranks)
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


class LateFromTheFirstLook:
    """A clock on which every search is late at once, but for those whose limit is a second or more."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1e-5
        return self.seconds


def count_builds(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list to which every plan that is constructed adds whether it was built."""
    built: list[bool] = []
    original = Chain.build

    def build(chain: Chain, *arguments: object) -> bool:
        built.append(original(chain, *arguments))
        return built[-1]

    monkeypatch.setattr(Chain, "build", build)
    monkeypatch.setattr(base, "time", LateFromTheFirstLook())
    return built


def test_a_late_search_constructs_one_plan_and_no_more_with_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = random_priced(3, num_tables=12)
    start = Greedy().solve(priced, LIMITS).assignment
    built = count_builds(monkeypatch)
    late = SolveLimits(time_limit_seconds=1e-6)
    assert Greedy().solve(priced, late).assignment is not None
    assert built == [True]
    assert Greedy().solve(priced, late, SearchOptions(start=start)).assignment is not None
    assert built == [True]


def test_a_late_search_without_a_plan_tries_the_fewest_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four tables apart on four ranks: only whole ones leave a rank for each, and cheaper cuts are tried first."""
    cheap = random_priced(0, num_tables=4, fill=0.2)
    pieces = cheap.family_min_pieces[cheap.shape_family] > 1
    priced = replace(
        cheap,
        shape_seconds=np.where(pieces[:, None], 0.01, 1.0) * cheap.shape_seconds,
        apart=(np.arange(4),),
    )
    built = count_builds(monkeypatch)
    found = Greedy().solve(priced, SolveLimits(time_limit_seconds=1e-6))
    assert found.assignment is not None
    assert built == [False, True]


def test_a_late_plan_that_does_not_fit_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is tight, so that no construction fits by itself: the limit is over, and a second is left to mend one."""
    tight = next(
        priced
        for priced in (random_priced(seed, num_tables=10, fill=0.93) for seed in range(200))
        if all(
            chain.assignment() is None
            for chain in itertools.islice(constructions(search_view(priced), None, 0, Effort(LIMITS)), 1)
        )
        and Greedy().solve(priced, LIMITS).assignment is not None
    )
    count_builds(monkeypatch)
    assert Greedy().solve(tight, SolveLimits(time_limit_seconds=1e-6)).assignment is not None
    assert Greedy(may_fail=True).solve(tight, SolveLimits(time_limit_seconds=1e-6)).assignment is None
    assert Greedy(may_fail=True).solve(tight, replace(LIMITS, time_limit_seconds=1e4)).assignment is not None


class LateAt(Effort):
    """An effort that is late from some look on."""

    def __init__(self, late_at: int) -> None:
        super().__init__(LIMITS)
        self.late_at, self.looks = late_at, 0

    @property
    def is_late(self) -> bool:
        self.looks += 1
        return self.looks >= self.late_at


def test_a_plan_of_many_items_is_given_up_between_two_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    view = search_view(random_priced(0, num_tables=40))
    monkeypatch.setattr(chain_module, "_PART", 16)
    target = target_of(view, None)
    options = choose(view, target, 1.0)
    order = heaviest_first(view, options, target)
    assert len(order) == 40
    for late_at, built, looks in ((3, True, 2), (2, False, 2), (1, False, 1)):
        effort = LateAt(late_at)
        assert Chain(view, 0).build(options, target, order, effort) == built
        assert effort.looks == looks
